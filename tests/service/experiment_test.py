#!/usr/bin/env python3
"""The reference experiment, case 000, with real processes. experiment_test.py PROGRAMS

Job, timings and what must come out are those of tests/data/cases/000-seed-8-2.json, whose numbers
were measured on the reference: the job starts on half of the slots, grows when a node joins, and
shrinks when one is lost. What is checked strictly is the order of states and parallelisms, and that nothing
happens early; how late it may be is left to the machine. Then the journal of it is replayed.
"""
import json
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from service import SOURCE, Failed, Service  # noqa: E402

CASE = SOURCE / "tests/data/cases/000-seed-8-2.json"
SLACK_MS = 50  # of clocks that are read at different places
# No heartbeat is missed in the time of the test: a loss shows only by the keeper's farewell.
HEARTBEATS = ("-D", "heartbeat.interval=5 s", "-D", "heartbeat.timeout=5 min")


def real_job(case):
    """The job of the case, with processes that count."""
    job = dict(case["job"])
    job["vertices"] = [dict(vertex, command=["python3", "count.py"], cwd="examples/service")
                       for vertex in job["vertices"]]
    return json.dumps(job)


class Experiment:
    def __init__(self, service, case):
        self.service, self.case = service, case
        self.at_ms = {(line.get("ev"), line.get("node")): line.get("t") for line in case["trace"]}

    def check(self, what, got, want):
        if got != want:
            raise Failed(f"{what}: {got}, not {want}")
        print(f"- {what}: {got}", flush=True)

    def no_sooner(self, what, ms, least_ms):
        if ms < least_ms - SLACK_MS:
            raise Failed(f"{what} after {ms} ms, not {least_ms}")
        print(f"- {what} after {ms / 1000:.2f} s", flush=True)

    def until_ms(self, ms):
        time.sleep(max(0, (self.began_ms + ms) / 1000 - time.time()))

    def states(self):
        return self.follower.of("state", self.job)

    def executing_since(self, parallelism):
        """None: it is not executing, or with another parallelism."""
        last = self.states()[-1]
        good = last["to"] == "Executing" and set(last["vertices"].values()) == {parallelism}
        return last["t_unix_ms"] if good else None

    def runs_with(self, parallelism):
        """Wait until it does, with the tasks that belong to it."""
        n = parallelism * len(self.case["job"]["vertices"])
        return self.service.wait(f"it runs with {parallelism}", lambda: (
            len(self.service.running(self.job)) == n and self.executing_since(parallelism)))

    def live(self):
        """The experiment; when what happened, in Unix milliseconds."""
        service = self.service
        service.start_daemon(*HEARTBEATS)
        service.start_agent("n1", slots=2)
        self.follower = service.follow()
        self.job = service.submit_text(real_job(self.case))
        self.began_ms = service.status(self.job)["submitted_unix_ms"]
        started = self.runs_with(2)
        self.until_ms(self.at_ms["node_up", "n2"])
        joined = time.time() * 1000
        service.start_agent("n2", slots=2)
        grown = self.runs_with(4)
        self.until_ms(self.at_ms["node_down", "n1"])
        self.tasks = service.running(self.job)
        service.agents["n1"].kill()
        lost = service.wait("n1 is lost", lambda: [
            e["t_unix_ms"] for e in self.follower.of("node") if e["change"] == "lost"])[0]
        shrunk = self.runs_with(2)
        return started, joined, grown, lost, shrunk

    def check_story(self, started, joined, grown, lost, shrunk):
        expect, states = self.case["expect"], self.states()
        visited = [states[0]["from"]] + [e["to"] for e in states]
        parallelism = [max(e["vertices"].values()) if e["to"] == "Executing" else 0
                       for e in states if e["to"] in ("WaitingForResources", "Executing")]
        self.check("states", visited, expect["states_visited"])
        self.check("parallelism", parallelism,
                   [max(at["vertices"].values()) for at in expect["parallelism_at"]])
        wait_ms, cooldown_ms, backoff_ms = 10000, 5000, 1000  # of the case's options
        self.no_sooner("it starts on half of the slots", started - self.began_ms, wait_ms)
        self.no_sooner("it grows after the start", grown - started, cooldown_ms)
        self.no_sooner("it grows after n2 has joined", grown - joined, 0)
        self.no_sooner("it runs again on what is left", shrunk - lost, backoff_ms + wait_ms)

    def check_rest(self):
        expect, status = self.case["expect"], self.service.status(self.job)
        running = self.service.running(self.job)
        rescales = [(r["trigger"], r["end"], *(r["vertices"]["src"][at] for at in ("pre", "post")))
                    for r in reversed(self.service.ctl("rescales", self.job)["rescales"])]
        failures = self.service.ctl("failures", self.job)["failures"]
        self.check("state", [status["state"], status["job_status"]],
                   [expect["final_state"], expect["job_status"]])
        self.check("restarts", status["restarts"], expect["max_restarts"])
        self.check("nodes of the tasks", {node for *_, node in running.values()}, {"n2"})
        self.check("processes that are the old ones", set(self.tasks) & set(running), set())
        self.check("rescales", rescales, [("INITIAL_SCHEDULE", "SUCCEEDED", 0, 2),
                                          ("NEW_RESOURCE_AVAILABLE", "SUCCEEDED", 2, 4),
                                          ("RECOVERABLE_FAILOVER", "SUCCEEDED", 4, 2)])
        self.check("failures", {item["reason"] for f in failures for item in f["items"]},
                   {"node-lost"})

    def check_replay(self):
        recording = self.service.dir / "recording.jsonl"
        self.service.ctl("record", self.job, "--output", recording, json_out=False)
        done = subprocess.run([self.service.programs / "pliant-sim", "replay", recording],
                              capture_output=True, encoding="utf-8")
        print(f"- {done.stdout.strip()}", flush=True)
        self.check("exit code of the replay", (done.returncode, done.stderr), (0, ""))

    def check_end(self):
        self.check("end", self.service.ctl("cancel", self.job, "--wait")["job_status"], "CANCELED")
        self.check_replay()
        self.service.ctl("shutdown")
        self.check("exit code of pliantd", self.service.daemon.popen.wait(60), 0)

    def run(self):
        self.check_story(*self.live())
        self.check_rest()
        self.check_replay()
        self.check_end()


def main():
    with Service(sys.argv[1]) as service:
        try:
            Experiment(service, json.loads(CASE.read_text())).run()
        except Failed as error:
            print(f"experiment_test: {error}")
            for log in service.dir.glob("*.log"):
                print(f"\n{log.name}:\n{log.read_text()[-4000:]}")
            return 1
    print("experiment_test: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
