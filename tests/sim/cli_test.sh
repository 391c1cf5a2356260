#!/bin/sh
# cli_test.sh PLIANT_SIM - the program's exit codes, what it says, and what it leaves behind
#
# Each check runs one command and looks at its exit code and at what standard error says.
set -u
sim=$1
data=$(dirname "$0")/../data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# expect CODE PATTERN COMMAND...: its exit code, and a word that standard error must hold
expect() {
    code=$1 pattern=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$code" ] || fail "exit code $got, not $code: $*: $(head -c 300 "$work/err")"
    [ -z "$pattern" ] || grep -q -e "$pattern" "$work/err" ||
        fail "\"$pattern\" is not in: $(head -c 300 "$work/err")"
}

cat >"$work/job.yaml" <<'JOB'
name: wc
vertices:
  - {id: src, parallelism: 2}
  - {id: map, parallelism: 2}
edges: [{from: src, to: map}]
config:
  execution.checkpointing.interval: 10 s
JOB
cat >"$work/trace.jsonl" <<'TRACE'
{"pliant_trace":1,"name":"two nodes"}
{"t":0,"ev":"node_up","node":"n1","slots":1}
{"t":60000,"ev":"node_up","node":"n2","slots":1}
{"t":300000,"ev":"node_down","node":"n1"}
TRACE
run="$sim run --job $work/job.yaml"
trace="--trace $work/trace.jsonl"

# ---- it works
expect 0 '' $run $trace
grep -q 'Executing > Restarting  *n1 lost' "$work/out" || fail "no timeline: $(cat "$work/out")"
for format in text json csv; do
    expect 0 '' $run $trace --format $format
    [ -s "$work/out" ] || fail "nothing as $format"
done
cp "$work/out" "$work/csv"
expect 0 '' $run $trace --csv
cmp -s "$work/csv" "$work/out" || fail "--csv is not --format csv"
expect 0 '' $run $trace --until 10000 --json
tail -1 "$work/out" | grep -q '"t":10000' || fail "--until: $(tail -1 "$work/out")"
expect 0 '' sh -c "$run --trace - --json <$work/trace.jsonl"
expect 0 '' sh -c "$run --trace - --json <$work/trace.jsonl | tail -1 >$work/piped"
expect 0 '' $run $trace -D restart-strategy.type=none --until 100000

# ---- a batch job shows its stages, restarts and attempts
batch="$sim run --job $data/../../examples/batch.yaml --trace $data/../../examples/batch.jsonl"
expect 0 '' $batch --svg "$work/batch.svg"
for line in 'stage  *clean: 45 tasks' 'regions  *[0-9]* tasks again.*m5 lost' \
    'speculation  *8 attempts more of read' 'blocked  *m4 is slow' ' |clean$' \
    '  read  *40  *[0-9]*  *[0-9]*  *8 ' 'region restarts'; do
    grep -q "$line" "$work/out" || fail "no \"$line\" in: $(cat "$work/out")"
done
grep -q '>clean 45</text>' "$work/batch.svg" || fail "no row of clean in the chart"
expect 0 '' $batch --json
for line in '"kind":"regions","tasks":[0-9]*,"vertices":{"read":9' '"kind":"blocked","node":"m4"' \
    '"kind":"speculation","attempts":8,"vertices":{"read":8}' '"tasks":{"read":{"tasks":40,'; do
    grep -q "$line" "$work/out" || fail "no $line in: $(cat "$work/out")"
done

# ---- labels of failures
{
    cat "$work/trace.jsonl"
    echo '{"t":400000,"ev":"task_failed","vertex":"map","subtask":0,"cause":"oom","code":137}'
} >"$work/failed.jsonl"
cat >"$work/labels.yaml" <<'OPTIONS'
pliant.failure-labels: |
  exit=128-255 -> type=killed
  kind=node -> type=node, owner=provider
