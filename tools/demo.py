#!/usr/bin/env python3
"""A job grows and shrinks with its cluster, and nothing that dies takes it down. demo.py PROGRAMS

Starts pliantd and an agent with 2 slots in a temporary directory, hands in
examples/service/count.yaml, which wants 4 slots, and then: a second agent joins; the first one is
killed; pliantd is killed and started again. The timeline is told as it happens, every step is
checked, and whatever was started is ended. Exit code 0 only if all of it came out as it should.
PROGRAMS is the folder with pliantd and the others.
"""
import json
import pathlib
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "service"))
from service import Failed, Service, alive  # noqa: E402

JOB = "examples/service/count.yaml"
KEY_GROUPS, SLOTS, WANTED = 128, 2, 4
# As in the job file; the checks below want at least so much.
WAITS_S, COOLDOWN_S, BACKOFF_S = 10, 5, 1
# When what is done, in seconds since the job was handed in; later if the job is not so far yet.
JOIN_S, KILL_AGENT_S, KILL_DAEMON_S, DAEMON_AWAY_S, END_S = 15, 35, 56, 4, 70
SLACK_S = 0.1  # of clocks that are read in different places

REASONS = {
    "started": f"it wants {WANTED} slots and {SLOTS} are there: waits {WAITS_S} s for more",
    "sufficient-resources": "{slots} slots have settled, enough to run",
    "desired-resources": "all {slots} slots that it wants are there",
    "plan-ready": "runs with {parallelism}",
    "rescale": "rescale: {slots} slots now",
    "target-reachable": "its tasks are down, {slots} slots as planned",
    "node-lost": f"a node is lost: restart, after a back-off of {BACKOFF_S} s",
    "backoff-over": f"{{slots}} of {WANTED} slots: waits {WAITS_S} s for more",
    "cancel-requested": "as it was asked to",
    "all-canceled": "its tasks are down",
}


class Story:
    """What has happened so far: told as it happens, kept for the checks."""

    def __init__(self):
        self.lock = threading.RLock()
        self.start_ms = None
        self.states, self.completed, self.saved = [], [], {}

    def elapsed(self, unix_ms=None):
        return ((unix_ms or time.time() * 1000) - self.start_ms) / 1000

    def tell(self, what, text="", unix_ms=None):
        with self.lock:
            print(f"{self.elapsed(unix_ms):7.1f} s  {what:<45} {text}".rstrip(), flush=True)

    def deed(self, text):
        """What the demo does to them."""
        with self.lock:
            print(f"{self.elapsed():7.1f} s  >>> {text}", flush=True)

    def take(self, event):
        """An event of the stream."""
        take = {"state": self.take_state, "checkpoint": self.take_checkpoint,
                "node": self.take_node}
        with self.lock:
            if event["kind"] in take:
                take[event["kind"]](event)

    def take_state(self, e):
        self.start_ms = self.start_ms or e["t_unix_ms"]
        self.states.append(e)
        parallelism = e["vertices"].get("count", 0)
        if e["from"] == "Executing" and self.completed:
            last = self.completed[-1]
            saved = self.saved.get(last["id"])
            count = f", count {saved.total:,}" if saved else ""
            age = (e["t_unix_ms"] - last["t_unix_ms"]) / 1000
            self.tell("  what is safe", f"checkpoint {last['id']}{count}, {age:.2f} s ago",
                      e["t_unix_ms"])
        why = REASONS.get(e["reason"], e["reason"])
        self.tell(f"{e['from']} > {e['to']}",
                  why.format(slots=e["slots"], parallelism=parallelism), e["t_unix_ms"])

    def take_checkpoint(self, e):
        if e["status"] != "completed":
            return
        e["states_before"] = len(self.states)
        self.completed.append(e)
        try:
            self.saved[e["id"]] = Checkpoint(e["path"])
        except FileNotFoundError:
            pass  # a later one has taken its place already

    def take_node(self, e):
        text = {"up": f"{e['slots']} slots", "back": "its agent tells what runs there",
                "lost": e["cause"]}
        if self.start_ms and e["change"] in text:
            self.tell(f"node {e['node']} {e['change']}", text[e["change"]], e["t_unix_ms"])

    def runs(self):
        """The times in which it ran: [{"from", "to" (None: still), "parallelism", "index"}]."""
        found = []
        for i, e in enumerate(list(self.states)):
            if e["to"] == "Executing":
                found.append({"from": e["t_unix_ms"], "to": None, "index": i,
                              "parallelism": e["vertices"]["count"]})
            elif e["from"] == "Executing" and found:
                found[-1]["to"] = e["t_unix_ms"]
        return found


