#!/usr/bin/env bash
# Does the documentation show what the programs do? check-docs.sh [BUILD_DIR]
#
# docs/options.md, docs/picture.svg and docs/compare.svg are as the programs make them, and every command that is shown
# runs, with the output that is shown (tools/doc-commands.py). `--update` brings all of it up to
# date: check-docs.sh --update [BUILD_DIR]; read the difference before you commit it.
set -euo pipefail
cd "$(dirname "$0")/.."
update=false
if [ "${1:-}" = --update ]; then
    update=true
    shift
fi
build=${1:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$build/pliant-sim" options --markdown >"$dir/options.md"
"$build/pliant-sim" run --job examples/wordcount.yaml --trace examples/aws-p3-named.jsonl \
    --svg "$dir/picture.svg" >/dev/null
"$build/pliant-sim" compare --job examples/training.yaml --max-slots 64 --svg "$dir/compare.svg" \
    $(printf -- ' --trace %s' tests/data/traces/{aws,gcp,hpa}*.jsonl) >/dev/null 2>&1
for file in options.md picture.svg compare.svg; do
    if $update; then
        cp "$dir/$file" "docs/$file"
    elif ! diff -u "docs/$file" "$dir/$file" >"$dir/diff"; then
        head -20 "$dir/diff"
        echo "docs/$file is out of date: tools/check-docs.sh --update"
        exit 1
    fi
done
if $update; then
    tools/doc-commands.py --update "$build" README.md docs/*.md examples/*.md
else
    tools/doc-commands.py "$build" README.md docs/*.md examples/*.md
fi
