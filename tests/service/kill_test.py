#!/usr/bin/env python3
"""Whatever dies, at whatever moment: nothing is lost, nothing runs twice, nothing is left over.

    kill_test.py PROGRAMS [--rounds 20] [--seed 1] [--first N] [--verbose]

A real pliantd (ipc, with odd seeds tcp), three agents of which one keeps its tasks, up to three jobs of
kill_task. In each round one to three times one of daemon, agent, keeper, worker, agent and keeper, or all of them gets
SIGKILL or is frozen for a while, at a random moment, while clients submit, scale, cancel, stop, drain, and agents
come and go. What died is started again. When all has settled (within SETTLE seconds):

  slots       no two jobs in a slot, no vertex twice; this is watched during the round as well
  tasks       the processes are exactly those that the daemon knows, each once, each with a keeper
  orphans     no process of a task that is over, no keeper without its agent
  requests    what was acknowledged holds: jobs, bounds, ends, savepoints; an unanswered one holds or does not
  checkpoints ids never go back, what is listed is there, every start goes on from the newest one, with its counts
  adoption    where only the daemon died the same processes run on
  progress    no slot is free that a job wants

All choices follow from the seed: `--seed N --first R --rounds 1` makes round R's again (on a fresh service). A failure
prints seed, round, what was done, and the directory that is left with logs and state. Exit code 1.
"""
import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from service import Failed, Refused, Service, reap  # noqa: E402

SETTLE = 60  # seconds; wide, a loaded machine may be slow
AGENTS = ("n1", "n2", "n3")
KEEPS = "n3"  # the agent with --keep-tasks
SLOTS = 4
JOBS = 3  # at most that many live at once
KEY_GROUPS = 8
GROUP = ("worker",)  # the vertex of a worker group
KINDS = (("count",), ("deaf",), ("family",), ("count", "deaf"), ("count", "family"), GROUP, GROUP)
MANIFEST = "_manifest.json"
GOOD_ENDS = (0, -signal.SIGTERM)  # after SIGTERM; the latter before it has begun to listen to signals
DESCENDANT = "kill_task-kin"

DAEMON_OPTIONS = {
    "heartbeat.interval": "200 ms",
    "heartbeat.timeout": "3 s",
    "pliant.agent.orphan-timeout": "30 s",
    "pliant.agent.stop-timeout": "300 ms",
    "slot.idle.timeout": "500 ms",
    "execution.checkpointing.num-retained": "2",
    "execution.checkpointing.timeout": "2 s",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "100 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "200 ms",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "100 ms",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "500 ms",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "50 ms",
    "restart-strategy.exponential-delay.max-backoff": "300 ms",
}


class Finding(Exception):
    """The service did what it must not."""


class Unsettled(Exception):
    """Not yet as it has to be; worth another look."""


# ---- processes --------------------------------------------------------------------------------


def environment_of(pid):
    """{} if there is no such process, or a dead one."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            pairs = f.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def arguments_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def stat_of(pid):
    """(name, state, parent), or None."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            text = f.read()
    except OSError:
        return None
    rest = text[text.rindex(")") + 2 :].split()
    return text[text.index("(") + 1 : text.rindex(")")], rest[0], int(rest[1])


