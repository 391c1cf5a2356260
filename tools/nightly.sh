#!/usr/bin/env bash
# What takes too long for each change: nightly.sh [SECONDS of fuzzing a target, 60]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

heading() { printf '\n==== %s\n' "$1"; }

heading "build"
tools/setup.sh
cmake --preset debug
cmake --build --preset debug

heading "explore: ten times what CI does"
seed=$((10#$(date +%Y%m%d) * 100000)) # other seeds each night; a failure prints its own
(cd build-debug && ./pliant-sim explore --seed "$seed" --runs 10000 --steps 1000)

heading "fuzz: $seconds s a target"
tools/fuzz.sh "$seconds"

heading "valgrind"
check=(valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=1)
for kind in allocator transition_manager backoff key_groups; do
    "${check[@]}" build-debug/tests/vectors "$kind" "tests/data/vectors/$kind.jsonl"
done
"${check[@]}" build-debug/pliant-sim check tests/data/{cases,own-cases}/*.json
for corpus in tests/fuzz/corpus/*/; do
    "${check[@]}" "build-debug/tests/fuzz-$(basename "$corpus")" "$corpus"
done

heading "static analysis"
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=uninitvar --suppress=identicalInnerCondition \
    --suppress=preprocessorErrorDirective \
    --error-exitcode=1 -I include -I src src tools
clang-tidy-14 --quiet -p build-debug $(git ls-files 'src/*.c' 'tools/*.c')

printf '\nnightly: all passed\n'