OPTIONS
labels="--trace $work/failed.jsonl --config $work/labels.yaml"
expect 0 '' $run $labels
grep -q ' labels  *type=node, owner=provider$' "$work/out" || fail "no label: $(cat "$work/out")"
grep -q ' labels  *type=killed$' "$work/out" || fail "no label: $(cat "$work/out")"
expect 0 '' $run $labels --json
grep -q '"kind":"failure".*"cause":"oom".*"labels":{"type":"killed"}' "$work/out" ||
    fail "no label: $(grep failure "$work/out")"
expect 2 'at byte 6, "-> a=b": accepted: a text after =' $run $labels -D 'pliant.failure-labels=exit=-> a=b'
sed -i 's/128-255/0-255/' "$work/labels.yaml"
expect 2 'labels.yaml:1: pliant.failure-labels: at byte 1, "exit=0-255' $run $labels
expect 1 '' $run $trace -D restart-strategy.type=none # the job failed
expect 0 '' $sim options
expect 0 '' $sim options --json
expect 0 '' $sim options --markdown
expect 0 '' $sim --version
for command in '' run check replay options explore; do
    expect 0 '' $sim $command --help
    grep -q Usage "$work/out" || fail "no help for $command"
done

# ---- recordings and charts
expect 0 '' $run $trace --record "$work/run.jsonl" --svg "$work/run.svg"
grep -q '</svg>' "$work/run.svg" || fail "no chart"
expect 0 '' $sim replay "$work/run.jsonl"
expect 0 '' sh -c "head -n 5 $work/run.jsonl | $sim replay -"
sed 's/"desired":2/"desired":3/' "$work/run.jsonl" >"$work/other.jsonl"
expect 1 '' $sim replay "$work/other.jsonl"
grep -q 'other.jsonl:3' "$work/out" || fail "no line of the difference: $(head -c 200 "$work/out")"
head -c 2000 "$work/run.jsonl" >"$work/cut.jsonl"
expect 2 'cut.jsonl' $sim replay "$work/cut.jsonl"
expect 2 '' $sim replay "$work/trace.jsonl"
{ head -1 "$work/run.jsonl"; echo '{"t":-5,"event":{"ev":"tick"},"actions":[]}'; } >"$work/cut.jsonl"
expect 2 'cut.jsonl:2: the scheduler takes no such event' $sim replay "$work/cut.jsonl"
expect 0 '' $sim replay --json "$work/run.jsonl"

# ---- cases
expect 0 '' $sim check "$data"/cases/000-*.json "$data"/cases/039-*.json
[ "$(tail -1 "$work/out")" = '2 passed, 0 failed' ] || fail "sum: $(tail -1 "$work/out")"
sed 's/"max_restarts":2/"max_restarts":1/;s/"max_restarts": 2/"max_restarts": 1/' \
    "$data"/cases/000-*.json >"$work/wrong.json"
expect 1 '' $sim check "$work/wrong.json" "$data"/cases/039-*.json
grep -q '^000 FAIL .*max_restarts: wanted 1, got 2' "$work/out" || fail "$(cat "$work/out")"
[ "$(tail -1 "$work/out")" = '1 passed, 1 failed' ] || fail "sum: $(tail -1 "$work/out")"
expect 1 '' $sim check --json "$work/wrong.json"
expect 1 '' $sim check --csv "$work/wrong.json"
expect 2 'nosuch' $sim check "$work/nosuch.json"

# ---- wrong usage
expect 2 '' $sim
expect 2 'did you mean "replay"' $sim reply x
expect 2 'no command' $sim frobnicate
expect 2 '--job FILE is missing' $sim run $trace
expect 2 '--trace FILE is missing' $run
expect 2 'did you mean --lenient' $run $trace --lenien=1
expect 2 'did you mean --record' $run $trace --recrod x
expect 2 'there is no option -x' $run $trace -x
expect 2 'there is no option -x' $run $trace -xy
expect 2 'needs a value' $run --trace
expect 2 '--json takes no value' $run $trace --json=yes
expect 2 'only one of --job and --trace' $sim run --job - --trace -
expect 2 'not an option' $run $trace extra
expect 2 '--format' $run $trace --format xml
expect 2 '--until' $run $trace --until 5s
expect 2 '--until' $run $trace --until -1
expect 2 'cooldown-after-rescaling' $run $trace \
    -D jobmanager.adaptive-scheduler.executing.cooldown-after-rescalin=1s
