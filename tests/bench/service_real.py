#!/usr/bin/env python3
"""Real agents and real processes: what a restart costs beside the least that it can cost.

service_real.py BUILD_DIR [NAME...]

Prints one JSON line a figure. Names: restart, join, lost, idle, back, commits. Without: all.

A worker is a Python program that writes its pid and the time into a file and sleeps. A restart
counts from the SIGKILL of a worker to the last of the lines of all that were started again. The
floor is tests/bench/tasks/respawn.c, a C program that waits, kills and spawns the same, measured
in turns with ours; of several runs the best counts on both sides.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "service"))
from service import Service, die_with_parent  # noqa: E402

RUNS = 5
WORKER = ("import os,time;os.write(os.open('{}',os.O_WRONLY|os.O_APPEND),"
          "b'%d %.6f\\n'%(os.getpid(),time.monotonic()));time.sleep(1000)")
JOB = """
name: bench
vertices:
  - id: work
    parallelism: {most}
    min_parallelism: {least}
    command: [python3, -c, {code}]
config:
  restart-strategy.type: fixed-delay
  restart-strategy.fixed-delay.attempts: 1000000
  restart-strategy.fixed-delay.delay: 0 s
  jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout: 0 s
  jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling: 0 s
  jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout: 0 s
"""


def calibration_ns():
    """1,000,000 dependent steps, as the other benches have them, measured by `bench`."""
    out = subprocess.run([BUILD / "tests/bench", "parallelism"], stdout=subprocess.PIPE, check=True,
                         text=True).stdout
    return json.loads(out.splitlines()[0])["calibration_ns"]


def report(bench, **figures):
    print(json.dumps({"bench": bench, **figures, "calibration_ns": CALIBRATION_NS},
                     separators=(",", ":")), flush=True)


class Lines:
    """What workers have written: (pid, time) each."""

    def __init__(self, path):
        self.path = path
        path.write_text("")
        self.n = 0

    def next(self, n):
        """The next n lines, when they are there."""
        by = time.monotonic() + 20
        while True:
            lines = self.path.read_text().splitlines()[self.n:]
            if len(lines) >= n:
                self.n += n
                return [(int(line.split()[0]), float(line.split()[1])) for line in lines[:n]]
            if time.monotonic() > by:
                raise SystemExit(f"not {n} lines in time, but {len(lines)}")
            time.sleep(0.005)

    def forget(self):
        self.n = len(self.path.read_text().splitlines())


def cost_of(lines, n, disturb):
    """From what `disturb` does to the last of n new lines."""
    start = time.monotonic()
    disturb()
    got = lines.next(n)
    return max(at for _, at in got) - start, got


class Floor:
    def __init__(self, service, n, most):
        self.lines = Lines(service.dir / "floor")
        self.process = subprocess.Popen(
            [BUILD / "tests/respawn", str(n), str(most), "python3", "-c",
             WORKER.format(self.lines.path)], preexec_fn=die_with_parent)
        self.workers = self.lines.next(n)

    def close(self):
        self.process.terminate()
        self.process.wait()


def start_job(service, lines, least, most, first):
    code = json.dumps(WORKER.format(lines.path))
    job = service.submit_text(JOB.format(least=least, most=most, code=code))
    return job, lines.next(first)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def ratios(ours, floor):
    return {"seconds": round(ours, 4), "floor_seconds": round(floor, 4),
            "ratio": round(ours / floor, 3)}


# ---- a worker is killed ---------------------------------------------------------------------


def restart(n):
    ours = floor = 1e9
    with Service(BUILD) as service:
        service.start_daemon()
        service.start_agent("n1", slots=n)
        lines = Lines(service.dir / "lines")
        _, workers = start_job(service, lines, n, n, n)
        bare = Floor(service, n, n)
        for _ in range(RUNS):
            time.sleep(0.3)  # both sides sit still
            t, bare.workers = cost_of(bare.lines, n, lambda: kill(bare.workers[n // 2][0]))
            floor = min(floor, t)
            time.sleep(0.3)
            t, workers = cost_of(lines, n, lambda: kill(workers[n // 2][0]))
            ours = min(ours, t)
        bare.close()
    report("service_restart", workers=n, **ratios(ours, floor))


# ---- agents come and go ---------------------------------------------------------------------


def join_floor(service, n):
    bare = Floor(service, n, 2 * n)
    time.sleep(0.3)
    t, _ = cost_of(bare.lines, 2 * n, lambda: bare.process.send_signal(signal.SIGUSR1))
    bare.close()
    return t


def join(n):
    """From n on one agent to 2 n on two, counted from the start of the second agent."""
    ours = floor = 1e9
    for _ in range(3):
        with Service(BUILD) as service:
            floor = min(floor, join_floor(service, n))
            service.start_daemon()
            service.start_agent("n1", slots=n)
            lines = Lines(service.dir / "lines")
            start_job(service, lines, 1, 2 * n, n)
            time.sleep(0.3)
            t, _ = cost_of(lines, 2 * n,
                           lambda: service.start_agent("n2", slots=n, ready=False))
            ours = min(ours, t)
    report("service_join", workers=2 * n, **ratios(ours, floor))


def lost(n):
    """One of two agents is killed: the other's n workers run again."""
    ours = floor = 1e9
    for _ in range(3):
        with Service(BUILD) as service:
            bare = Floor(service, n, n)
            time.sleep(0.3)
            t, _ = cost_of(bare.lines, n, lambda: kill(bare.workers[0][0]))
            floor = min(floor, t)
            bare.close()
            service.start_daemon()
            service.start_agent("n1", slots=n)
            service.start_agent("n2", slots=n)
            lines = Lines(service.dir / "lines")
            job, _ = start_job(service, lines, 1, 2 * n, n)
            service.wait("all run", lambda: len(service.running(job)) == 2 * n)
            time.sleep(0.3)
            lines.forget()
            t, _ = cost_of(lines, n, lambda: kill(service.agents["n2"].pid))
            ours = min(ours, t)
    report("service_lost", workers=n, **ratios(ours, floor))


