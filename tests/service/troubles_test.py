#!/usr/bin/env python3
"""Known troubles of such systems, each tried on a real service: troubles_test.py PROGRAMS [NUMBER...]

Each function is named after the numbers that it tries; tests/known-troubles.md has all of them.
"""
import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
from service import WAIT_S, Failed, Refused, Service, die_with_parent  # noqa: E402

BRISK = [word for option in (
    "heartbeat.interval=200 ms",
    "heartbeat.timeout=10 s",
    "pliant.agent.stop-timeout=2 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=0 s",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout=0 s",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout=100 ms",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay=0 s") for word in ("-D", option)]  # fmt: skip
SLEEP = "exec sleep 1000"
RESTARTS = """
config:
  restart-strategy.type: fixed-delay
  restart-strategy.fixed-delay.attempts: {attempts}
  restart-strategy.fixed-delay.delay: 0 s
"""


def job_text(script, name="job", parallelism=1, attempts=0):
    return (f"name: {name}\nvertices:\n  - id: work\n    parallelism: {parallelism}\n"
            f"    command: [sh, -c, {script!r}]\n" + RESTARTS.format(attempts=attempts))  # fmt: skip


def check(condition, what):
    if not condition:
        raise Failed(what)


def runs(service, job, n):
    """The pids of the job's tasks, once there are n."""
    return service.wait(f"{n} tasks of {job} run",
                        lambda: len(service.running(job)) == n and set(service.running(job)))


def status_is(service, job, word):
    return service.status(job)["job_status"] == word


def causes(service, job):
    """Of all failures that the history has."""
    return [item["cause"] for entry in service.ctl("failures", job)["failures"]
            for item in entry["items"]]


def node(service, name):
    return next(n for n in service.ctl("nodes")["nodes"] if n["node"] == name)


def bounds(service, job):
    return service.status(job)["vertices"]["work"]["bounds"]


# ---- jobs ---------------------------------------------------------------------------------------


def trouble_071_089(service):
    """New requirements are in force, once however often they are said, and after a crash."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", slots=4)
    job = service.submit_text(job_text(SLEEP, parallelism=1, attempts=9))
    runs(service, job, 1)
    service.ctl("scale", job, "work=1:3")
    service.daemon.kill()
    service.start_daemon()
    check(bounds(service, job) == [1, 3], f"acknowledged bounds are lost: {bounds(service, job)}")
    pids = runs(service, job, 3)
    rescales = service.status(job)["rescales"]
    service.ctl("scale", job, "work=1:3")  # a repeat
    service.ctl("scale", job, "work=1:3")
    time.sleep(0.5)
    check(set(service.running(job)) == pids, "a repeated request restarts the job")
    check(service.status(job)["rescales"] == rescales, "a repeated request is a rescale")
    service.ctl("scale", job, "work=1:2")  # a new one
    runs(service, job, 2)


def trouble_074(service):
    """The history of failures is there after any number of restarts, with its labels [P-FO-5]."""
    service.start_daemon(*BRISK, "-D", "pliant.failure-labels=exit=1-127, node=n? -> type=user")
    service.start_agent("n1")
    job = service.submit_text(job_text("exit 7", attempts=9))
    service.wait("the job fails", lambda: status_is(service, job, "FAILED"))
    before = causes(service, job)
    check(len(before) == 10 and set(before) == {"exit code 7"}, f"ten failures became {before}")
    for _ in range(2):
        service.daemon.kill()
        service.start_daemon()
        check(causes(service, job) == before, f"after a restart: {causes(service, job)}")
        item = service.ctl("failures", job)["failures"][0]["items"][0]
        check((item["exit_code"], item["labels"]) == (7, {"type": "user"}), f"its last one: {item}")


def trouble_076_087(service):
    """Far more is wanted than there is: the job runs on with what it has, and says both."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", slots=2)
    job = service.submit_text(job_text(SLEEP, parallelism=2, attempts=9))
    pids = runs(service, job, 2)
    service.ctl("scale", job, "work=1:128")
    for _ in range(20):
        check(set(service.running(job)) == pids, "the job starves")
        time.sleep(0.1)
    vertex = service.status(job)["vertices"]["work"]
    check(vertex == {"parallelism": 2, "desired": 128, "bounds": [1, 128]}, f"status is {vertex}")


def trouble_091(service):
    """What is canceled stays so, whatever the restart strategy says, and after a crash."""
    service.start_daemon(*BRISK)
    service.start_agent("n1")
    job = service.submit_text(job_text(SLEEP, attempts=1000))
    runs(service, job, 1)
    service.ctl("cancel", job)
    service.wait("the job is canceled", lambda: status_is(service, job, "CANCELED"))
    service.daemon.kill()
    service.start_daemon()
    service.wait("the agent is back", lambda: service.node_state("n1") == "up")
    check(status_is(service, job, "CANCELED") and not service.running(job), "it runs again")
    check(service.ctl("cancel", job) == {"job_status": "CANCELED"}, "another answer to a repeat")


def trouble_093_096_098(service):
    """Failures to start, and crashes, are counted, named and final; the agent stays registered."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", slots=4)
    incarnation = node(service, "n1")["incarnation"]
    missing = service.submit_text("name: missing\nvertices: [{id: work, parallelism: 1, command: "
                                  "[/no/such/command]}]" + RESTARTS.format(attempts=2))
    crash = service.submit_text(job_text("kill -SEGV $$", name="crash", attempts=5))
    for job, n, word in ((missing, 3, "/no/such/command"), (crash, 6, "SIGSEGV")):
        service.wait("the job fails", lambda: status_is(service, job, "FAILED"))
        found = causes(service, job)
        check(len(found) == n and all(word in cause for cause in found), f"{n} times: {found}")
    check(node(service, "n1")["incarnation"] == incarnation, "the agent began a new life")
    check(service.agents["n1"].log.read_text().count("in session") == 1, "a new session")


def trouble_100(service):
    """All that end together are taken in, and then it is decided: one restart."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", slots=4)
    gate = service.dir / "gate"
    job = service.submit_text(job_text(
        f'[ "$PLIANT_ATTEMPT" != 1 ] && {SLEEP}; while ! [ -e {gate} ]; do sleep 0.01; done; '
        'exit "4$PLIANT_SUBTASK"', parallelism=4, attempts=1))  # fmt: skip
    runs(service, job, 4)
    gate.touch()
    service.wait("the job was restarted", lambda: service.status(job)["restarts"] == 1)
    runs(service, job, 4)
    check(service.status(job)["restarts"] == 1, "more than one restart")