expect 2 'one recording' $sim replay
expect 2 'at least one case' $sim check
expect 2 '--seed N is missing' $sim explore --steps 10
expect 2 '--steps N is missing' $sim explore --seed 1
expect 2 '--seed' $sim explore --seed x --steps 10

# ---- bad input: an error with its place, and nothing written
bad_trace() { # PATTERN LINE...
    pattern=$1
    shift
    { head -2 "$work/trace.jsonl"; printf "$@"; } >"$work/bad.jsonl"
    expect 2 "bad.jsonl:.*$pattern" $run --trace "$work/bad.jsonl" --record "$work/no.jsonl" \
        --svg "$work/no.svg"
    [ -s "$work/out" ] && fail "written in spite of $pattern"
    [ -e "$work/no.jsonl" ] && fail "a recording in spite of $pattern"
    [ -e "$work/no.svg" ] && fail "a chart in spite of $pattern"
}
bad_trace '4: t: time goes back' '{"t":5,"ev":"node_up","node":"n2","slots":1}\n{"t":4,"ev":"cancel"}\n'
bad_trace 'node_up' '{"t":5,"ev":"node_upp","node":"n2","slots":1}\n'
bad_trace 'n2' '{"t":5,"ev":"node_down","node":"n2"}\n'
bad_trace 'n1' '{"t":5,"ev":"node_down","node":"n1"}\n{"t":6,"ev":"node_down","node":"n1"}\n'
bad_trace '3:21: .*control character' '{"t":5,"ev":"cancel"\000}\n'
bad_trace 'cut in the middle of line 3' '{"t":5,"ev":"can'
bad_trace '3:33: more than 32 levels' "$(printf '[%.0s' $(seq 2000))\n"
{ printf '\357\273\277'; cat "$work/trace.jsonl"; } >"$work/mark.jsonl"
expect 0 '' $run --trace "$work/mark.jsonl"
printf '# scheduler-mode: reactive\n' >"$work/nothing.yaml"
expect 0 '' $run $trace --config "$work/nothing.yaml"
expect 2 'nothing.yaml:2: is empty; accepted: a map' $sim run --job "$work/nothing.yaml" $trace
head -c 10000000 /dev/zero | tr '\0' x >"$work/long"
{ head -2 "$work/trace.jsonl"; cat "$work/long"; } >"$work/bad.jsonl"
expect 2 'bad.jsonl:3: .*longer than' $run --trace "$work/bad.jsonl"
{ head -2 "$work/trace.jsonl"; echo '{"t":5,"ev":"node_down","node":"n2"}'; } >"$work/bad.jsonl"
expect 0 'warning' $run --trace "$work/bad.jsonl" --lenient
bad_job() { # PATTERN TEXT
    printf "$2" >"$work/bad.yaml"
    expect 2 "bad.yaml:$1" $sim run --job "$work/bad.yaml" $trace
    [ -s "$work/out" ] && fail "written in spite of $1"
}
bad_job '1: vertices.1..id: .*taken' 'vertices: [{id: a}, {id: a}]\n'
bad_job '2: edges.0..to: .*cycle' 'vertices: [{id: a}]\nedges: [{from: a, to: a}]\n'
bad_job '2: edges.1..to: .*cycle' \
    'vertices: [{id: a}, {id: b}]\nedges: [{from: a, to: b}, {from: b, to: a}]\n'
bad_job '2: edges.0..to: no vertex' 'vertices: [{id: a}]\nedges: [{from: a, to: nowhere}]\n'
for parallelism in 0 2147483648 32769; do
    bad_job "1: vertices.0..parallelism: is $parallelism" \
        "vertices: [{id: a, parallelism: $parallelism}]\n"
