#!/usr/bin/env python3
"""The wall clock is set, hours ahead or back: nothing that is measured in time notices. clock_test.py PROGRAMS SHIM

SHIM is shims/wall_clock.so. Daemon and agents have the same wall clock. With three of four tasks done, one that takes
its time must not look slow; who may wait for slots for an hour waits, and nodes stay: while the daemon runs, and over
its restarts on the same boot of the machine. While it runs, what has ended is kept as long as it should be.
"""
import contextlib
import pathlib
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
from service import Failed, Service  # noqa: E402

HOUR_S = 3600
DAEMON = ("-D", "heartbeat.interval=200 ms", "-D", "heartbeat.timeout=5 s", "-D", "pliant.daemon.ended-jobs-age=1 h")

BATCH = """
name: batch
vertices:
  - {id: read, parallelism: 4, command: [/bin/sh, -c, '[ $PLIANT_SUBTASK != 3 ] || while [ ! -e "$GATE" ]; do sleep 0.05; done'], env: {GATE: %s}}
  - {id: sum, command: [/bin/true]}
edges:
  - {from: read, to: sum, exchange: blocking}
config:
  jobmanager.scheduler: AdaptiveBatch
  execution.batch.speculative.enabled: true
  slow-task-detector.check-interval: 100 ms
  slow-task-detector.execution-time.baseline-lower-bound: 1 h
  slow-task-detector.execution-time.baseline-ratio: 0.5
"""

WAITER = """
name: waiter
vertices:
  - {id: work, parallelism: 90, min_parallelism: 90, command: [/bin/true]}
config:
  jobmanager.adaptive-scheduler.submission.resource-wait-timeout: 1 h
"""

STREAM = """
name: stream
vertices:
  - {id: work, parallelism: 2, command: [sleep, "1000"]}
"""


class Clock:
    """The wall clock of all processes with the shim, as seconds beside the real one."""

    def __init__(self, service, shim):
        self.path = service.dir / "wall-clock"
        self.path.write_bytes(bytes(8))
        service.env.update(LD_PRELOAD=str(pathlib.Path(shim).resolve()), WALL_CLOCK=str(self.path))

    def set(self, off_s):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("<q", off_s * 1000))


def expect(holds, what):
    if not holds:
        raise Failed(what)


def calm(service, jobs, processes, what):
    """For a while, nothing has happened that time does."""
    batch, stream, waiter = jobs
    by = time.monotonic() + 1.5
    while time.monotonic() < by:
        status = service.status(batch)
        expect(status["blocked"] == [] and status["restarts"] == 0, f"{what}: {status}")
        expect([t["attempt"] for t in status["tasks"] if t["vertex"] == "read"] == [1] * 4, f"{what}: {status}")
        expect(service.status(stream)["restarts"] == 0, f"{what}: the other job has restarted")
        state = service.status(waiter)["state"]
        expect(state == "WaitingForResources", f"{what}: the job that waits is {state}")
        expect({n["state"] for n in service.ctl("nodes")["nodes"]} <= {"up", "awaited"}, f"{what}: a node is gone")
        expect(service.ctl("ping")["uptime_ms"] < HOUR_S * 1000, f"{what}: the daemon is said to be up for hours")
        time.sleep(0.1)
    service.wait(f"{what}: all nodes are up", lambda: service.node_state("n1") == service.node_state("n2") == "up")
    expect(set(service.running(stream)) == processes, f"{what}: other processes run")


def begin(service):
    gate = service.dir / "gate"
    service.start_daemon(*DAEMON)
    for name in ("n1", "n2"):
        service.start_agent(name, slots=4)
    ended = service.submit_text(STREAM.replace('sleep, "1000"', "/bin/true"))
    service.wait("a job has ended", lambda: service.status(ended)["state"] == "Finished")
    stream = service.submit_text(STREAM)
    batch = service.submit_text(BATCH % gate)
    waiter = service.submit_text(WAITER)
    service.wait("one task of four is left", lambda: sorted(
        t["state"] for t in service.status(batch)["tasks"]) == ["FINISHED"] * 3 + ["RUNNING"])
    service.wait("the other job runs", lambda: len(service.running(stream)) == 2)
    return (batch, stream, waiter), ended, gate


def main(programs, shim):
    with Service(programs) as service:
        clock = Clock(service, shim)
        jobs, ended, gate = begin(service)
        processes = set(service.running(jobs[1]))
        for hours in (5, -5, 0, 30):
            clock.set(hours * HOUR_S)
            calm(service, jobs, processes, f"{hours} hours, while it runs")
            expect(service.status(ended)["state"] == "Finished", f"{hours} hours: what has ended is gone")
        for hours in (30, 60, -60, 5):
            service.daemon.kill(signal.SIGKILL)
            clock.set(hours * HOUR_S)
            service.start_daemon()
            calm(service, jobs, processes, f"{hours} hours, over a restart")
        gate.touch()
        service.wait("the batch job has ended", lambda: service.status(jobs[0])["job_status"] == "FINISHED")
        print("clock_test: passed")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
