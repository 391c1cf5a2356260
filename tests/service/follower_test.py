#!/usr/bin/env python3
"""Who follows the events and stops reading costs the daemon nothing, and hears of the gap. follower_test.py PROGRAMS

A batch job with speculation, of hundreds of tasks; the daemon's queue for a follower holds 100 events. Two `pliantctl
watch` are stopped all the while, one reads. The daemon does not grow with what the stopped ones miss; let go, they say
how much that was, go on, and end when the job has ended.
"""
import json
import pathlib
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from service import Failed, Service  # noqa: E402

TASKS, SLOTS = 300, 30
GROWS_KIB = 4 * 1024  # beside what the job itself needs; a queue of 100 events is some KiB

JOB = """
name: many
vertices:
  - {id: first, parallelism: %d, command: [/bin/true]}
  - {id: second, parallelism: %d, command: [/bin/true]}
  - {id: last, parallelism: 1, command: [/bin/sh, -c, 'while [ ! -e "$GATE" ]; do sleep 0.05; done'], env: {GATE: %s}}
edges:
  - {from: first, to: second, pattern: pointwise, exchange: blocking}
  - {from: second, to: last, exchange: blocking}
config:
  jobmanager.scheduler: AdaptiveBatch
  execution.batch.speculative.enabled: true
"""


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise Failed(f"process {pid} has no memory")


def run(service, name):
    """A job up to its last task, which waits; its id and the gate."""
    gate = service.dir / f"gate-{name}"
    job = service.submit_text(JOB % (TASKS, TASKS, gate))
    return job, gate


def last_runs(service, job):
    return any(t["vertex"] == "last" and t["state"] == "RUNNING" for t in service.status(job)["tasks"])


def watch(service, *words):
    """It runs, and writes what it sees into a file."""
    file = service.dir / f"watch-{len(words)}"
    process = subprocess.Popen(service.ctl_command("watch", *words), env=service.env, stdin=subprocess.DEVNULL,
                               stdout=file.open("w"), stderr=subprocess.STDOUT)
    service.wait("it watches", lambda: file.stat().st_size > 0)
    return process, file


def expect(holds, what):
    if not holds:
        raise Failed(what)


def main(programs):
    with Service(programs) as service:
        # AddressSanitizer keeps what was freed for later complaints; that is no growth.
        service.env["ASAN_OPTIONS"] = "quarantine_size_mb=1:thread_local_quarantine_size_kb=16"
        service.start_daemon("-D", "pliant.daemon.event-queue=100")
        service.start_agent("n1", slots=SLOTS)
        job, gate = run(service, "alone")
        service.wait("a job has run", lambda: last_runs(service, job), 300)
        gate.touch()
        service.wait("it has ended", lambda: service.status(job)["state"] == "Finished")
        alone = rss_kib(service.daemon.pid)
        watchers = []
        try:
            reader = service.follow()
            watchers.append(watch(service, "--json"))
            job, gate = run(service, "watched")
            watchers.append(watch(service, "--json", job))
            for process, _ in watchers:
                process.send_signal(signal.SIGSTOP)
            service.wait("the job has run", lambda: last_runs(service, job), 300)
            watched = rss_kib(service.daemon.pid)
            expect(watched < alone + GROWS_KIB, f"pliantd: {alone} KiB, with those who do not read {watched}")
            for process, _ in watchers:
                process.send_signal(signal.SIGCONT)
            service.wait("the job's follower has heard of the gap",
                         lambda: '"kind":"gap"' in watchers[1][1].read_text())
            gate.touch()
            code = watchers[1][0].wait(60)
            expect(code == 0, f"the job's follower ends with {code}: {watchers[1][1].read_text()[-500:]}")
            events = [json.loads(line) for line in watchers[1][1].read_text().splitlines()]
            gaps = [e["missed"] for e in events if e["kind"] == "gap"]
            seen = len(reader.of("task", job))
            expect(all(gaps) and sum(gaps) > TASKS, f"gaps {gaps}, of {seen} events of tasks")
            expect(seen > 2 * TASKS, f"who reads has seen {seen} of them")
            service.wait("the other one reads on", lambda: f'"job":"{job}"' in watchers[0][1].read_text()
                         and '"ended"' in watchers[0][1].read_text())
            print(f"follower_test: passed; pliantd {alone} KiB, then {watched}; missed {gaps}")
        finally:
            for process, _ in watchers:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main(sys.argv[1])