done
bad_job '1: vertices.0..parallelism: .*1 to 8, its max' \
    'vertices: [{id: a, parallelism: 9, max_parallelism: 8}]\n'
bad_job '2: config.slot.idle.timeout: .*units d, h, min' \
    'vertices: [{id: a}]\nconfig: {slot.idle.timeout: 5 parsec}\n'
bad_job '1:18: .*control character' 'vertices: [{id: a\000b}]\n'
bad_job '1:33: more than 32 levels' "$(printf '[%.0s' $(seq 2000))"
expect 2 'nosuch' $sim run --job "$work/nosuch.yaml" $trace
expect 2 'nosuch' $run --trace "$work/nosuch.jsonl"

# ---- what never rescales is not compared
sed 's/config:/&\n  jobmanager.scheduler: default/' "$work/job.yaml" >"$work/default.yaml"
echo 'vertices: [{id: a}, {id: b}]
edges: [{from: a, to: b, exchange: blocking}]' >"$work/batch.yaml"
for command in compare sweep; do
    expect 2 'never rescales: its jobmanager.scheduler is default; accepted: adaptive' \
        $sim $command --job "$work/default.yaml" $trace
    expect 2 'is adaptive-batch; accepted: adaptive' $sim $command --job "$work/batch.yaml" $trace
done

# ---- what a sweep prints is an option file, and says which options of the job stand in its way
expect 0 '' $sim sweep --job "$work/job.yaml" $trace --cost 5000,60000,500
grep -q '^#   execution.checkpointing.interval$' "$work/out" || fail "no word: $(cat "$work/out")"
cp "$work/out" "$work/swept.yaml"
expect 0 '' $run $trace --config "$work/swept.yaml"
expect 2 'policy: sweep searches it' $sim sweep --job "$work/job.yaml" $trace \
    -D pliant.rescale.policy=never

# ---- nothing that is quoted from a file is obeyed by a terminal
cat >"$work/esc.jsonl" <<'TRACE'
{"pliant_trace":1,"name":"a\u001b[31mb"}
{"t":0,"ev":"node_up","node":"n\u001b[31m","slots":2}
{"t":60000,"ev":"node_down","node":"n\u001b[31m"}
TRACE
sed 's/"title":"/&\\u001b[31m/; s/"case":"/&\\u001b[31m/' "$data"/cases/000-*.json >"$work/esc.json"
for command in "$run --lenient" "$sim compare --job $work/job.yaml"; do
    expect 0 '' $command --trace "$work/esc.jsonl"
    grep -q '\[31m' "$work/out" || fail "no name in: $(cat "$work/out")"
    cat "$work/err" >>"$work/out"
    grep -q "$(printf '\033')" "$work/out" && fail "an escape: $(cat -v "$work/out")"
done
expect 0 '' $sim check "$work/esc.json"
grep -q '\[31m' "$work/out" || fail "no title in: $(cat "$work/out")"
grep -q "$(printf '\033')" "$work/out" && fail "an escape: $(cat -v "$work/out")"
echo '{"t":60001,"ev":"\u001b[31m"}' >>"$work/esc.jsonl"
expect 2 '\[31m' $run --trace "$work/esc.jsonl"
grep -q "$(printf '\033')" "$work/err" && fail "an escape: $(cat -v "$work/err")"

