#!/usr/bin/env bash
# Run each libFuzzer target for some time: fuzz.sh SECONDS. New inputs stay in build-fuzz/corpus;
# one that crashes is written to build-fuzz/crash-NAME-*, and the script fails.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS}

cmake --preset fuzz
cmake --build --preset fuzz

fuzz() { # PROGRAM
    local name=${1##*/fuzz-} log
    log=build-fuzz/$name.log
    mkdir -p "build-fuzz/corpus/$name"
    if "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="build-fuzz/crash-$name-" \
        "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        echo "fuzz-$name: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs are fine"
    else
        grep -v -e '# Uses:' -e '^INFO:' "$log"
        echo "fuzz-$name: FAILED, see build-fuzz/crash-$name-*"
        return 1
    fi
}

export seconds
export -f fuzz
printf '%s\n' build-fuzz/tests/fuzz-* | xargs -P "$(nproc)" -I '{}' bash -c 'fuzz "$1"' _ '{}'
