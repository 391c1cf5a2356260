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

echo "- libpliantworker: its own names, pkg-config, find_package"
stray=$( (nm -D --defined-only "$lib/libpliantworker.so" | awk '$2 != "A" { print $3 }'
    nm -g --defined-only "$lib/libpliantworker.a" | awk 'NF == 3 { print $3 }') |
    grep -v '^pliant_worker_[a-z_]*\(@@LIBPLIANTWORKER_0\)\?$' || true)
[ -z "$stray" ] || fail "libpliantworker shows $stray"
cat >"$dir/consumer/worker.c" <<'END'
#include <pliant/worker.h>
#include <stdio.h>
int main(void)
{
    struct pliant_worker *w;
    int r = pliant_worker_new(&w);
    if (r == 0)
        r = pliant_worker_report(w, "{\"loss\":0.5}", NULL);
    fputs(pliant_worker_error(w), stderr);
    pliant_worker_close(w);
    return r != 0;
}
END
unset PLIANT_WORKER_SOCKET
"$CC" -std=c17 $(pkg-config --cflags pliantworker) "$dir/consumer/worker.c" -o "$dir/worker" \
    $(pkg-config --libs pliantworker)
"$dir/worker"
"$CC" -std=c17 -static $(pkg-config --cflags pliantworker) "$dir/consumer/worker.c" \
    -o "$dir/worker-static" $(pkg-config --static --libs pliantworker)
"$dir/worker-static"
cat >>"$dir/consumer/CMakeLists.txt" <<'END'
foreach(kind worker worker-static)
    add_executable(run-${kind} worker.c)
    target_link_libraries(run-${kind} PRIVATE pliant::${kind})
endforeach()
END
cmake --build "$dir/consumer/build" >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
"$dir/consumer/build/run-worker"
"$dir/consumer/build/run-worker-static"

echo "install_test: passed"
