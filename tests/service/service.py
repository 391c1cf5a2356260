"""A real pliantd, real agents and their tasks, in a temporary directory; for tests and the demo.

    with Service(programs) as service:          # programs: the folder with pliantd and the others
        service.start_daemon("-D", "heartbeat.timeout=5 s")
        n1 = service.start_agent("n1", slots=2)
        job = service.submit("examples/service/count.yaml")
        service.wait("two tasks run", lambda: len(service.running(job)) == 2)
        service.daemon.kill()                   # SIGKILL; kill(signal.SIGSTOP) freezes it
        service.start_daemon()                  # the same state, the same endpoints
        n1.kill()
        print(service.status(job)["state"])

Agents run in the top folder of the source tree, so that jobs name what is there as it is named
there. Waits poll a condition, and fail with Failed after WAIT_S, which is far more than anything
takes. Start processes from the main thread only: they die with the thread that started them.

Nothing outlives the service: this process is the subreaper of all that it starts, so that agents,
their keepers, tasks and whatever these leave behind are its descendants, and the end of the `with`
ends them. If this process itself is killed, daemon and agents die with it, and the agents' keepers
stop the tasks. `leftovers()` are the descendants that belong to no agent that still lives.
"""
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WAIT_S = 60
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Failed(Exception):
    """Something did not come out as it should."""


class Refused(Failed):
    """pliantctl ended with `code`, which is not 0; `text` is what it said."""

    def __init__(self, args, code, text):
        super().__init__(f"pliantctl {' '.join(map(str, args))} ends with {code}: {text.strip()}")
        self.code, self.text = code, text


class Process:
    """A daemon or an agent; what it logs goes to `log`. The terminal's signals do not reach it."""

    def __init__(self, command, log, **how):
        self.log = log
        with open(log, "a") as to:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=to,
                                          start_new_session=True, preexec_fn=die_with_parent, **how)

    @property
    def pid(self):
        return self.popen.pid

    def runs(self):
        return self.popen.poll() is None

    def send(self, number):
        if self.runs():
            self.popen.send_signal(number)

    def kill(self, number=signal.SIGKILL):
        """Send the signal, then wait for the end and return the exit code; not if the signal only
        stops or wakes."""
        self.send(number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            return None
        return self.popen.wait(WAIT_S)

    def last_words(self):
        return "".join(self.log.read_text(errors="replace").splitlines(True)[-5:])


class Service:
    """`transport` is "ipc" or, at free ports of loopback, "tcp"."""

    def __init__(self, programs, transport="ipc"):
        self.programs = pathlib.Path(programs).resolve()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pliant-"))
        self.state_dir = self.dir / "state"
        self.checkpoints = self.dir / "checkpoints"
        names = ("agents", "clients", "events")
        ports = free_ports(len(names)) if transport == "tcp" else None
        self.endpoints = dict(zip(names, ports or [f"ipc://{self.dir}/{name}" for name in names]))
        self.daemon, self.agents, self.followers = None, {}, []
        self.daemon_options = ()
        # What the caller's terminal says of a service is not about this one.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PLIANT_")}
        self.env["PATH"] = f"{self.programs}:{self.env.get('PATH', os.defpath)}"
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    # ---- processes ----------------------------------------------------------------------------

    def _start(self, name, command):
        return Process(words(command), self.dir / f"{name}.log", cwd=SOURCE, env=self.env)

    def start_daemon(self, *options, ready=True):
        """Start it, or start it again: then with the options that it had, unless others are given.
        Returns when it answers, or at once."""
        if self.daemon and self.daemon.runs():
            raise Failed("a pliantd runs already")
        self.daemon_options = options or self.daemon_options
        where = [word for name, at in self.endpoints.items() for word in (f"--{name}", at)]
        self.daemon = self._start("pliantd", [
            self.programs / "pliantd", "--state-dir", self.state_dir, *where,
            "-D", f"execution.checkpointing.dir={self.checkpoints}", *self.daemon_options])
        if ready:
            self.wait("pliantd answers", self.answers)
        return self.daemon

    def start_agent(self, name, *options, slots=2, ready=True):
        """Start it, or start it again; returns when its node is up, or at once."""
        if name in self.agents and self.agents[name].runs():
            raise Failed(f"an agent of {name} runs already")
        self.agents[name] = self._start(name, [
            self.programs / "pliant-agent", "--slots", slots, "--node", name, "--connect",
            self.endpoints["agents"], "--work-dir", self.dir / f"work-{name}", *options])
        if ready:
            pid = self.agents[name].pid
            self.wait(f"node {name} is up",
                      lambda: self.agent_runs(name, pid) and self.node_state(name) == "up")
        return self.agents[name]

    def agent_runs(self, name, pid):
        if not self.agents[name].runs():
            raise Failed(f"the agent of {name} (pid {pid}) has ended: "
                         f"{self.agents[name].last_words()}")
        return True

    def answers(self):
        if not self.daemon.runs():
            raise Failed(f"pliantd has ended: {self.daemon.last_words()}")
        try:
            return self.ctl("ping", timeout="2s")["pid"] == self.daemon.pid
        except Refused as error:
            if error.code != 3:  # 3: nobody answers
                raise
            return False

    def leftovers(self):
        """Pids that we once started, directly or not, and that belong to no daemon or agent which
        still runs. A keeper that stops the tasks of a dead agent is among them while it does."""
        own = {process.pid for process in (self.daemon, *self.agents.values()) if process}
        own |= {follower.process.pid for follower in self.followers}
        reap(own)
        roots = [pid for pid in children(os.getpid()) if pid not in own]
        return sorted(pid for root in roots for pid in (root, *descendants(root)))

    def close(self):
        for follower in self.followers:
            follower.close()
        for process in (*self.agents.values(), self.daemon):
            if process:
                process.send(signal.SIGKILL)
                process.popen.wait()
        # Keepers stop their tasks and end; what does not is helped.
        by = time.monotonic() + 5
        while self.leftovers():
            if time.monotonic() > by:
                for pid in self.leftovers():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            time.sleep(0.05)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- asking -------------------------------------------------------------------------------

    def ctl_command(self, *args):
        return words([self.programs / "pliantctl", "--connect", self.endpoints["clients"], *args])

    def ctl(self, *args, timeout="30s", json_out=True):
        """What `pliantctl COMMAND ARG... --json` answers; Refused if its exit code is not 0."""
        command = self.ctl_command("--timeout", timeout, *args, *(["--json"] if json_out else []))
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              encoding="utf-8", cwd=SOURCE, env=self.env)
        if done.returncode != 0:
            raise Refused(args, done.returncode, done.stderr or done.stdout)
        return json.loads(done.stdout) if json_out and done.stdout.strip() else done.stdout

    def submit(self, file, *options):
        """The id of the job that this file describes."""
        return self.ctl("submit", file, *options)["job"]

    def submit_text(self, text, *options):
        """The same of a job as text."""
        file = self.dir / "job.yaml"
        file.write_text(text)
        return self.submit(file, *options)

    def status(self, job):
        return self.ctl("status", job)

    def tasks(self, job):
        return self.ctl("tasks", job)["tasks"]

    def running(self, job):
        """{pid: (vertex, subtask, attempt, node)} of the tasks that run."""
        return {t["pid"]: (t["vertex"], t["subtask"], t["attempt"], t["node"])
                for t in self.tasks(job) if t["state"] == "RUNNING"}

    def node_state(self, name):
        """"up", "draining", "awaited", "gone", or None."""
        return next((n["state"] for n in self.ctl("nodes")["nodes"] if n["node"] == name), None)

    def wait(self, what, condition, seconds=WAIT_S):
        """Until the condition holds; returns what it gave. That nobody answers is no error."""
        by = time.monotonic() + seconds
        while True:
            try:
                got = condition()
            except Refused as error:
                if error.code != 3:
                    raise
                got = None
            if got:
                return got
            if time.monotonic() > by:
                raise Failed(f"not within {seconds} s: {what}")
            time.sleep(0.05)

    def follow(self, take=None):
        """The event stream from now on; `take` is called with each event, in the follower's thread.
        Returns when the stream is known to come, which takes until the next event, of which there
        is one at least each 5 s."""
        self.followers.append(Follower(self, take))
        return self.followers[-1]


