#!/usr/bin/env bash
# A subtask in shell: counts in its key groups, once a second, and writes its counters when a checkpoint is
# asked for. Needs pliant-worker in the PATH.
set -euo pipefail

file=count
declare -A count
first=${PLIANT_KEY_GROUPS%-*}
last=${PLIANT_KEY_GROUPS#*-}

# Each part has lines GROUP COUNT; of those only ours are read.
while read -r range dir; do
    while read -r group n; do
        if ((group >= ${range%-*} && group <= ${range#*-})); then
            count[$group]=$n
        fi
    done <"$dir/$file"
done < <(pliant-worker restore-parts)

step() {
    for ((group = first; group <= last; group++)); do
        count[$group]=$((${count[$group]:-0} + 1))
    done
}

save() { # DIR
    for group in "${!count[@]}"; do
        echo "$group ${count[$group]}"
    done >"$1/$file"
}

# Waiting for a request is also the pause between two steps: exit code 1 says that none came.
while true; do
    if request=$(pliant-worker wait-checkpoint --timeout "1 s"); then
        read -r id dir <<<"$request"
        failed=()
        save "$dir" || failed=(--failed "cannot write to $dir")
        pliant-worker part "$id" "${failed[@]}" || [ $? -eq 1 ] # 1: nobody wants it any more
    else
        [ $? -eq 1 ] || exit 3 # the agent has gone
        step
        echo "count ${count[$first]}"
    fi
done
