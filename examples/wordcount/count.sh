#!/usr/bin/env bash
# How often does each word occur? All that `split` found of it is here.
set -euo pipefail
export LC_ALL=C

out=$(pliant-worker outputs --to merge)
pliant-worker inputs --from split | xargs -r cat | sort | uniq -c >"$out/0"
sleep "$WORDCOUNT_PAUSE"
