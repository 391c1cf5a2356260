#!/usr/bin/env python3
"""Worker groups in a real service: they survive what dies, go on from their checkpoint, and stop as a whole.

    group_test.py BUILD_DIR [NAME...]              those whose names contain one of these
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from service import SOURCE, Failed, Refused, Service, alive

ENDED = ("FINISHED", "FAILED", "CANCELED")
HEARTBEATS = ("-D", "heartbeat.interval=300 ms", "-D", "heartbeat.timeout=4 s")


class Group:
    """A service with one worker group, and the questions that the tests ask."""

    def __init__(self, service):
        self.service, self.job = service, None
        self.runs = service.dir / "runs"
        self.marks = service.dir / "marks"
        self.marks.mkdir()

    def submit(self, command, workers=(4, 4), env=None, **options):
        members = {"name": "run", "storage-path": str(self.runs), "command": command, "cwd": "examples/service",
                   "min-workers": workers[0], "max-workers": workers[1], "stop-timeout": "10 s", **options}
        if env:
            members["env"] = env
        self.job = self.service.submit_text(json.dumps({
            "name": "group", "worker_group": members,
            "config": {"restart-strategy.type": "exponential-delay",
                       "restart-strategy.exponential-delay.initial-backoff": "50 ms",
                       "restart-strategy.exponential-delay.max-backoff": "500 ms"}}))
        return self.job

    def train(self, steps=60, step=0.05, **options):
        return self.submit(["python3", "train.py", "--steps", str(steps), "--step", str(step),
                            "--checkpoint-every", "10"], **options)

    def shell(self, script, **options):
        return self.submit(["sh", "-c", script], **options)

    @property
    def status(self):
        return self.service.status(self.job)

    def wait(self, what, condition, seconds=60):
        return self.service.wait(what, condition, seconds)

    def wait_end(self, status="FINISHED"):
        end = self.wait("the job ends", lambda: self.status if self.status["job_status"] in ENDED else None)
        equal("the job's end", end["job_status"], status)
        return end

    def log(self, rank):
        return self.service.ctl("logs", self.job, f"worker/{rank}", json_out=False)

    def lines(self, rank, word):
        """The lines of the last attempt that begin with the word, each as a map."""
        return [dict(pair.split("=", 1) for pair in line.split()[1:])
                for line in self.log(rank).splitlines() if line.startswith(word + " ")]

    def manifest(self):
        try:
            return json.loads((self.runs / "run" / "_manifest.json").read_text())
        except FileNotFoundError:
            return {"checkpoint_results": [], "latest": None}

    def registered(self):
        return [row["metrics"]["step"] for row in self.manifest()["checkpoint_results"]]

    def wait_registered(self, step):
        self.wait(f"step {step} is registered", lambda: max(self.registered(), default=0) >= step)

    def all_up(self, n=4, but=()):
        """{rank: (pid, attempt, node)} when n workers run, none of them in these attempts."""
        def look():
            tasks = self.service.running(self.job)
            up = {rank: (pid, attempt, node) for pid, (_, rank, attempt, node) in tasks.items()}
            return up if len(up) == n and not {row[1] for row in up.values()} & set(but) else None
        return self.wait(f"{n} workers run", look)

    def failures(self):
        return [entry["items"] for entry in self.service.ctl("failures", self.job)["failures"]]

    def check_went_on(self, steps, at_least):
        """The last attempt began at a checkpoint, and lost none of the sum."""
        start, end = self.lines(0, "start")[-1], self.lines(0, "end")[-1]
        if int(start["step"]) < at_least:
            raise Failed(f"it began at step {start['step']} again")
        equal("the sum", float(end["sum"]), float(steps))
        return start


def equal(what, got, want):
    if got != want:
        raise Failed(f"{what}: {got!r}, not {want!r}")


def two_agents(service, *agent_options):
    service.start_daemon(*HEARTBEATS)
    for name in ("n1", "n2"):
        service.start_agent(name, *agent_options)
    return Group(service)


# ---- what dies ------------------------------------------------------------------------------------


def test_a_worker_is_killed(service):
    """One restart, charged to max-failures, from the latest checkpoint [W-CKP-10, W-STA-4]."""
    g = two_agents(service)
    g.train(**{"max-failures": 1, "checkpoint.num-to-keep": 2})
    g.wait_registered(20)
    up = g.all_up()
    os.kill(up[3][0], signal.SIGKILL)
    g.wait_end()
    start = g.check_went_on(60, 20)
    equal("attempts in the environment grow by one", int(start["attempt"]), 2)  # [W-ENV-4]
    equal("what is kept", g.registered(), [50, 60])
    directories = sorted(p.name for p in (g.runs / "run").iterdir() if p.name.startswith("checkpoint"))
    equal("directories of the run", directories, [row["dir"] for row in g.manifest()["checkpoint_results"]])
    recording = service.dir / "recording.jsonl"
    service.ctl("record", g.job, "--output", recording, json_out=False)
    subprocess.run([service.programs / "pliant-sim", "replay", recording], check=True)
    equal("causes", [item["cause"] for item in g.failures()[0]][:1], ["killed by SIGKILL"])
    equal("exit codes", [item["exit_code"] for item in g.failures()[0]][:1], [128 + signal.SIGKILL])


def test_a_worker_hangs(service):
    """Its library answers no health check: a death that is charged to max-failures [W-GRP-8]."""
    g = two_agents(service)
    g.train(**{"max-failures": 1, "health-check-interval": "100 ms", "health-check-timeout": "5 s"})
    g.wait_registered(20)
    pid = g.all_up()[3][0]
    os.kill(pid, signal.SIGSTOP)
    g.wait("it is killed", lambda: not alive(pid))
    g.wait_end()
    g.check_went_on(60, 20)
    equal("causes", [item["cause"] for item in g.failures()[0]][:1],
          ["the health check was unanswered for 5 s"])


def test_an_agent_is_killed_and_a_third_comes(service):
    g = two_agents(service)
    g.train(steps=80, **{"max-failures": 1})
    g.wait_registered(20)
    g.all_up()
    service.agents["n2"].kill()
    service.start_agent("n3")
    g.wait_end()
    start = g.check_went_on(80, 20)
    equal("world size", start["world"], "4")
    service.wait("nothing is left of n2", lambda: not service.leftovers())


def test_the_daemon_is_killed(service):
    """Nobody restarts: agents keep the workers, and what waits is answered by the next daemon."""
    service.start_daemon()
    for name in ("n1", "n2"):
        service.start_agent(name, "--keep-tasks")
    g = Group(service)
    g.train(steps=120, step=0.02, **{"max-failures": 0, "require-new-run": True})
    before = g.all_up()
    for step in (20, 50, 80):
        g.wait_registered(step)
        service.daemon.kill()
        time.sleep(0.3)  # workers come to a report that nobody takes
        service.start_daemon()
    equal("processes", {rank: row[0] for rank, row in g.all_up().items()},
          {rank: row[0] for rank, row in before.items()})
    end = g.wait_end()
    equal("restarts", end["restarts"], 0)
    equal("registered, none lost and none twice", g.registered(), list(range(10, 121, 10)))
    equal("attempts", int(g.lines(0, "start")[0]["attempt"]), 1)


def strike(g, chance):
    """Something dies, or looks as if it did."""
    node = chance.choice(("n1", "n2", "n3"))
    agent, pids = g.service.agents[node], list(g.service.running(g.job))
    what = chance.choice(("worker", "worker", "agent", "daemon", "freeze"))
    if what == "worker" and pids:
        try:
            os.kill(chance.choice(pids), chance.choice((signal.SIGKILL, signal.SIGSEGV)))
        except ProcessLookupError:
            pass  # it has ended meanwhile
    elif what == "agent":
        agent.kill()
        g.service.start_agent(node, ready=False)
    elif what == "daemon":
        g.service.daemon.kill()
        g.service.start_daemon()
    elif what == "freeze":
        agent.kill(signal.SIGSTOP)
        time.sleep(chance.uniform(0, 6))  # shorter and longer than heartbeat.timeout
        agent.kill(signal.SIGCONT)


def test_kills_at_random(service):
    """Whatever dies, no registered checkpoint is lost, and none counts twice."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    g = two_agents(service)
    service.start_agent("n3")
    g.submit(["python3", "train.py", "--steps", "300", "--step", "0.01", "--checkpoint-every", "5"],
             workers=(2, 6), **{"max-failures": -1, "stop-timeout": "2 s"})
    for _ in range(12):
        time.sleep(chance.uniform(0.1, 1))
        if g.status["job_status"] in ENDED:
            break
        strike(g, chance)
    g.wait_end()
    equal("registered", g.registered(), list(range(5, 301, 5)))
    for row in g.manifest()["checkpoint_results"]:
        equal("a sum", round(row["metrics"]["sum"], 6), float(row["metrics"]["step"]))