# ---- nodes --------------------------------------------------------------------------------------


def trouble_105_106(service):
    """A drain ends by its deadline, however long tasks take to stop; what it stops is not finished,
    even with exit code 0, and runs again elsewhere."""
    service.start_daemon(*BRISK, "-D", "pliant.agent.stop-timeout=10 min")
    service.start_agent("n1", slots=1, ready=True)
    polite = service.submit_text(job_text("trap 'exit 0' TERM; while :; do sleep 0.1; done",
                                          name="polite", attempts=1))  # fmt: skip
    runs(service, polite, 1)
    service.start_agent("n2", slots=1)
    deaf = service.submit_text(job_text("trap '' TERM; while :; do sleep 0.1; done", name="deaf",
                                        attempts=1))  # fmt: skip
    runs(service, deaf, 1)
    service.start_agent("n3", slots=2)
    began = time.monotonic()
    for name in ("n1", "n2"):
        service.ctl("drain", name, "--deadline", "3s", "--reason", "preemption")
    for job in (polite, deaf):
        service.wait("the job runs on the node that is left", lambda: [
            where[3] for where in service.running(job).values()] == ["n3"])
    check(time.monotonic() - began < WAIT_S, "the deadline is passed by the stop timeout")
    for job in (polite, deaf):
        check(status_is(service, job, "RUNNING"), f"{service.status(job)}")


