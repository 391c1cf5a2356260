#!/usr/bin/env bash
# pliantctl against the real service: a job from submit to its end, every command on the way, a
# daemon that is killed, keys. ctl_live_test.sh PROGRAMS
set -euo pipefail
export PATH=$1:$PATH TZ=UTC LC_ALL=C.UTF-8
dir=$(mktemp -d)
export HOME=$dir PLIANT_STATE_DIR=$dir/state
unset PLIANT_CLIENTS PLIANT_KEY PLIANT_SERVER_KEY XDG_STATE_HOME NO_COLOR
daemon='' agents=()

cleanup() {
    kill -9 $daemon "${agents[@]}" 2>/dev/null || true
    for _ in $(seq 100); do # the agents' keepers end their tasks
        pgrep -f "$dir/w" >/dev/null || break
        sleep 0.1
    done
    rm -rf "$dir"
}
trap cleanup EXIT

fail() {
    echo "ctl_live_test: $*" >&2
    tail -n 5 "$dir"/*.log >&2
    exit 1
}

# until COMMAND...: wait until it succeeds, with a wide bound.
until_true() {
    for _ in $(seq 600); do
        ! "$@" >"$dir/out" 2>&1 || return 0
        sleep 0.1
    done
    fail "never: $*: $(cat "$dir/out")"
}

shows() { # TEXT COMMAND...: its output holds the text
    "${@:2}" >"$dir/out" 2>&1 && grep -qF -- "$1" "$dir/out"
}

must_show() { shows "$@" || fail "\"$1\" is not in ${*:2}: $(cat "$dir/out")"; }

ends_with() { # CODE COMMAND...
    local code=0
    "${@:2}" >"$dir/out" 2>&1 || code=$?
    [ $code -eq "$1" ] || fail "${*:2} ends with $code: $(cat "$dir/out")"
}

start_daemon() {
    pliantd --agents "ipc://$dir/agents" --clients "ipc://$dir/clients" \
        --events "ipc://$dir/events" "$@" 2>>"$dir/pliantd.log" &
    daemon=$!
}

start_agent() { # NAME [OPTION...]
    pliant-agent --slots 2 --node "$1" --connect "ipc://$dir/agents" --work-dir "$dir/w$1" \
        "${@:2}" 2>>"$dir/agent.log" &
    agents+=($!)
}

cat >"$dir/job.yaml" <<'END'
name: count
vertices:
  - id: src
    parallelism: 4
    max_parallelism: 8
    command:
      - /bin/sh
      - -c
      - 'trap "exit 0" TERM; echo begin; i=0; while :; do i=$((i + 1)); echo "line $i"; sleep 0.1; done'
config:
  jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout: 100 ms
  jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling: 100 ms
  jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout: 100 ms
END

echo "- there is nobody yet"
ends_with 3 pliantctl list
start_daemon
until_true pliantctl --timeout 1s ping
must_show "no nodes" pliantctl nodes
must_show "no jobs" pliantctl list

echo "- a job is checked, and handed in"
start_agent n1
until_true shows "n1    up" pliantctl nodes
must_show "count is fine; it would be Executing: 2 slots offered, 1 needed, 4 wanted" \
    pliantctl submit --dry-run "$dir/job.yaml"
sed 's/parallelism: 4/parallelism: none/' "$dir/job.yaml" >"$dir/bad.yaml"
ends_with 2 pliantctl submit "$dir/bad.yaml"
grep -q "bad.yaml:4: vertices\[0\].parallelism" "$dir/out" || fail "$(cat "$dir/out")"
id=$(pliantctl submit "$dir/job.yaml")
ends_with 0 pliantctl submit "$dir/job.yaml" --id "$id"
sed 's/name: count/name: other/' "$dir/job.yaml" >"$dir/other.yaml"
ends_with 1 pliantctl submit "$dir/other.yaml" --id "$id"
until_true shows "src               2       4    1..4" pliantctl status count
must_show "$id  count  RUNNING" pliantctl list
until_true shows "src/1        1  n1       1" pliantctl tasks count

echo "- it is watched, and grows"
pliantctl watch count >"$dir/watch" &
watch=$!
pliantctl watch --json "$id" >"$dir/watch.json" &
watch_json=$!
until_true grep -q "count  is Executing, RUNNING" "$dir/watch"
until_true grep -q '"kind":"beat"' "$dir/watch.json"
start_agent n2
until_true shows "src               4       4    1..4" pliantctl status "${id:0:4}"
must_show "slots came: src 2 > 4" pliantctl rescales count
until_true grep -q "count  Executing > Restarting: rescale, 4 slots" "$dir/watch"

echo "- bounds, drain"
ends_with 0 pliantctl scale count src=3
until_true shows "src               3       3    1..3" pliantctl status count
ends_with 2 pliantctl scale count nothing=3
ends_with 0 pliantctl drain n2 --deadline 5s --reason idle
must_show "drains (idle) until" pliantctl nodes
until_true shows "src               2       3    1..3" pliantctl status count
ends_with 0 pliantctl undrain n2
ends_with 1 pliantctl drain nobody
until_true shows "src               3       3    1..3" pliantctl status count
ends_with 1 pliantctl stop count # it takes no savepoints

echo "- logs"
must_show "begin" pliantctl logs count src/0 --attempt 1
until_true shows "line 3" pliantctl logs count src/0
[ "$(pliantctl logs count src/0 --tail 2 | wc -l)" -ge 2 ] || fail "$(pliantctl logs count src/0)"
ends_with 1 pliantctl logs count src/99
pliantctl logs -f count src/0 >"$dir/follow" 2>&1 &
follow=$!
until_true grep -q "line 1" "$dir/follow" # from then on it outlives the daemon

echo "- the daemon is killed"
processes() { pliantctl tasks count --json | grep -o '"pid":[0-9]*' | sort; }
same_processes() { [ "$(processes)" = "$pids" ]; }
pids=$(processes)
kill -9 $daemon
wait $daemon 2>/dev/null || true
start_daemon
until_true shows "$id  count  RUNNING" pliantctl --timeout 1s list
until_true same_processes # as soon as the agents are back
# The stream comes again: what happens before that is in a gap.
until_true awk '/"kind":"gap"/ { gap = 1 } gap && /"kind":"beat"/ { good = 1 } END { exit !good }' \
    "$dir/watch.json"
must_show "epoch 2" pliantctl ping

echo "- its journal replays"
ends_with 0 pliantctl record count -o "$dir/journal"
ends_with 0 pliant-sim replay "$dir/journal"

echo "- it ends"
ends_with 0 pliantctl cancel count --wait
grep -q CANCELED "$dir/out" || fail "$(cat "$dir/out")"
must_show "$id  count  CANCELED" pliantctl list --all
must_show "no jobs" pliantctl list
must_show "CANCELED" pliantctl status "$id"
ends_with 1 pliantctl status count
ends_with 1 pliantctl remove count # a name that no job has any more
for pid in $watch $watch_json $follow; do
    wait $pid || fail "a follower ends with $?: $(tail -n 3 "$dir/follow")"
done
grep -q '"change":"ended"\|"to":"CANCELED"' "$dir/watch.json" || fail "$(tail -n 5 "$dir/watch.json")"
must_show "$id: removed" pliantctl remove "${id:0:8}"
must_show "$id: there is no such job" pliantctl remove "$id"
must_show "no jobs" pliantctl list --all
ends_with 0 pliantctl shutdown
wait $daemon || fail "pliantd ends with $?"

echo "- keys"
keys=$dir/keys
mkdir -m 700 "$keys"
ends_with 0 pliantctl keygen server --role server --keys "$keys"
for role in viewer operator agent; do
    ends_with 0 pliantctl keygen $role --role $role --keys "$keys" -o "$dir"
done
ends_with 0 pliantctl keygen stranger --role operator -o "$dir"
export PLIANT_STATE_DIR=$dir/state2
start_daemon --keys "$keys"
until_true pliantctl --timeout 1s --key "$dir/viewer.key_secret" ping
ends_with 2 pliantctl ping # no key

with_key() { # KEY NAME: an agent, its log is KEY-NAME.log
    pliant-agent --slots 1 --node "$2" --connect "ipc://$dir/agents" --work-dir "$dir/w$1-$2" \
        --key "$dir/$1.key_secret" --server-key "$keys/server.key" 2>>"$dir/$1-$2.log" &
    agents+=($!)
}
nodes() { pliantctl --key "$dir/viewer.key_secret" nodes; }
refused() { # LOG [N]: that agent was told so, more than N times
    [ "$(grep -c 'code="forbidden"' "$dir/$1.log")" -gt "${2:-0}" ]
}
logged() { grep -c "says that it is another's node\" node=\"$1\"" "$dir/pliantd.log" || true; }
for n in 1 2; do # of one node each
    ends_with 0 pliantctl keygen of$n --role agent --node k$n --keys "$keys" -o "$dir"
done
ends_with 0 pliantctl keygen late --role agent --keys "$keys" -o "$dir"
kill -HUP $daemon
with_key agent k1 # before its owner is there
until_true refused agent-k1
kill ${agents[-1]}
with_key of1 k1
until_true shows k1 nodes
with_key of2 k3 # not the one that it is for
until_true refused of2-k3
with_key agent k4 # a key that names none: the first that it says
owner=${agents[-1]}
until_true shows k4 nodes
with_key agent k5 # and no second one
until_true refused agent-k5
kill -STOP $owner # it is missed, and awaited: nobody else may take its place
with_key late k4
until_true refused late-k4 2
kill -CONT $owner
for node in k3 k5; do
    ! shows $node nodes || fail "$(cat "$dir/out")"
done
for node in k1 k3 k4; do
    [ "$(logged $node)" -eq 1 ] || fail "$node: a refusal is logged once a minute"
done
ends_with 1 pliantctl --key "$dir/viewer.key_secret" shutdown
grep -q denied "$dir/out" || fail "$(cat "$dir/out")"
ends_with 1 pliantctl --key "$dir/agent.key_secret" list
ends_with 3 pliantctl --timeout 1s --key "$dir/stranger.key_secret" list
ends_with 0 pliantctl --key "$dir/operator.key_secret" shutdown
wait $daemon || fail "pliantd ends with $?"
daemon=''
echo "ctl_live_test: passed"