def test_another_job_goes_on_with_the_run(service):
    """[W-DRV-1..5]"""
    g = two_agents(service)
    g.train(steps=30)
    try:
        g.wait_registered(10)
        g.train(steps=30)
        raise Failed("two jobs have one run")
    except Refused as error:  # [W-DRV-5]
        if "belongs to another scheduler" not in error.text:
            raise
    first = service.ctl("list")["jobs"][0]["job_id"]
    service.wait("the first ends", lambda: service.status(first)["job_status"] == "FINISHED")
    g.train(steps=50)
    g.wait_end()
    equal("it began at step", g.lines(0, "start")[0]["step"], "30")
    equal("registered", g.registered(), [10, 20, 30, 40, 50])
    refused(g, "is a run already", **{"require-new-run": True})  # [W-DRV-3]
    lost = g.runs / "run" / g.manifest()["latest"]
    lost.rename(lost.with_name("_elsewhere"))
    refused(g, f"{lost.name} is missing")  # [W-DRV-2]
    manifest = g.runs / "run" / "_manifest.json"
    manifest.write_text("{")
    refused(g, "_manifest.json")  # [W-DRV-4]
    equal("the manifest is not written over", manifest.read_text(), "{")


def test_the_run_must_be_named(service):
    g = two_agents(service)
    for key, more in (("storage-path", ()), ("name", ()), ("storage-path", ("--dry-run",))):
        spec = {"name": "g", "worker_group": {"name": "run", "storage-path": "/nowhere", "command": ["true"]}}
        del spec["worker_group"][key]
        try:
            service.submit_text(json.dumps(spec), *more)
            raise Failed(f"{key} may be missing")
        except Refused as error:
            if error.code != 2 or f"worker_group.{key}: missing" not in error.text:
                raise