# ---- an agent that has nothing to do ---------------------------------------------------------


def cpu_ms(pid):
    """Of all threads, as the scheduler of the kernel counts it."""
    return sum(int(t.joinpath("schedstat").read_text().split()[0])
               for t in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e6


def rss_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def idle():
    with Service(BUILD, transport="tcp") as service:
        service.start_daemon()
        agent = service.start_agent("n1", slots=4)
        time.sleep(2)
        keeper = int(pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text())
        pids = (agent.pid, keeper)
        start = [cpu_ms(pid) for pid in pids]
        time.sleep(30)
        spent = [cpu_ms(pid) - before for pid, before in zip(pids, start)]
        report("service_idle", seconds=30, cpu_ms=round(sum(spent), 2),
               agent_mib=round(rss_mib(agent.pid), 2), keeper_mib=round(rss_mib(keeper), 2))


# ---- the daemon comes back -------------------------------------------------------------------


def back():
    """From the daemon's next life to the sessions of 8 real agents with it."""
    took = []
    with Service(BUILD, transport="tcp") as service:
        service.start_daemon()
        names = [f"n{i}" for i in range(8)]
        for name in names:
            service.start_agent(name, slots=1)
        for _ in range(RUNS):
            service.daemon.kill()
            service.start_daemon()
            start = time.monotonic()
            service.wait("all are back",
                         lambda: all(service.node_state(name) == "up" for name in names))
            took.append(time.monotonic() - start)
    report("service_back", agents=len(names), seconds=round(min(took), 3),
           slowest=round(max(took), 3))


# ---- commits -----------------------------------------------------------------------------------


def commits():
    """Syncs that strace sees beside the commits that the daemon counts, while a job restarts."""
    with Service(BUILD) as service:
        service.start_daemon()
        service.start_agent("n1", slots=8)
        lines = Lines(service.dir / "lines")
        job, workers = start_job(service, lines, 8, 8, 8)
        counts = service.dir / "strace"
        tracer = subprocess.Popen(["strace", "-f", "-q", "-e", "trace=fsync,fdatasync", "-o", counts,
                                   "-p", str(service.daemon.pid)], stderr=subprocess.DEVNULL)
        service.wait("strace looks", lambda: counts.exists())
        time.sleep(0.5)
        before = service.ctl("ping")["counts"]
        for _ in range(5):
            kill(workers[0][0])
            workers = lines.next(8)
        service.wait("all run", lambda: len(service.running(job)) == 8)
        after = service.ctl("ping")["counts"]
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        syncs = len(re.findall(r"f(?:data)?sync\(", counts.read_text()))
        report("service_commits", syncs=syncs,
               **{k: after[k] - before[k] for k in ("commits", "turns", "steps")})


BENCHES = {
    "restart": lambda: [restart(n) for n in (2, 8, 32)],
    "join": lambda: [join(n) for n in (1, 4)],
    "lost": lambda: [lost(n) for n in (1, 4)],
    "idle": idle,
    "back": back,
    "commits": commits,
}

if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    CALIBRATION_NS = calibration_ns()
    for chosen in sys.argv[2:] or BENCHES:
        BENCHES[chosen]()