class Checkpoint:
    """The counters that the parts of a checkpoint hold, as their files say."""

    def __init__(self, path):
        self.counters = {}
        for file in pathlib.Path(path).glob("count/*/counters.json"):
            for group, n in json.loads(file.read_text()).items():
                if int(group) in self.counters:
                    raise Failed(f"{path}: two subtasks have saved key group {group}")
                self.counters[int(group)] = n
        if len(self.counters) != KEY_GROUPS:
            raise FileNotFoundError(path)
        self.total = sum(self.counters.values())


class Logs:
    """What the tasks have printed, by the run of the job in which they started."""

    def __init__(self, service, job, runs):
        self.lines = [[] for _ in runs]
        for file in service.dir.glob(f"work-*/logs/{job}/*.stdout"):
            lines = [self.parse(line) for line in file.read_text().splitlines(True)
                     if line.endswith("\n")]
            if lines:
                began_ms = (lines[0]["t"] + SLACK_S) * 1000
                self.lines[sum(run["from"] <= began_ms for run in runs) - 1].append(lines)

    @staticmethod
    def parse(line):
        event, *pairs = line.split()
        got = {key: float(value) if key == "t" else int(value)
               for key, value in (pair.split("=") for pair in pairs)}
        return {"event": event, **got}

    def at_start(self, run):
        """The count with which its tasks began, together; None if one of them has said nothing."""
        return sum(lines[0]["total"] for lines in self.lines[run]) if self.lines[run] else None

    def at_end(self, run):
        return sum(lines[-1]["total"] for lines in self.lines[run])

    def tasks(self, run):
        return len(self.lines[run])

    def saved(self, run):
        """{checkpoint: count} of those that all tasks say they wrote."""
        found = {}
        for lines in self.lines[run]:
            for line in lines:
                if line["event"] == "checkpoint":
                    found.setdefault(str(line["id"]), []).append(line["total"])
        return {id: sum(totals) for id, totals in found.items() if len(totals) == self.tasks(run)}


