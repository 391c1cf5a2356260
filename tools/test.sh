#!/usr/bin/env bash
# Set up, build, and run all tests: what to do before a change is sent. In build/, as for release.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh
cmake --preset release -DBUILD_TESTING=ON # tools/demo.sh has set it to OFF in this folder
cmake --build --preset release
ctest --preset release -j "$(nproc)" --no-tests=error
tools/check-layers.py build/libpliant.a
tools/check-rules.py
tools/check-docs.sh
