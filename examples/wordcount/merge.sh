#!/usr/bin/env bash
# One list of all words, the most frequent ones first. A task may run twice: the result appears
# whole or not at all.
set -euo pipefail
export LC_ALL=C

pliant-worker inputs --from count | xargs -r cat | sort -k1,1nr -k2 >"$WORDCOUNT_RESULT.$$"
mv "$WORDCOUNT_RESULT.$$" "$WORDCOUNT_RESULT"