def tell(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def group_of(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return pid


class Process:
    """One process of a task: its first, which leads a group, or a descendant."""

    def __init__(self, pid, name, env, parent):
        self.pid, self.parent = pid, parent
        self.descendant = name == DESCENDANT or group_of(pid) != pid
        self.job, self.vertex = env["PLIANT_JOB_ID"], env.get("PLIANT_VERTEX", GROUP[0])
        self.subtask = int(env.get("PLIANT_SUBTASK") or env["RANK"])
        self.attempt = int(env["PLIANT_ATTEMPT"])  # of a group's worker: the group's
        self.node, self.slot = env["PLIANT_NODE_ID"], int(env["PLIANT_SLOT"])

    @property
    def task(self):
        return self.job, self.vertex, self.subtask

    def __repr__(self):
        what = "descendant of " if self.descendant else ""
        return f"{what}{self.job[:6]}/{self.vertex}/{self.subtask}#{self.attempt}@{self.node}.{self.slot} pid={self.pid}"


# ---- the service --------------------------------------------------------------------------------


class Victim(Service):
    """The service under test; it can be looked at from outside."""

    def __init__(self, programs, transport):
        super().__init__(programs, transport)
        self.task_program = self.programs / "tests" / "kill_task"
        self.diaries, self.savepoints = self.dir / "diaries", self.dir / "savepoints"
        self.diaries.mkdir()
        config = self.dir / "options.json"
        config.write_text(json.dumps(DAEMON_OPTIONS))
        self.daemon_options = ("--config", config)

    def start_agent(self, name, ready=True):
        keeps = ["--keep-tasks"] if name == KEEPS else []
        return super().start_agent(name, "--drain-timeout", "2s", *keeps, slots=SLOTS, ready=ready)

    def look(self, *arguments):
        try:
            return self.ctl(*arguments, timeout="5s")
        except Refused as refused:
            raise Unsettled(str(refused)) from None

    def scan(self):
        """(processes of tasks, {node: [pid of keeper]})"""
        tasks, keepers = [], {node: [] for node in AGENTS}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            stat = stat_of(pid)
            if not stat or stat[1] in "ZX":
                continue
            if stat[0] == "pliant-keeper":
                for node in AGENTS:
                    if str(self.dir / f"work-{node}") in arguments_of(pid):
                        keepers[node].append(pid)
            elif stat[0] in ("kill_task", DESCENDANT):
                env = environment_of(pid)
                if env.get("PLIANT_WORKER_SOCKET", "").startswith(f"{self.dir}/"):
                    tasks.append(Process(pid, stat[0], env, stat[2]))
        return tasks, keepers


# ---- jobs: what was asked for ---------------------------------------------------------------------


class Job:
    def __init__(self, rng, number, service):
        self.id, self.name = f"{rng.getrandbits(128):032x}", f"job{number}"
        self.known = False  # its submission was answered
        self.finite = rng.random() < 0.2
        self.ends = {}  # {"cancel" or "stop": was it answered?}
        self.last_checkpoint = 0
        self.read, self.newest_attempt, self.parts = 0, 0, {}
        kind = rng.choice(KINDS)
        self.bounds = {}  # {vertex: [(min, max) that may hold]}
        self.group = kind == GROUP
        self.reported = (0, 0)  # of a group: (time, count) of the last report that was answered
        self.bounds = {vertex: [self.choose_bounds(rng)] for vertex in kind}
        command = [str(service.task_program), str(service.diaries)] + (["60"] if self.finite else [])
        spec = {
            "name": self.name,
            **(self.group_spec(command, service) if self.group else self.graph_spec(command)),
            "config": {
                "jobmanager.scheduler": "adaptive",
                "execution.checkpointing.interval": rng.choice(["150 ms", "500 ms"]),
                "execution.checkpointing.savepoint-dir": str(service.savepoints),
            },
        }
        self.file = service.dir / f"{self.name}.json"
        self.file.write_text(json.dumps(spec))

    def graph_spec(self, command):
        vertices = list(self.bounds)
        return {
            "vertices": [
                {"id": vertex, "command": command, "min_parallelism": low, "parallelism": high,
                 "max_parallelism": KEY_GROUPS}
                for vertex, [(low, high)] in self.bounds.items()
            ],
            "edges": [{"from": a, "to": b} for a, b in zip(vertices, vertices[1:])],
        }  # fmt: skip

    def group_spec(self, command, service):
        ((low, high),) = self.bounds[GROUP[0]]
        return {
            "worker_group": {
                "name": self.name, "storage-path": str(service.dir / "runs"), "command": command,
                "min-workers": low, "max-workers": high, "max-failures": -1, "checkpoint.num-to-keep": 2,
                "stop-timeout": "300 ms",
            }
        }  # fmt: skip

    @staticmethod
    def choose_bounds(rng):
        low = rng.choice((1, 1, 2))
        return low, rng.randint(low, 5)

    def may_have_ended(self):
        return self.finite or bool(self.ends)

    def must_end(self):
        return any(self.ends.values())

    def accepted_ends(self):
        """A task that is lost between the savepoint of a stop and its own end fails the job [S-SWS-5]."""
        ends = {"CANCELED"} if "cancel" in self.ends else set()
        ends |= {"FINISHED"} if self.finite else set()
        return ends | ({"FINISHED", "FAILED"} if "stop" in self.ends else set())


# ---- the test -----------------------------------------------------------------------------------


class Test:
    def __init__(self, options):
        self.options = options
        self.service = Victim(options.programs, "tcp" if options.seed % 2 else "ipc")
        self.jobs, self.ended = [], []  # that live, as far as is known; that have ended
        self.n_jobs = 0
        self.done, self.lock = [], threading.Lock()  # what was done in this round
        self.findings = []  # of threads
        self.pids = {}
        self.round = 0

    def note(self, text):
        with self.lock:
            self.done.append(f"{time.time():.3f} {text}")

    # -- requests, in a thread of their own

    def request(self, *arguments, timeout="5s"):
        """True: acknowledged, False: refused, None: nobody knows; and the answer."""
        try:
            code, answer = 0, self.service.ctl(*arguments, timeout=timeout)
        except Refused as refused:
            code, answer = refused.code, refused.text.strip()
        self.note(f"pliantctl {' '.join(map(str, arguments))}: {code} {answer}")
        if code not in (0, 1, 3):
            raise Finding(f"pliantctl {' '.join(map(str, arguments))} ends with {code}: {answer}")
        return {0: True, 1: False}.get(code), answer

    def submit(self, rng):
        if len(self.jobs) >= JOBS:
            return
        self.n_jobs += 1
        job = Job(rng, self.n_jobs, self.service)
        self.jobs.append(job)
        job.known = self.request("submit", "--id", job.id, job.file)[0]
        if job.known is False:
            raise Finding(f"{job.name} is refused")

    def pick(self, rng):
        number = rng.random()
        jobs = [job for job in self.jobs if job.known and not job.ends]
        return jobs[int(number * len(jobs))] if jobs else None

    def scale(self, rng):
        job, bounds = self.pick(rng), Job.choose_bounds(rng)
        if not job:
            return
        vertex = rng.choice(sorted(job.bounds))
        answer, _ = self.request("scale", job.id, f"{vertex}={bounds[0]}:{bounds[1]}")
        if answer is True and len(job.bounds[vertex]) == 1:
            job.bounds[vertex] = [bounds]
        elif answer is not False:
            job.bounds[vertex].append(bounds)

    def cancel(self, rng):
        job = self.pick(rng)
        if job and (answer := self.request("cancel", job.id)[0]) is not False:
            job.ends["cancel"] = answer is True

    def stop(self, rng):
        job = self.pick(rng)
        if not job:
            return
        job.ends["stop"] = False
        acknowledged, answer = self.request("stop", job.id)
        if acknowledged is True:
            job.ends["stop"] = True
            self.must_be_there(job, answer["savepoint"])

    def savepoint(self, rng):
        job = self.pick(rng)
        if job:
            acknowledged, answer = self.request("savepoint", job.id, timeout="3s")
            if acknowledged is True:
                self.must_be_there(job, answer["savepoint"])

    def checkpoint(self, rng):
        job = self.pick(rng)
        if job:
            self.request("checkpoint", job.id)

    def drain(self, rng):
        node, deadline = rng.choice(AGENTS), rng.choice(([], ["--deadline=500ms"]))
        self.request("drain", node, *deadline)

    def leave(self, rng):
        """An agent goes in good order."""
        node = rng.choice(AGENTS)
        agent = self.service.agents[node]
        self.note(f"SIGTERM to agent {node} pid={agent.pid}")
        agent.send(signal.SIGTERM)

    def must_be_there(self, job, path):
        if not self.is_there(job, path):
            raise Finding(f"{job.name}: {path} was acknowledged, and is not there")

    @staticmethod
    def is_there(job, path):
        """One manifest for each checkpoint; a worker group has one for all."""
        return os.path.isdir(path) if job.group else os.path.exists(f"{path}/{MANIFEST}")

    REQUESTS = (submit, submit, scale, scale, scale, cancel, stop, savepoint, checkpoint, drain, leave)

    def make_requests(self, plan):
        try:
            for pause, request, rng in plan:
                time.sleep(pause)
                request(self, rng)
        except Finding as finding:
            self.findings.append(str(finding))

    # -- faults

    def victims(self, target, number):
        """[(name, pid, how to start it again or None)]"""
        service = self.service
        node = AGENTS[int(number * len(AGENTS))]
        tasks, keepers = service.scan()
        agents = [(f"agent {n}", a.pid, lambda n=n: service.start_agent(n, ready=False))
                  for n, a in service.agents.items() if a.runs()]  # fmt: skip
        daemon = [("daemon", service.daemon.pid, lambda: service.start_daemon(ready=False))]
        if target == "daemon":
            return daemon
        if target == "agent":
            return [a for a in agents if a[0] == f"agent {node}"]
        if target == "keeper":
            return [(f"keeper of {node}", pid, None) for pid in keepers[node]]
        if target == "all":
            return daemon + agents + [(f"keeper of {n}", pid, None) for n in AGENTS for pid in keepers[n]]
        if target == "node":
            return [a for a in agents if a[0] == f"agent {node}"] + [(f"keeper of {node}", pid, None) for pid in keepers[node]]
        mains = sorted((t for t in tasks if not t.descendant), key=lambda t: t.task)
        return [(f"worker {t}", t.pid, None) for t in mains[int(number * len(mains)) :][:1]]

    def strike(self, before, target, sig, number, away):
        self.watch(before)
        victims = self.victims(target, number)
        for name, pid, _ in victims:
            self.note(f"{sig.name} to {name} pid={pid}")
            tell(pid, sig)
        self.watch(away)
        for name, pid, again in victims:
            if sig == signal.SIGSTOP:
                self.note(f"SIGCONT to {name} pid={pid}")
                tell(pid, signal.SIGCONT)
            elif again:
                process = self.service.daemon if name == "daemon" else self.service.agents[name.split()[1]]
                code = process.popen.wait(SETTLE)
                if sig == signal.SIGTERM and code not in GOOD_ENDS:
                    raise Finding(f"{name} ends with {code}: {process.last_words()}")
                again()
                self.note(f"{name} started again")

    def watch(self, seconds):
        """Pass time; what must hold at every moment is looked at meanwhile."""
        until = time.monotonic() + seconds
        while True:
            self.check_slots([t for t in self.service.scan()[0] if not t.descendant])
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.03))

    def check_slots(self, tasks):
        owners, vertices = {}, {}
        for t in tasks:
            other = owners.setdefault((t.node, t.slot), t)
            twin = vertices.setdefault((t.node, t.slot, t.vertex), t)
            if other.job != t.job or twin is not t:
                both = other if other.job != t.job else twin
                if all(environment_of(p.pid) for p in (both, t)):  # neither died while we looked
                    raise Finding(f"a slot with two owners: {both} and {t}")

    # -- when all has settled

    def settle(self, adopted):
        until = time.monotonic() + SETTLE
        while True:
            try:
                self.revive()
                return self.check(adopted)
            except Unsettled as unsettled:
                if time.monotonic() >= until:
                    raise Finding(f"not settled within {SETTLE} s: {unsettled}") from None
            self.watch(0.05)

    def revive(self):
        """Agents that left come back."""
        service = self.service
        reap({process.pid for process in (service.daemon, *service.agents.values())})
        if not service.daemon.runs():
            raise Finding(f"the daemon ended by itself, with {service.daemon.popen.returncode}")
        for node, agent in service.agents.items():
            if agent.runs():
                continue
            if agent.popen.returncode not in GOOD_ENDS:
                raise Finding(f"agent {node} ended by itself, with {agent.popen.returncode}")
            service.start_agent(node, ready=False)
            self.note(f"agent {node} had left and is started again")

    def check(self, adopted):
        listed = {job["job_id"]: job for job in self.service.look("list", "--all")["jobs"]}
        self.check_nodes()
        self.check_jobs(listed)
        live = {job.id: (job, self.service.look("status", job.id)) for job in self.jobs}
        tasks, keepers = self.service.scan()
        self.check_tasks(live, tasks, keepers)
        for job, status in live.values():
            self.check_bounds(job, status)
            self.check_checkpoints(job, status)
        self.check_progress(live, tasks)
        for job in self.jobs + self.ended:
            self.check_diary(job)
        pids = {t.task: t.pid for t in tasks if not t.descendant}
        if adopted is not None and not all(pids.get(task) == pid for task, pid in adopted.items()):
            jobs = {job.id for job in self.jobs}
            lost = [task for task in adopted if task[0] in jobs and pids.get(task) != adopted[task]]
            if lost:
                raise Finding(f"only the daemon died, but these processes are gone: {lost}")
        self.pids = pids

    def check_jobs(self, listed):
        for job in list(self.jobs):
            row = listed.get(job.id)
            if row is None:
                if job.known:
                    raise Finding(f"{job.name} was acknowledged and is lost")
                self.submit_again(job)
                raise Unsettled(f"{job.name} was submitted once more")
            if not job.known:
                self.submit_again(job)
            status = row["job_status"]
            if row["state"] == "Finished" and status in ("FINISHED", "CANCELED", "FAILED"):
                if status not in job.accepted_ends():
                    raise Finding(f"{job.name} has ended as {status}; asked for: {job.ends}, finite: {job.finite}")
                self.jobs.remove(job)
                self.ended.append(job)
            elif job.must_end():
                raise Unsettled(f"{job.name} is {row['state']}, {status} after an acknowledged {job.ends}")
            elif row["state"] != "Executing" or status != "RUNNING":
                raise Unsettled(f"{job.name} is {row['state']}, {status}")
        for job in self.ended:
            if job.id not in listed:
                raise Finding(f"{job.name}, which has ended, is lost")

    def submit_again(self, job):
        """As a client that got no answer."""
        if self.service.look("submit", "--id", job.id, job.file)["job"] != job.id:
            raise Finding(f"{job.name} has another id at the second try")
        job.known = True

    def check_nodes(self):
        nodes = {node["node"]: node for node in self.service.look("nodes")["nodes"]}
        for name in AGENTS:
            node = nodes.get(name)
            if node and node["state"] == "draining":
                self.service.look("undrain", name)
            if not node or node["state"] != "up":
                raise Unsettled(f"node {name}: {node}")
        if len(nodes) != len(AGENTS):
            raise Finding(f"nodes that nobody started: {sorted(nodes)}")

    def check_tasks(self, live, tasks, keepers):
        known, mains, attempts = {}, {}, {}
        for job, status in live.values():
            for t in status["tasks"]:
                if t["state"] != "RUNNING" or not t["pid"]:
                    raise Unsettled(f"{job.name}: {t}")
                known[job.id, t["vertex"], t["subtask"]] = (t["pid"], t["node"])
        for t in tasks:
            if t.descendant:
                continue
            twin = attempts.setdefault((t.task, t.attempt), t)
            if twin is not t and all(environment_of(p.pid) for p in (t, twin)):
                raise Finding(f"an attempt runs twice: {t} and {twin}")
            if known.get(t.task) != (t.pid, t.node):
                raise Unsettled(f"{t} runs; the daemon knows {known.get(t.task)}")
            mains[t.task] = t
        for task, where in known.items():
            if task not in mains:
                raise Unsettled(f"the daemon knows {task} at {where}, which does not run")
        for node, pids in keepers.items():
            if len(pids) != 1:
                raise Unsettled(f"node {node} has keepers {pids}")
        for t in tasks:
            if t.task not in mains or t.attempt != mains[t.task].attempt:
                raise Unsettled(f"left over: {t}")
            if t.parent != keepers[t.node][0]:
                raise Unsettled(f"no child of its keeper: {t}, parent {t.parent}")

    def check_bounds(self, job, status):
        for vertex, may_hold in job.bounds.items():
            is_so = tuple(status["vertices"][vertex]["bounds"])
            if is_so not in may_hold:
                raise Finding(f"{job.name}: bounds of {vertex} are {is_so}, asked for: {may_hold}")
            job.bounds[vertex] = [is_so]
            if not is_so[0] <= status["vertices"][vertex]["parallelism"] <= is_so[1]:
                raise Unsettled(f"{job.name}: {vertex} has {status['vertices'][vertex]}")

    def check_checkpoints(self, job, status):
        rows = self.service.look("checkpoints", job.id)["checkpoints"]
        done = [int(r["id"]) for r in rows if r["status"] == "completed" and r["kind"] == "checkpoint"]
        newest = int(status["checkpoint"]["id"]) if status["checkpoint"] else 0
        if max(done, default=0) < newest or newest < job.last_checkpoint:
            raise Finding(f"{job.name}: checkpoint {newest} after {job.last_checkpoint}, listed {done[:5]}")
        if len(set(done)) != len(done):
            raise Finding(f"{job.name}: a checkpoint id twice: {done}")
        job.last_checkpoint = newest
        job.completed = {int(r["id"]): r for r in rows if r["status"] == "completed" and r["kind"] == "checkpoint"}
        for row in rows:
            if row["status"] == "completed" and (row["kind"] == "savepoint" or int(row["id"]) == max(done)):
                if not self.is_there(job, row["path"]):
                    again = self.service.look("checkpoints", job.id)["checkpoints"]
                    if row["kind"] == "savepoint" or int(again[0]["id"]) == int(row["id"]):
                        raise Finding(f"{job.name}: {row} is not on disk")

    def check_progress(self, live, tasks):
        used = len({(t.node, t.slot) for t in tasks if not t.descendant})
        wanted = sum(max(v["bounds"][1] for v in status["vertices"].values()) for _, status in live.values())
        if used != min(wanted, SLOTS * len(AGENTS)):
            raise Unsettled(f"{used} slots are used, {wanted} wanted, {SLOTS * len(AGENTS)} there")

    def check_diary(self, job):
        """Starts go on from the newest checkpoint, with what it had."""
        try:
            with open(f"{self.service.diaries}/{job.id}") as f:
                f.seek(job.read)
                text = f.read()
        except FileNotFoundError:
            return
        for line in text[: text.rfind("\n") + 1].splitlines():
            what, *pairs = line.split()
            entry = dict(pair.split("=", 1) for pair in pairs)
            counts = dict(map(int, pair.split(":")) for pair in entry["counts"].split(","))
            if what == "part":
                for group, n in counts.items():
                    job.parts.setdefault((entry["id"], entry["vertex"], group), set()).add(n)
            elif what == "reported":
                job.reported = max(job.reported, (counts[0], int(entry["t"])))
            elif job.group:
                self.check_group_start(job, entry, counts[0])
            else:
                self.check_start(job, entry, counts)
        job.read += text.rfind("\n") + 1

    def check_start(self, job, entry, counts):
        attempt, number = int(entry["attempt"]), re.search(r"-(\d+)$", entry["from"])
        restored = int(number[1]) if number else 0
        if attempt < job.newest_attempt:
            return  # a late one, which is stopped
        job.newest_attempt = attempt
        before = [i for i, r in getattr(job, "completed", {}).items() if r["ended_unix_ms"] < int(entry["t"])]
        if restored < max(before, default=0):
            raise Finding(f"{job.name}: started from {restored}, although {max(before)} was completed: {entry}")
        for group, n in counts.items():
            saved = job.parts.get((str(restored), entry["vertex"], group), {0} if restored == 0 else set())
            if n not in saved:
                raise Finding(f"{job.name}: key group {group} has {n}, checkpoint {restored} {saved}: {entry}")

    def check_group_start(self, job, entry, count):
        """A report that was answered is registered, whatever died after that."""
        attempt = int(entry["attempt"])
        if attempt < job.newest_attempt:
            return
        job.newest_attempt = attempt
        if count < job.reported[0]:
            raise Finding(f"{job.name}: started from {count}, although {job.reported} was registered: {entry}")
        if count not in job.parts.get((entry["from"], entry["vertex"], 0), {0} if not entry["from"] else set()):
            raise Finding(f"{job.name}: started from {count}, which nobody wrote: {entry}")

    def check_journals(self):
        """Each job's journal, replayed, gives the same actions."""
        for job in self.jobs + self.ended[-JOBS:]:
            record = self.service.dir / f"{job.name}.record"
            self.service.look("record", job.id, "--output", record)
            done = subprocess.run([self.service.programs / "pliant-sim", "replay", record],
                                  capture_output=True, text=True)  # fmt: skip
            if done.returncode != 0:
                raise Finding(f"replay of {job.name}: {done.stdout}{done.stderr}")

    # -- rounds

    @staticmethod
    def choose_strike(rng):
        """When, whom, how, which of them, for how long."""
        target = rng.choice(("daemon", "daemon", "agent", "agent", "keeper", "worker", "worker", "node", "all"))
        sig = rng.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM if target == "daemon" else signal.SIGKILL))
        away = rng.uniform(0.1, 5) if sig == signal.SIGSTOP else rng.uniform(0, 1.5)
        return rng.uniform(0, 0.5), target, sig, rng.random(), away

    def run_round(self, number):
        rng = random.Random(f"{self.options.seed}/{number}")
        self.done.clear()
        quiet = rng.random() < 0.3
        strikes = [self.choose_strike(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        plan = [] if quiet and self.jobs else [
            (rng.uniform(0, 0.4), rng.choice(self.REQUESTS), random.Random(rng.getrandbits(64)))
            for _ in range(rng.randint(1, 5))
        ]  # fmt: skip
        if not self.jobs:
            plan.insert(0, (0, Test.submit, random.Random(rng.getrandbits(64))))
        requests = threading.Thread(target=self.make_requests, args=(plan,))
        requests.start()
        try:
            for strike in strikes:
                self.strike(*strike)
        finally:
            requests.join()
        if self.findings:
            raise Finding(self.findings[0])
        only_daemon = not plan and {target for _, target, *_ in strikes} == {"daemon"}
        self.settle(dict(self.pids) if only_daemon else None)
        if number % 10 == 0:
            self.check_journals()
        what = ", ".join(f"{sig.name} {target}" for _, target, sig, *_ in strikes)
        return f"{what}{' alone' if not plan else ''}"

    def run(self):
        options = self.options
        self.service.start_daemon()
        for node in AGENTS:
            self.service.start_agent(node)
        self.settle(None)
        for number in range(options.first, options.first + options.rounds):
            begin, self.round = time.monotonic(), number
            what = self.run_round(number)
            if options.verbose:
                print(f"round {number}: {what}, {len(self.jobs)} jobs, {time.monotonic() - begin:.1f} s", flush=True)
        self.check_journals()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("programs", help="directory of pliantd and the others")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=1, help="number of the first round")
    options.add_argument("--verbose", action="store_true")
    options = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with all that is cleaned up
    test = Test(options)
    try:
        test.run()
        print(f"{options.rounds} rounds from seed {options.seed}: nothing lost, nothing twice, nothing left over")
        return 0
    except (Finding, Unsettled, Failed) as finding:
        kept = f"{test.service.dir}-kept"
        subprocess.run(["cp", "-a", test.service.dir, kept], stderr=subprocess.DEVNULL)  # while it goes on
        print(f"seed {options.seed}, round {test.round}: {finding}\ndone in this round:", *test.done, sep="\n  ")
        print(f"logs and state: {kept}\nagain: {sys.argv[0]} {options.programs} --seed {options.seed} "
              f"--rounds {test.round}", flush=True)  # fmt: skip
        return 1
    finally:
        test.service.close()


if __name__ == "__main__":
    sys.exit(main())