class Demo:
    def __init__(self, service):
        self.service, self.story = service, Story()
        self.checks = []

    def check(self, what, good, otherwise=""):
        """One thing that must be so."""
        if not good:
            raise Failed(f"{what}: {otherwise or 'no'}")
        self.checks.append(what)

    def until_s(self, seconds):
        time.sleep(max(0, seconds - self.story.elapsed()))

    def state(self, n_runs):
        """It runs for the n-th time, with all its tasks."""
        runs = self.story.runs()
        if len(runs) < n_runs or runs[-1]["to"]:
            return None
        tasks = self.service.running(self.job)
        return tasks if len(tasks) == runs[-1]["parallelism"] else None

    def wait_for_run(self, n, nodes):
        """Wait for the n-th run, and look where its tasks are."""
        tasks = self.service.wait(f"the job runs for the {n}. time", lambda: self.state(n))
        self.check(f"it has started {n} times", len(self.story.runs()) == n,
                   f"{len(self.story.runs())} times; see the timeline")
        on = sorted(node for *_, node in tasks.values())
        for node in sorted(set(on)):
            pids = [str(pid) for pid, task in sorted(tasks.items()) if task[3] == node]
            self.story.tell(f"  processes on {node}", " ".join(pids))
        self.check(f"run {n} has a task in each slot of {nodes}",
                   on == sorted(nodes * SLOTS), f"they are on {on}")
        self.check(f"the processes of run {n} are there", all(alive(pid) for pid in tasks))
        return tasks

    def wait_for_checkpoint(self):
        """A checkpoint of the present run."""
        self.service.wait("a checkpoint completes", lambda: self.story.completed and (
            self.story.completed[-1]["states_before"] == len(self.story.states)))

    # ---- the steps ----------------------------------------------------------------------------

    def start_on_half(self):
        self.service.start_daemon()
        self.service.start_agent("n1", slots=SLOTS)
        self.service.follow(self.story.take)
        where = self.service.endpoints["agents"]
        print(f"pliantd listens at {where}; node n1 offers {SLOTS} slots.\n"
              f"Now {JOB}: it counts in {KEY_GROUPS} key groups, wants {WANTED} slots, "
              "and takes a checkpoint each 2 s.\n", flush=True)
        self.job = self.service.submit(JOB)
        self.wait_for_run(1, ["n1"])
        waited = self.story.elapsed(self.story.runs()[0]["from"])
        self.check("it waited for more slots before it started on half of them",
                   waited >= WAITS_S - SLACK_S, f"only {waited:.1f} s")

    def grow(self):
        self.until_s(JOIN_S)
        self.wait_for_checkpoint()
        self.story.deed(f"a second agent is started: node n2, {SLOTS} slots")
        self.service.start_agent("n2", slots=SLOTS)
        self.wait_for_run(2, ["n1", "n2"])
        first, second = self.story.runs()
        self.check("it grew by a rescale", self.visited(first, second) ==
                   ["Restarting", "CreatingExecutionGraph", "Executing"] and
                   self.story.states[first["index"] + 1]["reason"] == "rescale",
                   f"{self.visited(first, second)}")
        ran = (first["to"] - first["from"]) / 1000
        self.check("not before the cooldown was over", ran >= COOLDOWN_S - SLACK_S, f"{ran:.1f} s")

    def shrink(self):
        self.until_s(KILL_AGENT_S)
        self.wait_for_checkpoint()
        tasks = self.service.running(self.job)
        agent = self.service.agents["n1"]
        self.story.deed(f"the agent of n1 is killed: kill -9 {agent.pid}")
        agent.kill()
        self.service.wait("the processes on n1 end", lambda: not any(
            alive(pid) for pid, task in tasks.items() if task[3] == "n1"))
        self.wait_for_run(3, ["n2"])
        second, third = self.story.runs()[1:]
        self.check("it shrank after the loss, by way of a new wait", self.visited(second, third) ==
                   ["Restarting", "WaitingForResources", "CreatingExecutionGraph", "Executing"] and
                   self.story.states[second["index"] + 1]["reason"] == "node-lost",
                   f"{self.visited(second, third)}")
        down = (third["from"] - second["to"]) / 1000
        self.check("after the back-off and the wait for more slots",
                   down >= BACKOFF_S + WAITS_S - SLACK_S, f"{down:.1f} s")

    def lose_daemon(self):
        self.until_s(KILL_DAEMON_S)
        self.wait_for_checkpoint()
        before = self.service.running(self.job)
        status = self.service.status(self.job)
        self.story.deed(f"pliantd is killed: kill -9 {self.service.daemon.pid}")
        away = time.time()
        self.service.daemon.kill()
        time.sleep(DAEMON_AWAY_S)
        back = time.time()
        counted = self.counted(away, back)
        self.check("tasks count on while pliantd is away", counted > 0 and all(map(alive, before)))
        self.story.tell("  nobody is there, its tasks go on", f"{counted:,} more counted meanwhile")
        self.story.deed("pliantd is started again")
        self.service.start_daemon()
        self.service.wait("node n2 is back", lambda: self.service.node_state("n2") == "up")
        after = self.service.wait("all tasks are known again", lambda: self.state(3))
        self.check("after the restart of pliantd the same processes run", after == before,
                   f"{before} became {after}")
        now = self.service.status(self.job)
        for key in ("state", "job_status", "restarts", "rescales"):
            self.check(f"and the job's {key} is as it was", now[key] == status[key],
                       f"{status[key]} became {now[key]}")
        self.story.tell(f"  the job is {now['state']} as before",
                        "the same processes: " + " ".join(map(str, sorted(after))))
        n = len(self.story.completed)
        self.service.wait("the new pliantd completes a checkpoint",
                          lambda: len(self.story.completed) > n)
        last = self.story.completed[-1]
        self.story.tell(f"  checkpoint {last['id']} is done", "the first one of the new pliantd",
                        last["t_unix_ms"])
        self.outage_s, self.counted_meanwhile = back - away, counted

    def end(self):
        self.until_s(END_S)
        self.wait_for_checkpoint()
        self.runs, self.end_ms = self.story.runs(), time.time() * 1000
        tasks = self.service.running(self.job)
        self.check("it still runs", self.runs[-1]["to"] is None and len(self.runs) == 3)
        self.story.deed("the job is canceled")
        self.logs = Logs(self.service, self.job, self.runs)
        answer = self.service.ctl("cancel", self.job, "--wait")
        self.check("it is canceled", answer["job_status"] == "CANCELED", str(answer))
        self.service.wait("its processes end", lambda: not any(map(alive, tasks)))
        self.service.ctl("shutdown")
        self.check("pliantd ends well", self.service.daemon.popen.wait(60) == 0)
        self.check("the agent ends well", self.service.agents["n2"].kill(signal.SIGTERM) == 0)
        self.service.wait("nothing is left of them", lambda: not self.service.leftovers())

    # ---- what came of it ----------------------------------------------------------------------

    def visited(self, run, later):
        return [e["to"] for e in self.story.states[run["index"] + 1:later["index"] + 1]]

    def counted(self, since, until):
        """How far the tasks of the present run came between these times, by what they printed."""
        logs = Logs(self.service, self.job, self.story.runs())
        printed = [[line["total"] for line in lines if since <= line["t"] <= until]
                   for lines in logs.lines[-1]]
        return sum(totals[-1] - totals[0] for totals in printed if totals)

    def restored(self, k):
        """The checkpoint that was the last one when run k ended."""
        until = self.runs[k]["index"] + 1
        return [e for e in self.story.completed if e["states_before"] <= until][-1]

    def check_count(self):
        """Not by anybody's word: by the files of the checkpoints and what the tasks printed."""
        for k, run in enumerate(self.runs):
            n = self.logs.tasks(k)
            self.check(f"each task of run {k + 1} has printed", n == run["parallelism"],
                       f"{n} of {run['parallelism']}")
        for k in range(len(self.runs) - 1):
            id = self.restored(k)["id"]
            wrote, began = self.logs.saved(k).get(id), self.logs.at_start(k + 1)
            self.check(f"run {k + 2} began with the count of checkpoint {id}", wrote == began,
                       f"{wrote} was saved, {began} restored")
        written = {id: n for k in range(len(self.runs)) for id, n in self.logs.saved(k).items()}
        for id, checkpoint in self.story.saved.items():
            if id in written:
                self.check(f"the files of checkpoint {id} hold what the tasks printed",
                           checkpoint.total == written[id], f"{checkpoint.total}, {written[id]}")
        files = [self.story.saved[id] for id in sorted(self.story.saved, key=int)]
        self.check("files of checkpoints were read", len(files) >= len(self.runs))
        for earlier, later in zip(files, files[1:]):
            self.check("no counter is lower than in an earlier checkpoint", all(
                later.counters[group] >= n for group, n in earlier.counters.items()))

    def summary(self):
        at = self.story.elapsed
        rows = [("when it ran", "parallelism", "nodes", "count", "")]
        for k, (run, nodes) in enumerate(zip(self.runs, ("n1", "n1 n2", "n2"))):
            rows.append((f"{at(run['from']):5.1f} to {at(run['to'] or self.end_ms):5.1f} s",
                         str(run["parallelism"]), nodes,
                         f"{self.logs.at_start(k):,} to {self.logs.at_end(k):,}", ""))
        table(rows)
        rows = [("what happened", "restart", "not running", "counted twice", "goes on from")]
        for k, what in ((0, "n2 joined"), (1, "n1 was killed")):
            before, after = self.runs[k], self.runs[k + 1]
            from_ = self.restored(k)
            age = (before["to"] - from_["t_unix_ms"] + from_["duration_ms"]) / 1000
            rows.append((what, f"{before['parallelism']} to {after['parallelism']}",
                         f"{(after['from'] - before['to']) / 1000:.2f} s", f"{age:.2f} s",
                         f"checkpoint {from_['id']}, count {self.logs.at_start(k + 1):,}"))
        rows.append(("pliantd was killed", "none", "0 s", "0 s",
                     f"the same processes, which counted {self.counted_meanwhile:,} in the "
                     f"{self.outage_s:.0f} s without it"))
        table(rows)
        print("The count never went back behind a checkpoint: the files of "
              f"{len(self.story.saved)} checkpoints were read,\n"
              "and each run began with exactly what the last one before it held. "
              f"All {len(self.checks)} checks are good.")

    def run(self):
        self.start_on_half()
        self.grow()
        self.shrink()
        self.lose_daemon()
        self.end()
        self.check_count()
        print()
        self.summary()


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip())
    print()


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupted(number, frame):
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)  # what ends is not disturbed again
    raise KeyboardInterrupt


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for number in ENDS:
        signal.signal(number, interrupted)
    try:
        with Service(sys.argv[1], transport="tcp") as service:
            demo = Demo(service)
            try:
                demo.run()
            except Failed as error:
                print(f"\ndemo: this did not come out as it should: {error}", file=sys.stderr)
                for process in (service.daemon, *service.agents.values()):
                    if process:
                        print(f"\n{process.log.name}:\n{process.last_words()}", file=sys.stderr)
                return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; all that it had started is ended", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