def test_the_best_checkpoint_and_the_latest_are_kept(service):
    """[W-CKP-5, W-CKP-6]"""
    g = two_agents(service)
    g.train(steps=40, step=0.01, **{"checkpoint.num-to-keep": 1, "checkpoint.score-attribute": "step",
                                    "checkpoint.score-order": "min"})
    g.wait_end()
    equal("kept", g.registered(), [10, 40])
    rows = {row["id"]: row["status"] for row in service.ctl("checkpoints", g.job)["checkpoints"]}
    equal("rows", rows, {"1": "completed", "2": "subsumed", "3": "subsumed", "4": "completed"})


def test_a_checkpoint_that_cannot_be_registered_is_an_error_of_the_report(service):
    g = two_agents(service)
    python(g, """
dir = pathlib.Path(os.environ["PLIANT_RUN_DIR"]) / "_ours"
dir.mkdir(exist_ok=True)
try:
    pliant.report({}, checkpoint=dir)
except pliant.Error as error:
    mark("error", str(error))
pliant.report({"and": "on"})
""")
    g.wait_end()
    for text in marked(g, "error"):
        if '"_ours"' not in text:
            raise Failed(f"it was told: {text}")


# ---- a launch --------------------------------------------------------------------------------------


def test_the_node_of_rank_0_is_lost_while_its_port_is_asked_for(service):
    g = two_agents(service)
    for name in ("n1", "n2"):
        service.agents[name].kill(signal.SIGSTOP)
    g.train(steps=10)
    g.wait("the launch is prepared", lambda: g.status["state"] == "CreatingExecutionGraph")
    service.start_agent("n3", slots=4)
    g.all_up(4)
    g.wait_end()


