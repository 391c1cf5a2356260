#!/usr/bin/env bash
# Every PLIANT_PARALLELISM-th line of the text: its words, each into the subpartition that its hash
# says, so that all occurrences of a word come to one task of `count`.
set -euo pipefail
export LC_ALL=C

out=$(pliant-worker outputs --to count)
parts=$(pliant-worker outputs --to count --subpartitions)

cat "$WORDCOUNT_TEXT"/*.md |
    awk -v me="$PLIANT_SUBTASK" -v of="$PLIANT_PARALLELISM" 'NR % of == me' |
    tr -cs '[:alpha:]' '\n' | tr '[:upper:]' '[:lower:]' |
    awk -v out="$out" -v parts="$parts" '
        BEGIN { for (i = 1; i < 128; i++) code[sprintf("%c", i)] = i }
        NF {
            hash = 0
            for (i = 1; i <= length($0); i++)
                hash = (hash * 31 + code[substr($0, i, 1)]) % 1000003
            print > (out "/" hash % parts)
        }'
sleep "$WORDCOUNT_PAUSE"
