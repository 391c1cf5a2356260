#!/usr/bin/env bash
# Do builds decide alike? check-journals.sh BUILD_DIR BUILD_DIR...: runs the example job over every
# trace with each pliant-sim and compares the recordings, byte for byte.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { echo "usage: tools/check-journals.sh BUILD_DIR BUILD_DIR..." >&2; exit 2; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
differ=0
for trace in tests/data/traces/*.jsonl; do
    first=
    for build in "$@"; do
        "$build/pliant-sim" run --job examples/wordcount.yaml --trace "$trace" \
            --record "$dir/recording" --json >"$dir/output"
        sum=$(cat "$dir/recording" "$dir/output" | sha256sum)
        if [ "${first:=$sum}" != "$sum" ]; then
            echo "$trace: $build differs from $1"
            differ=1
        fi
    done
done
[ $differ -eq 0 ] && echo "check-journals: $# builds agree"