def test_the_daemon_is_killed_while_a_port_is_asked_for(service):
    service.start_daemon()
    n1 = service.start_agent("n1", slots=4)
    n1.kill(signal.SIGSTOP)
    g = Group(service)
    g.train(steps=10)
    g.wait("the launch is prepared", lambda: g.status["state"] == "CreatingExecutionGraph")
    service.daemon.kill()
    service.start_daemon()
    n1.kill(signal.SIGCONT)
    equal("restarts", g.wait_end()["restarts"], 0)


def test_a_port_that_is_taken_is_tried_again_once(service):
    """[7.2]: no failure of the workers."""
    g = two_agents(service)
    g.shell("""n=$(($(ls $MARKS | grep -c "[.]$RANK") + 1)); """ + say("$n") + """
               [ $n = 2 ] && exit 0; [ $RANK = 0 ] || exec sleep 60
               sleep 0.3; echo 'OSError: [Errno 98] Address already in use' >&2; exit 1""",
            env={"MARKS": str(g.marks)})
    g.wait_end()
    ports = [ranks[0]["MASTER_PORT"] for _, ranks in sorted(variables(g).items())]
    equal("ports", len(set(ports)), 2)


def refused(g, text, **options):
    try:
        g.train(**options)
    except Refused as error:
        if error.code == 2 and text in error.text:
            return
        raise
    raise Failed(f"nobody said: {text}")


# ---- budgets ---------------------------------------------------------------------------------------


def test_a_command_that_does_not_exist_uses_up_the_budget(service):
    """[W-BUD-2, known trouble 093]: 2 restarts, and no more."""
    g = two_agents(service)
    g.submit(["/no/such/program"], **{"max-failures": 2})
    end = g.wait_end("FAILED")
    equal("restarts", end["restarts"], 2)
    equal("failures", len(g.failures()), 3)
    cause = g.failures()[0][0]["cause"]
    if "WorkerGroupError" not in cause or "No such file" not in cause:
        raise Failed(f"the failure says: {cause}")


def test_a_script_that_fails_at_once_uses_up_the_budget(service):
    g = two_agents(service)
    g.shell("exit 7", **{"max-failures": 1})
    equal("restarts", g.wait_end("FAILED")["restarts"], 1)
    cause = g.failures()[0][0]["cause"]
    if "WorkerGroupError" not in cause or "exit code 7" not in cause:
        raise Failed(f"the failure says: {cause}")


def test_the_default_budget_allows_no_restart(service):
    g = two_agents(service)
    g.shell('[ "$RANK" = 2 ] && exit 1; exec sleep 60')
    equal("restarts", g.wait_end("FAILED")["restarts"], 0)


def test_who_ends_well_is_waited_for(service):
    """[W-STA-1]"""
    g = two_agents(service)
    g.shell('sleep 0.$RANK')
    equal("restarts", g.wait_end()["restarts"], 0)


def test_an_error_file_says_the_cause(service):
    """[W-ENV-5]"""
    g = two_agents(service)
    g.shell("""[ "$RANK" = 1 ] || exec sleep 60
               echo '{"message":{"message":"ValueError: 1 is no 2"}}' >"$TORCHELASTIC_ERROR_FILE"; exit 1""")
    g.wait_end("FAILED")
    cause = g.failures()[0][0]["cause"]
    if "ValueError: 1 is no 2" not in cause:
        raise Failed(f"the failure says: {cause}")


# ---- processes -------------------------------------------------------------------------------------