def trouble_106_agent(service):
    """The same, when the agent itself drains: SIGTERM."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", "--drain-timeout", "3s", slots=1)
    job = service.submit_text(job_text("trap 'exit 0' TERM; while :; do sleep 0.1; done",
                                       attempts=1))  # fmt: skip
    runs(service, job, 1)
    check(service.agents["n1"].kill(signal.SIGTERM) == 0, "the agent does not end well")
    check(not status_is(service, job, "FINISHED"), "what was stopped counts as finished")
    service.start_agent("n2", slots=1)
    runs(service, job, 1)


def trouble_108_114(service):
    """An agent that is killed and started at once under its name is a new life: what was left over
    ends before it offers slots, and no slot has two owners."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", slots=2)
    job = service.submit_text(job_text(f"trap '' TERM; {SLEEP}", parallelism=2, attempts=99))
    for _ in range(3):
        pids, incarnation = runs(service, job, 2), int(node(service, "n1")["incarnation"])
        service.agents["n1"].kill()
        service.start_agent("n1", slots=2)
        service.wait("a new life", lambda: int(node(service, "n1")["incarnation"]) > incarnation)
        check(not any(pathlib.Path(f"/proc/{pid}/cmdline").exists() for pid in pids),
              "tasks of the old life run beside the new one")  # fmt: skip
    # While the first one lives a second one of the same name does not take its place in silence.
    rival = subprocess.run([service.programs / "pliant-agent", "--node", "n1", "--connect",
                            service.endpoints["agents"], "--work-dir", service.dir / "work-n1"],
                           capture_output=True, encoding="utf-8", timeout=WAIT_S, env=service.env)  # fmt: skip
    check(rival.returncode == 2 and "in use" in rival.stderr, f"a second one: {rival}")


def trouble_110(service):
    """A killed agent's node is lost, and the daemon's end does not wait for it."""
    service.start_daemon(*BRISK)
    service.start_agent("n1")
    job = service.submit_text(job_text(SLEEP, attempts=9))
    runs(service, job, 1)
    service.agents["n1"].kill()
    service.wait("the node is lost", lambda: service.node_state("n1") in (None, "gone"))
    service.start_agent("n1")
    runs(service, job, 1)
    service.agents["n1"].kill()
    began = time.monotonic()
    service.ctl("shutdown", "--stop-jobs")
    check(service.daemon.popen.wait(WAIT_S) == 0, "not ended well")
    check(time.monotonic() - began < 40, "the end hangs")


def trouble_117(service):
    """Only the daemon is started again: agents say HELLO by themselves, tasks do not notice."""
    service.start_daemon(*BRISK)
    for name in ("n1", "n2", "n3"):
        service.start_agent(name)
    job = service.submit_text(job_text(SLEEP, parallelism=6))
    pids = runs(service, job, 6)
    service.daemon.kill()
    service.start_daemon()
    for name in ("n1", "n2", "n3"):
        service.wait(f"{name} is back", lambda: service.node_state(name) == "up")
    service.wait("the same processes run", lambda: set(service.running(job)) == pids)


# ---- the event stream ---------------------------------------------------------------------------


class Subscribers:
    """Many of them, by libzmq itself; what they get is only counted."""

    SUB, SUBSCRIBE, LINGER, MAX_SOCKETS, DONTWAIT = 2, 6, 17, 2, 1

    def __init__(self, endpoint, n):
        self.zmq = ctypes.CDLL("libzmq.so.5")
        self.zmq.zmq_ctx_new.restype = self.zmq.zmq_socket.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())
        self.zmq.zmq_ctx_set(self.context, self.MAX_SOCKETS, n + 10)
        self.sockets = [ctypes.c_void_p(self.zmq.zmq_socket(self.context, self.SUB)) for _ in range(n)]
        zero = ctypes.c_int(0)
        for s in self.sockets:
            check(s.value, "no socket for a subscriber")
            self.zmq.zmq_setsockopt(s, self.LINGER, ctypes.byref(zero), ctypes.sizeof(zero))
            self.zmq.zmq_setsockopt(s, self.SUBSCRIBE, b"", 0)
            self.zmq.zmq_connect(s, endpoint.encode())

    def hear(self, socket):
        """Take all that is there; was there anything?"""
        buffer, n = ctypes.create_string_buffer(65536), 0
        while self.zmq.zmq_recv(socket, buffer, len(buffer), self.DONTWAIT) >= 0:
            n += 1
        return n > 0

    def all_hear(self, service, what):
        deaf = list(self.sockets)

        def none_left():
            deaf[:] = [s for s in deaf if not self.hear(s)]
            return not deaf

        service.wait(what, none_left)

    def close(self):
        for s in self.sockets:
            self.zmq.zmq_close(s)
        self.zmq.zmq_ctx_term(self.context)


