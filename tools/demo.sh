#!/usr/bin/env bash
# The service at work: a job grows and shrinks with its cluster while agents and the daemon are
# killed. Sets up, builds in build/, runs tools/demo.py: about 80 s once it is built. Exit code 0
# only if every step came out as it should.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh
echo "demo: building in build/, which takes a minute the first time"
cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build --preset release --target pliantd pliant-agent pliantctl -- --quiet
exec tools/demo.py build
