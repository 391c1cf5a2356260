#!/usr/bin/env bash
# Set up, build, and run all tests: what to do before a change is sent. In build/, as for release.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh
cmake --preset release
cmake --build --preset release
ctest --preset release -j "$(nproc)"
tools/check-layers.py build/libpliant.a
tools/check-rules.py
tools/check-docs.sh