def variables(g):
    """What each rank was started with, by attempt: marks/ATTEMPT.RANK."""
    found = {}
    for path in g.marks.iterdir():
        if not path.name.endswith(".part"):
            attempt, rank = path.name.split(".")
            found.setdefault(int(attempt), {})[int(rank)] = dict(
                line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    return found


def say(attempt="$PLIANT_ATTEMPT"):
    return f"m=$MARKS/{attempt}.$RANK; env >$m.part; mv $m.part $m; "


def test_the_environment(service):
    """[W-ENV-1..4]"""
    g = two_agents(service)
    g.shell(say() + '[ $PLIANT_ATTEMPT = 3 ] && exit 0; [ $RANK = 0 ] || exec sleep 60; sleep 0.2; exit 1',
            env={"MARKS": str(g.marks), "RANK": "77", "OMP_NUM_THREADS": "3"},
            **{"max-failures": 5, "horovod-env": True})
    g.wait_end()
    attempts = variables(g)
    equal("attempts", sorted(attempts), [1, 2, 3])
    for attempt, ranks in attempts.items():
        equal("ranks", sorted(ranks), [0, 1, 2, 3])
        for name in ("WORLD_SIZE", "ROLE_WORLD_SIZE", "HOROVOD_SIZE"):
            equal(name, {env[name] for env in ranks.values()}, {"4"})
        equal("MASTER_PORT of all", len({env["MASTER_PORT"] for env in ranks.values()}), 1)
        for rank, env in ranks.items():
            place = [env[name] for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                                            "GROUP_WORLD_SIZE", "ROLE_RANK", "HOROVOD_CROSS_RANK")]
            equal(f"place of rank {rank}", place,
                  [str(rank), str(rank % 2), "2", str(rank // 2), "2", str(rank), str(rank // 2)])
            equal("run id", env["TORCHELASTIC_RUN_ID"], g.job)
            equal("restarts", env["TORCHELASTIC_RESTART_COUNT"], str(attempt - 1))
            equal("limit", env["TORCHELASTIC_MAX_RESTARTS"], "5")
            equal("threads", env["OMP_NUM_THREADS"], "3")
            equal("no checkpoint", env["PLIANT_CHECKPOINT_DIR"], "")
            equal("address", env["MASTER_ADDR"], "127.0.0.1")  # one machine
    ports = {ranks[0]["MASTER_PORT"] for ranks in attempts.values()}
    equal("ports of three attempts", len(ports), 3)  # [W-ENV-3]


def test_a_worker_deaf_to_sigterm_delays_only_itself(service):
    """[W-SIG-1, W-SIG-2]: the others are gone long before it is killed."""
    g = two_agents(service)
    g.shell("""trap 'date +%s%N >$MARKS/end.$RANK; exit 0' TERM
               [ $RANK = 1 ] && trap '' TERM
               [ $RANK = 0 ] && [ $PLIANT_ATTEMPT = 1 ] && sleep 0.5 && exit 1
               [ $PLIANT_ATTEMPT = 2 ] && exit 0
               while :; do sleep 0.1; done""",
            env={"MARKS": str(g.marks)}, **{"max-failures": 1, "stop-timeout": "8 s"})
    g.wait_end()
    ends = [int((g.marks / f"end.{rank}").read_text()) / 1e9 for rank in (2, 3)]
    began = min(item["at_unix_ms"] for entry in g.failures() for item in entry) / 1000
    if max(ends) - began > 7:
        raise Failed(f"others ended {max(ends) - began:.1f} s after the stop")


def test_a_deaf_worker_is_killed_when_its_node_goes(service):
    """[W-SIG-3]: long before stop-timeout."""
    g = two_agents(service)
    service.start_agent("n3")
    g.shell("trap '' TERM; while :; do sleep 0.1; done", **{"stop-timeout": "50 s"})
    attempt = g.all_up()[0][1]
    name = g.all_up()[3][2]
    began = time.monotonic()
    service.ctl("drain", name, "--deadline", "3 s", json_out=False)
    up = g.all_up(but=(attempt,))
    equal("the node is left", name in {row[2] for row in up.values()}, False)
    if time.monotonic() - began > 45:
        raise Failed("deaf workers delayed the move")
    service.daemon.kill()  # nobody waits for their end


def test_grandchildren_die(service):
    """[W-SIG-5]"""
    g = two_agents(service)
    g.shell("""setsid sleep 1000 & echo $! >$MARKS/child.$PLIANT_ATTEMPT.$RANK
               [ $PLIANT_ATTEMPT = 2 ] && exit 0
               [ $RANK = 0 ] && sleep 0.5 && exit 1
               wait""", env={"MARKS": str(g.marks)}, **{"max-failures": 1})
    g.wait_end()
    pids = [int(path.read_text()) for path in g.marks.glob("child.*")]
    equal("children", len(pids), 8)
    service.wait("they are gone", lambda: not any(alive(pid) for pid in pids))


# ---- what ranks do together ------------------------------------------------------------------------

PREAMBLE = """
import json, os, pathlib, sys, time
sys.path.append(%r)
import pliant
rank, marks = int(os.environ["RANK"]), pathlib.Path(os.environ["MARKS"])
def mark(name, text=""):
    (marks / f".{name}.{rank}").write_text(text)
    (marks / f".{name}.{rank}").rename(marks / f"{name}.{rank}")
def all_say(name, n=4):
    while len(list(marks.glob(f"{name}.*"))) < n:
        time.sleep(0.02)
""" % str(SOURCE / "python")


def python(g, script, **options):
    return g.submit(["python3", "-c", PREAMBLE + script], env={"MARKS": str(g.marks)}, **options)


def marked(g, name, n=4):
    """What the ranks have marked, once all of them have."""
    return g.wait(f"{n} ranks say {name}", lambda: [p.read_text() for p in sorted(g.marks.glob(f"{name}.*"))]
                  if len(list(g.marks.glob(f"{name}.*"))) == n else None)


def test_all_ranks_are_told_that_a_node_will_go(service):
    """[W-PRE-3..6, W-PRE-18, W-PRE-20]: both nodes are of one domain."""
    g = two_agents(service, "--domain", "rack")
    python(g, """
told = False
while True:
    info = pliant.get_preemption_info()
    if (info is not None) != told:
        told = not told
        mark("told" if told else "over", json.dumps(info and [info.preempted_node_ids, info.preempted_ranks,
             dict(info.preempted_node_to_ranks), info.deadline_ms, info.stop_at_ms]))
    time.sleep(0.02)
""")
    g.all_up()
    service.ctl("drain", "n2", "--deadline", "60 s", json_out=False)
    told = marked(g, "told")
    equal("one info", len(set(told)), 1)
    node = json.loads(told[0])
    equal("info", node[:3], [["n2"], [0, 1, 2, 3], {"n2": [0, 1, 2, 3]}])
    equal("it stops at the deadline", node[3], node[4])
    service.ctl("undrain", "n2", json_out=False)
    equal("withdrawn", set(marked(g, "over")), {"null"})
    service.ctl("cancel", g.job)
    g.wait_end("CANCELED")


def test_workers_that_link_nothing_are_sent_a_signal(service):
    """worker-group.preemption-signal: the file is there before it, and what the worker has started is left alone."""
    g = two_agents(service)
    g.shell("""
sleep 1000 & helper=$!
told() {
    kill -0 $helper && cp "$PLIANT_PREEMPTION_FILE" "$MARKS/.n.$RANK" && mv "$MARKS/.n.$RANK" "$MARKS/$1.$RANK"
}
trap 'told again$((n = n + 1))' USR1
touch "$MARKS/ready.$RANK"
while :; do sleep 0.05; done
""", env={"MARKS": str(g.marks)}, **{"preemption-signal": "USR1"})
    marked(g, "ready")
    pids = g.all_up()
    service.ctl("drain", "n2", "--deadline", "60 s", json_out=False)
    info = json.loads(marked(g, "again1")[0])
    equal("the notice", info["preempted_node_ids"], ["n2"])
    service.ctl("undrain", "n2", json_out=False)
    service.ctl("drain", "n1", "--deadline", "50 s", json_out=False)
    info = json.loads(marked(g, "again2")[0])
    equal("the next one, and no signal between", info["preempted_node_ids"], ["n1"])
    equal("they live", g.all_up(), pids)
    service.ctl("cancel", g.job)
    g.wait_end("CANCELED")


def test_ranks_that_call_different_things_are_told_so(service):
    """[W-RLX-7]: no hang."""
    g = two_agents(service)
    python(g, """
try:
    pliant.get_preemption_info() if rank else pliant.checkpoint_dir()
except pliant.Error as error:
    mark("error", str(error))
    all_say("error")  # or they would be stopped before they are told
    raise
""")
    g.wait_end("FAILED")
    told = set(marked(g, "error"))
    if len(told) != 1 or "rank 0 calls checkpoint_dir" not in told.pop():
        raise Failed(f"they were told: {told}")


def test_checkpoints_in_different_places_fail_the_job(service):
    """[W-CKP-2, W-STA-5]"""
    g = two_agents(service)
    python(g, """
dir = pathlib.Path(os.environ["PLIANT_RUN_DIR"]) / f"mine-{rank // 2}"
dir.mkdir(exist_ok=True)
pliant.report({}, checkpoint=dir)
""", **{"max-failures": -1})
    equal("restarts", g.wait_end("FAILED")["restarts"], 0)
    equal("nothing is registered", g.registered(), [])


def test_a_report_without_checkpoint_registers_nothing(service):
    """[W-CKP-3]"""
    g = two_agents(service)
    python(g, """
for i in range(5):
    pliant.report({"i": i})
mark("over")
""")
    g.wait_end()
    equal("registered", g.manifest()["checkpoint_results"], [])


def test_who_is_missing_is_logged(service):
    """[W-CKP-12]"""
    g = two_agents(service)
    python(g, """
while rank == 2 and not (marks / "go").exists():
    time.sleep(0.02)
pliant.get_preemption_info()
while rank == 1 and not (marks / "go-on").exists():
    time.sleep(0.02)
pliant.report({})
""", **{"collective-warn-interval": "200 ms"})

    def logged(*words):
        return service.wait(f"{words} in the log", lambda: any(
            all(word in line for word in words) for line in service.daemon.log.read_text().splitlines()))
    logged("a collective waits", 'missing="2"')
    (g.marks / "go").touch()
    logged("a report waits", 'missing="1"')
    (g.marks / "go-on").touch()
    g.wait_end()


def test_a_hang_fails_the_job_if_asked_for(service):
    """[2.1]: HangError, without a restart."""
    g = two_agents(service)
    python(g, """
mark("here")
if rank == 3:
    time.sleep(1000)
all_say("here")
pliant.get_preemption_info()
""", **{"collective-timeout": "3 s", "max-failures": -1})
    equal("restarts", g.wait_end("FAILED")["restarts"], 0)
    causes = [item["cause"] for entry in g.failures() for item in entry]
    if not any("HangError: ranks 3 " in cause for cause in causes):
        raise Failed(f"causes: {causes}")


# ---- asking it to stop ------------------------------------------------------------------------------


def test_stop_with_savepoint(service):
    """The next checkpoint that the workers report is the savepoint."""
    g = two_agents(service)
    g.train(steps=100000)
    g.wait_registered(10)
    path = service.ctl("stop", g.job, timeout="60s")["savepoint"]
    end = g.wait_end()
    equal("restarts", end["restarts"], 0)
    equal("the savepoint is the latest", path, str(g.runs / "run" / g.manifest()["latest"]))
    equal("no task is left", service.running(g.job), {})


def test_cancel(service):
    g = two_agents(service)
    g.train(steps=100000)
    g.all_up()
    service.ctl("cancel", g.job)
    g.wait_end("CANCELED")


def test_torn_checkpoints_are_moved_aside(service):
    """[W-CKP-8, W-CKP-11]"""
    g = two_agents(service)
    torn = g.runs / "run" / "checkpoint_torn"
    torn.mkdir(parents=True)
    g.train(steps=10)
    g.wait_end()
    equal("it is moved", torn.exists(), False)
    equal("to", [p.name for p in (g.runs / "run" / "_torn").iterdir()], ["checkpoint_torn-0"])


def test_it_starts_small_and_grows(service):
    """[W-ELA-1, W-ELA-5]"""
    service.start_daemon(*HEARTBEATS)
    service.start_agent("n1")
    g = Group(service)
    g.train(steps=100, workers=(2, 4))
    g.all_up(2)
    g.wait_registered(10)
    service.start_agent("n2")
    g.all_up(4)
    g.wait_end()
    start = g.check_went_on(100, 10)
    equal("world size", start["world"], "4")


def test_it_grows_without_losing_a_step(service):
    """Under `worth`, its policy: what a start takes is measured to the reports, and growing waits for one."""
    service.start_daemon(*HEARTBEATS)
    service.start_agent("n1")
    g = Group(service)
    python(g, """
world, steps = int(os.environ["WORLD_SIZE"]), open(marks / f"steps.{rank}", "a")
dir = pliant.get_checkpoint()
step = int((pathlib.Path(dir) / "rank-0").read_text()) if dir else 0
time.sleep(3)  # it loads
while True:
    time.sleep(0.02)
    step += 1
    print(step, file=steps, flush=True)
    if step % 40 == 0:
        with pliant.checkpoint_dir() as dir:
            (pathlib.Path(dir) / f"rank-{rank}").write_text(str(step))
        pliant.report({"step": step}, checkpoint=dir)
        if world == 4:
            break
""", workers=(2, 4))
    g.wait_registered(80)
    service.start_agent("n2")
    g.wait_end()
    equal("restarts", g.status["restarts"], 1)
    steps = [int(step) for step in (g.marks / "steps.0").read_text().split()]
    equal("steps, none lost and none twice", steps, list(range(1, len(steps) + 1)))
    grown = service.ctl("rescales", g.job)["rescales"][0]
    equal("it grew", [grown["judged"][key] for key in ("judgement", "from", "to")], ["gain", 2, 4])
    restart_ms = grown["judged"]["cost_slot_ms"] / 4  # with nothing to lose
    if not 1000 <= restart_ms <= 20000:
        raise Failed(f"a restart is taken to cost {restart_ms} ms")


def test_all_that_there_is_at_once(service):
    """Nodes that were there before the job cause no resize [W-ELA-1]."""
    g = two_agents(service)
    g.train(steps=10, workers=(2, 4))
    equal("restarts", g.wait_end()["restarts"], 0)


def test_a_savepoint_lets_the_job_go_on(service):
    g = two_agents(service)
    g.train(steps=100)
    g.wait_registered(10)
    path = pathlib.Path(service.ctl("savepoint", g.job, timeout="60s")["savepoint"])
    equal("it is in the run", path.parent, g.runs / "run")
    equal("restarts", g.wait_end()["restarts"], 0)


def check_end(service):
    """It ends in order, and the sanitizers have nothing to say if they are there."""
    if not service.daemon.runs():
        return
    service.ctl("shutdown")
    equal("exit code of pliantd", service.daemon.popen.wait(60), 0)
    for log in service.dir.glob("*.log"):
        if "Sanitizer" in log.read_text() or "runtime error" in log.read_text():
            raise Failed(f"see {log.name}")


def chosen(wanted):
    """All tests, those whose name holds one of the words, or part K of N for `K/N`."""
    tests = [item for item in globals().items() if item[0].startswith("test_")]
    if len(wanted) == 1 and "/" in wanted[0]:
        part, parts = map(int, wanted[0].split("/"))
        return tests[part - 1::parts]
    return [t for t in tests if not wanted or any(word in t[0] for word in wanted)]


def main():
    programs, *wanted = sys.argv[1:]
    failed = 0
    for name, test in chosen(wanted):
        began = time.monotonic()
        with Service(programs) as service:
            try:
                test(service)
                check_end(service)
                print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
            except (Failed, OSError, KeyError, IndexError) as error:
                failed += 1
                print(f"{name}: FAILED: {error!r}", flush=True)
                for log in sorted(service.dir.glob("*.log")):
                    print(f"\n{log.name}:\n{log.read_text()[-6000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
