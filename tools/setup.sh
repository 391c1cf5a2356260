#!/usr/bin/env bash
# Install what building and testing needs, on Debian 12. This is the one list of packages.
set -euo pipefail

packages=(
    # to build
    gcc libc6-dev cmake make ninja-build pkg-config
    libcjson-dev libyaml-dev uthash-dev libzmq3-dev libczmq-dev libsqlite3-dev
    # to test: second compiler, its sanitizers and fuzzer, their readable stacks
    libcriterion-dev clang libclang-rt-14-dev llvm valgrind
    # to check: coverage, form, analysis, scripts, drawings
    gcovr clang-format-14 clang-tidy-14 cppcheck python3 librsvg2-bin git
)

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup: everything is installed"
    exit 0
fi

echo "setup: installing ${missing[*]}"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