class Follower:
    """`pliantctl watch --json`, and what it has told so far, oldest first, in `events`."""

    def __init__(self, service, take):
        self.events, self.take = [], take
        self.process = subprocess.Popen(service.ctl_command("watch", "--json"), env=service.env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, encoding="utf-8",
                                        start_new_session=True, preexec_fn=die_with_parent)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        service.wait("the event stream begins", lambda: self.events)

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if self.take:
                self.take(event)

    def of(self, kind, job=None):
        """The events of a kind, of a job."""
        return [e for e in list(self.events) if e["kind"] == kind and job in (None, e.get("job"))]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


# ---- ports and processes ----------------------------------------------------------------------


def free_ports(n):
    """Ports that nobody has, as endpoints, at the loopback address that our pid makes: other tests
    have other ones. Below those that the kernel gives out by itself: while the daemon is down
    nobody gets one of them, nor does a peer that tries to connect meet itself."""
    pid = os.getpid()
    address = f"127.{1 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    while len(found) < n:
        with socket.socket() as probe:
            try:
                probe.bind((address, random.randrange(max(1024, low // 2), max(low, 2048))))
            except OSError:
                continue
            endpoint = f"tcp://{address}:{probe.getsockname()[1]}"
            if endpoint not in found:
                found.append(endpoint)
    return found


def words(command):
    return [str(word) for word in command]


def children(pid):
    try:
        return [int(child) for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def alive(pid):
    """Does it run (and is not just waiting to be reaped)?"""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def reap(but):
    """Collect ended children that we have adopted; the others have their Popen."""
    for pid in children(os.getpid()):
        if pid not in but and not alive(pid):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
