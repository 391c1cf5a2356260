#!/usr/bin/env bash
# What would a word count have done on a real cluster of spot machines? Set up, build, replay.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh
cmake --preset release -DBUILD_TESTING=OFF
cmake --build --preset release --target pliant-sim
build/pliant-sim run --job examples/wordcount.yaml --trace examples/aws-p3-named.jsonl \
    --svg build/demo.svg
echo
echo "The same as a drawing: $PWD/build/demo.svg"
