#!/usr/bin/env bash
# Run each libFuzzer target for some time: fuzz.sh SECONDS. New inputs stay in build-fuzz/corpus;
# one that crashes is written to build-fuzz/crash-NAME-*, and the script fails.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS}

cmake --preset fuzz
cmake --build --preset fuzz
for program in build-fuzz/tests/fuzz-*; do
    name=${program##*/fuzz-}
    mkdir -p "build-fuzz/corpus/$name"
    echo "fuzz-$name, $seconds s"
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="build-fuzz/crash-$name-" \
        "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