def trouble_119(service):
    """2,000 subscribers hear what happens, and again after the daemon was started anew."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n = 2000 if hard == resource.RLIM_INFINITY or hard >= 8192 else 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if n == 2000 else hard, hard))
    service.start_daemon(*BRISK)
    many = Subscribers(service.endpoints["events"], n)
    try:
        many.all_hear(service, f"all {n} hear")
        service.daemon.kill()
        service.start_daemon()
        for s in many.sockets:
            many.hear(s)
        many.all_hear(service, f"all {n} hear again")
    finally:
        many.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- processes ----------------------------------------------------------------------------------

HARMLESS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCHLD, signal.SIGPIPE,
            signal.SIGALRM, signal.SIGCONT, signal.SIGURG, signal.SIGRTMIN + 3)  # fmt: skip


def trouble_122_128(service):
    """Only the chosen signals end the daemon, however many of the others come."""
    service.start_daemon(*BRISK)
    service.start_agent("n1")
    job = service.submit_text(job_text(SLEEP))
    pids = runs(service, job, 1)
    for number in HARMLESS:
        service.daemon.send(number)
    for _ in range(1000):
        service.daemon.send(signal.SIGUSR1)
    service.daemon.send(signal.SIGSTOP)
    service.daemon.send(signal.SIGCONT)
    check(service.ctl("ping")["state"] == "ok" and set(service.running(job)) == pids, "no answer")


def trouble_125(service):
    """SIGINT and SIGTERM with running jobs: an ordered end, and all goes on afterwards."""
    service.start_daemon(*BRISK)
    service.start_agent("n1")
    job = service.submit_text(job_text(SLEEP))
    pids = runs(service, job, 1)
    for number in (signal.SIGINT, signal.SIGTERM):
        check(service.daemon.kill(number) == 0, f"not ended well by {number.name}")
        service.start_daemon()
        service.wait("the agent is back", lambda: service.node_state("n1") == "up")
        service.wait("the same processes run", lambda: set(service.running(job)) == pids)


def trouble_130(service):
    """Started without standard descriptors, it uses none of them for something else."""
    service.start_daemon(*BRISK, ready=False)
    service.daemon.kill()
    command = " ".join(f"'{word}'" for word in service.daemon.popen.args)
    service.daemon.popen = subprocess.Popen(["sh", "-c", f"exec {command} <&- >&- 2>&-"],
                                            env=service.env, preexec_fn=die_with_parent)  # fmt: skip
    service.wait("pliantd answers", lambda: service.ctl("ping")["state"] == "ok")
    for fd in range(3):
        at = os.readlink(f"/proc/{service.daemon.pid}/fd/{fd}")
        check(at == "/dev/null", f"descriptor {fd} is {at}")


# ---- a full disk --------------------------------------------------------------------------------


def full_disk(service):
    """While it cannot write it says so, also to whoever was waiting for an answer; tasks run on,
    and what was acknowledged is there."""
    service.start_daemon(*BRISK)
    service.start_agent("n1", slots=2)
    job = service.submit_text(job_text(SLEEP))
    pids = runs(service, job, 1)
    pid, size = service.daemon.pid, resource.RLIM_INFINITY
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, size))
    for _ in range(2):  # the one that finds out, and the next
        try:
            service.submit_text(job_text(SLEEP, name="other"))
            raise Failed("acknowledged what cannot be written")
        except Refused as error:
            check(error.code == 1 and "cannot be written" in error.text, str(error))
    try:
        service.ctl("ping")
        raise Failed("all is said to be well")
    except Refused as error:
        check(error.code == 1 and "store-failed" in error.text, str(error))
    check(set(service.running(job)) == pids, "a task does not run on")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))

    def well():
        try:
            return service.ctl("ping")["state"] == "ok"
        except Refused:
            return False

    service.wait("the store works again", well)
    service.daemon.kill()
    service.start_daemon()
    service.wait("the same processes run", lambda: set(service.running(job)) == pids)


def main():
    programs, numbers = sys.argv[1], sys.argv[2:]
    tests = [test for name, test in sorted(globals().items())
             if name.startswith("trouble_") or test is full_disk]  # fmt: skip
    failed = 0
    for test in tests:
        if numbers and not any(number in test.__name__ for number in numbers):
            continue
        began = time.monotonic()
        with Service(programs) as service:
            try:
                test(service)
                print(f"troubles_test: {test.__name__} in {time.monotonic() - began:.1f} s", flush=True)
            except Exception as error:  # the others are worth a look, too
                failed += 1
                print(f"troubles_test: {test.__name__}: {error!r}")
                if not isinstance(error, Failed):
                    traceback.print_exc()
                for log in service.dir.glob("*.log"):
                    print(f"\n{log.name}:\n{log.read_text(errors='replace')[-3000:]}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
