#!/usr/bin/env bash
# An unmodified PyTorch script as a worker group: 4 ranks on 2 agents, one is killed, all resume.
# check-pytorch.sh [BUILD_DIR]
#
# Installs Debian's python3-torch if it is missing (about 400 MB; no part of setup.sh). Exit code 0
# only if the group ran, lost a rank, went on from its own file with a new attempt, and ended.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
python=/usr/bin/python3 # Debian's, whatever else is in the PATH

fail() { echo "check-pytorch: $*" >&2; exit 1; }

if ! "$python" -c 'import torch.distributed' 2>/dev/null; then
    echo "check-pytorch: installing python3-torch"
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends python3-torch >/dev/null
fi

dir=$(mktemp -d)
pids=()
cleanup() {
    kill "${pids[@]}" 2>/dev/null || true
    for pid in "${pids[@]}"; do # an agent drains first; a second signal ends that
        timeout 5 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap cleanup EXIT

export PLIANT_STATE_DIR=$dir/state
ctl() { "$build/pliantctl" "$@"; }

# Wait until a command succeeds, at most so many seconds.
until_true() { # SECONDS WHAT COMMAND...
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { cat "$dir"/*.log >&2; fail "$what did not come"; }
        sleep 0.2
    done
}

"$build/pliantd" --agents "ipc://$dir/agents" --clients "ipc://$dir/clients" \
    --events "ipc://$dir/events" 2>"$dir/daemon.log" &
pids+=($!)
until_true 30 "the daemon" ctl ping
for node in n1 n2; do
    "$build/pliant-agent" --slots 2 --node $node --address 127.0.0.1 --work-dir "$dir/$node" \
        --connect "ipc://$dir/agents" 2>"$dir/$node.log" &
    pids+=($!)
done

cat >"$dir/torch.yaml" <<END
name: torch
worker_group:
  name: torch
  storage-path: $dir/runs
  command: [$python, $PWD/examples/service/torch_train.py, $dir/out]
  min-workers: 4
  max-workers: 4
  max-failures: 1
  stop-timeout: 5 s
config:
  restart-strategy.type: exponential-delay
  restart-strategy.exponential-delay.initial-backoff: 100 ms
END
job=$(ctl submit "$dir/torch.yaml")

saved() { [ -e "$dir/out/step-$(printf %08d "$1").pt" ]; }
pid_of_rank() { # the process of a rank, in any attempt
    ctl tasks "$job" --json | "$python" -c '
import json, sys
print(next(t["pid"] for t in json.load(sys.stdin)["tasks"]
           if t["subtask"] == int(sys.argv[1]) and t["state"].lower() == "running"))' "$1"
}

until_true 120 "the first file" saved 20
victim=$(pid_of_rank 3)
echo "check-pytorch: step 20 is saved, rank 3 (process $victim) is killed"
kill -9 "$victim"
until_true 120 "the end" saved 200
until_true 60 "the job's end" sh -c "'$build/pliantctl' status $job --json | grep -q '\"FINISHED\"'"

ctl logs "$job" worker/0 >"$dir/rank-0"
cat "$dir/rank-0"
first=$(sed -n 's/^start rank=0 world=4 step=//p' "$dir/rank-0" | tail -n 1)
[ -n "$first" ] && [ "$first" -ge 20 ] || fail "rank 0 began its last attempt at step '$first'"
grep -q '^end rank=0 step=200$' "$dir/rank-0" || fail "rank 0 did not come to its end"
echo "check-pytorch: passed; the second attempt went on from step $first"
