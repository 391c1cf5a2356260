#!/usr/bin/env python3
"""A connection that breaks and is back at once is no loss. hiccup_test.py PROGRAMS

The agent reaches pliantd through a proxy of ours, which cuts all connections now and then. Nothing
may happen to the tasks, and the node must be back without the help of a heartbeat.
"""
import pathlib
import socket
import sys
import threading

sys.dont_write_bytecode = True
from service import Failed, Service  # noqa: E402

CUTS = 5
HEARTBEATS = ("-D", "heartbeat.interval=1 min", "-D", "heartbeat.timeout=5 min")
JOB = """
name: sleep
vertices:
  - {id: sleep, parallelism: 2, command: [sleep, "1000"]}
"""


class Proxy:
    """Between whoever connects to `path` and who listens at `to`."""

    def __init__(self, path, to):
        self.to, self.open = str(to), set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.to)
            except OSError:  # the end of the test
                near.close()
                continue
            self.open |= {near, far}
            for from_, to in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(from_, to), daemon=True).start()

    def carry(self, from_, to):
        try:
            while data := from_.recv(65536):
                to.sendall(data)
        except OSError:
            pass
        self.shut(from_)
        self.shut(to)

    @staticmethod
    def shut(end):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def cut(self):
        ends, self.open = self.open, set()
        for end in ends:
            self.shut(end)


def changes(follower):
    return [event["change"] for event in follower.of("node")]


def run(service):
    service.start_daemon(*HEARTBEATS)
    agents = pathlib.Path(service.endpoints["agents"].removeprefix("ipc://"))
    proxy = Proxy(service.dir / "proxy", agents)
    service.endpoints["agents"] = f"ipc://{service.dir}/proxy"
    follower = service.follow()
    service.start_agent("n1", slots=2)
    job = service.submit_text(JOB)
    before = service.wait("two tasks run", lambda: len(service.running(job)) == 2 and
                          service.running(job))
    for n in range(1, CUTS + 1):
        proxy.cut()
        service.wait(f"the node is back for the {n}. time",
                     lambda: changes(follower).count("back") == n or "lost" in changes(follower))
    after = service.running(job)
    if "lost" in changes(follower):
        raise Failed(f"the node was lost: {changes(follower)}")
    if after != before:
        raise Failed(f"{before} became {after}")
    print(f"hiccup_test: {CUTS} connections were cut, {len(after)} tasks run on")


def main():
    with Service(sys.argv[1]) as service:
        try:
            run(service)
        except Failed as error:
            print(f"hiccup_test: {error}")
            for log in service.dir.glob("*.log"):
                print(f"\n{log.name}:\n{log.read_text()[-4000:]}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