# ---- output that cannot be written
expect 4 'No space left' sh -c "$run $trace >/dev/full"
expect 4 'No space left' sh -c "$run $trace --json >/dev/full"
expect 4 'No space left' sh -c "$sim options >/dev/full"
expect 4 'No space left' sh -c "$sim check $data/cases/000-*.json >/dev/full"
expect 4 'No space left' $run $trace --record /dev/full
[ -c /dev/full ] || fail "/dev/full was replaced"
expect 2 'no/such/dir' $run $trace --record "$work/no/such/dir/x"
expect 2 'no/such/dir' $run $trace --svg "$work/no/such/dir/x"
# a place for the chart that cannot be had is known before anything runs
expect 2 'no/such/dir' $sim compare --job "$work/job.yaml" $trace --svg "$work/no/such/dir/x"
[ -s "$work/out" ] && fail "it ran all the same: $(cat "$work/out")"
expect 4 'No space left' $sim compare --job "$work/job.yaml" $trace --svg /dev/full
expect 4 'No space left' sh -c "$sim compare --job $work/job.yaml $trace --svg $work/cell >/dev/full"
# a pipe whose reader is gone before anything is written
mkfifo "$work/pipe"
exec 3<>"$work/pipe" 4>"$work/pipe" 3>&-
expect 4 'Broken pipe' sh -c "$run $trace >&4"
exec 4>&-
echo old >"$work/kept.jsonl"
expect 4 '' sh -c "$run $trace --record $work/kept.jsonl >/dev/full"
[ "$(cat "$work/kept.jsonl")" = old ] || fail "the old file was touched"
[ "$(ls "$work" | grep -c 'kept.jsonl')" = 1 ] || fail "a temporary file was left: $(ls "$work")"

# a run that is interrupted leaves nothing behind; here it hangs in a pipe that is full
mkdir "$work/ended"
mkfifo "$work/full"
exec 5<>"$work/full"
$run $trace --until 9007199254740992 --json --record "$work/ended/run" --svg "$work/ended/chart" \
    >&5 2>/dev/null &
pid=$!
head -c 1 <&5 >/dev/null # it is under way
[ "$(ls "$work/ended" | wc -l)" = 2 ] || fail "no temporary files: $(ls "$work/ended")"
kill -TERM $pid
wait $pid
[ $? -gt 128 ] || fail "a run that was terminated says that it ended"
exec 5>&-
[ -z "$(ls "$work/ended")" ] || fail "left behind: $(ls "$work/ended")"

# what is read or written already is not overwritten, under whichever name
cp "$work/trace.jsonl" "$work/mine.jsonl"
ln -s mine.jsonl "$work/link.jsonl"
expect 2 '--record.*another input or output' $run --trace "$work/mine.jsonl" \
    --record "$work/link.jsonl"
expect 2 '--svg.*another input or output' $run $trace --svg "$work/../$(basename "$work")/job.yaml"
expect 2 '--record.*another input or output' $run $trace --svg "$work/one" --record "$work/./one"
expect 2 '--svg.*another input or output' $sim compare --job "$work/job.yaml" \
    --trace "$work/mine.jsonl" --svg "$work/mine.jsonl"
cmp -s "$work/trace.jsonl" "$work/mine.jsonl" || fail "the trace was overwritten"
for name in '' -; do
    expect 2 'accepted: the name of a file' $run $trace --record "$name"
    expect 2 'accepted: the name of a file' $run $trace --svg "$name"
done
expect 0 '' $run $trace --svg /dev/null --record /dev/null
# a file that is there keeps its rights, and a link stays a link
chmod 600 "$work/kept.jsonl"
ln -s kept.jsonl "$work/link2.jsonl"
expect 0 '' $run $trace --record "$work/link2.jsonl"
[ -L "$work/link2.jsonl" ] || fail "the link was replaced"
[ "$(stat -c %a "$work/kept.jsonl")" = 600 ] || fail "$(ls -l "$work/kept.jsonl")"
expect 0 '' $sim replay "$work/kept.jsonl"
if [ "$(id -u)" -ne 0 ]; then # nothing is read-only for root
    chmod 400 "$work/kept.jsonl"
    expect 2 'kept.jsonl: Permission denied' $run $trace --record "$work/kept.jsonl"
fi

# ---- explore
expect 2 'no/such' $sim explore --seed 7 --steps 50 --dir "$work/no/such"
expect 0 '' $sim explore --seed 7 --runs 3 --steps 50 --dir "$work"
cp "$work/out" "$work/first"
expect 0 '' $sim explore --seed 7 --runs 3 --steps 50 --dir "$work"
cmp -s "$work/first" "$work/out" || fail "two runs of one seed differ"

[ $failed -eq 0 ] && echo "all as it must be"
exit $failed
