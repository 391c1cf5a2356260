#!/usr/bin/env bash
# libpliant as an embedding program meets it: installed, moved, found, linked, run.
# install_test.sh BUILD_DIR CC
set -euo pipefail
build=$1
export CC=$2
embed=$(dirname "$0")/../examples/embed.c
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "install_test: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$dir/first" >"$dir/log" || fail "$(cat "$dir/log")"
prefix=$dir/moved # nothing may remember where it was installed
mv "$dir/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libpliant.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
! grep -rIl "$dir\|$(realpath "$build")" "$prefix" || fail "these files name a build or an old prefix"

echo "- shows only its public names"
stray=$(nm -D --defined-only "$lib/libpliant.so" | awk '$2 != "A" { print $3 }' |
    grep -v '^pliant_[a-z_]*@@LIBPLIANT_0$' || true)
[ -z "$stray" ] || fail "libpliant.so shows $stray"
stray=$(nm -g --defined-only "$lib/libpliant.a" | awk 'NF == 3 { print $3 }' |
    grep -v '^pliant_' || true)
[ -z "$stray" ] || fail "libpliant.a shows $stray"

echo "- each header compiles alone, as C and as C++"
for header in "$prefix"/include/pliant/*.h; do
    printf '#include <pliant/%s>\nextern int not_empty;\n' "$(basename "$header")" >"$dir/header.c"
    "$CC" -std=c17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
        $(pkg-config --cflags pliant) "$dir/header.c"
    ! command -v clang++ >/dev/null ||
        clang++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
            $(pkg-config --cflags pliant) -x c++ "$dir/header.c"
done

echo "- pkg-config, shared"
"$CC" -std=c17 $(pkg-config --cflags pliant) "$embed" -o "$dir/shared" \
    $(pkg-config --libs pliant) -pthread
readelf -d "$dir/shared" | grep -q 'NEEDED.*libpliant\.so\.0' || fail "not linked to libpliant.so.0"
"$dir/shared" >"$dir/shared.out"

echo "- pkg-config, static"
"$CC" -std=c17 -static $(pkg-config --cflags pliant) "$embed" -o "$dir/static" \
    $(pkg-config --static --libs pliant) -pthread
"$dir/static" >"$dir/static.out"

echo "- find_package"
mkdir "$dir/consumer"
cp "$embed" "$dir/consumer/embed.c"
cat >"$dir/consumer/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(pliant 0.1 REQUIRED)
find_package(Threads REQUIRED)
foreach(kind pliant static)
    add_executable(embed-${kind} embed.c)
    target_link_libraries(embed-${kind} PRIVATE pliant::${kind} Threads::Threads)
endforeach()
END
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt")
cmake -S "$dir/consumer" -B "$dir/consumer/build" -G "$generator" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$dir/log" 2>&1 &&
    cmake --build "$dir/consumer/build" >>"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
"$dir/consumer/build/embed-pliant" >"$dir/pliant.out"
"$dir/consumer/build/embed-static" >"$dir/package-static.out"

echo "install_test: passed"
