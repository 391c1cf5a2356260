#!/usr/bin/env python3
"""Count the words of this project's documents on a cluster, while whatever there is gets killed.

    run.py PROGRAMS [--kill SEED] [--text DIR] [--pause SECONDS]

Starts pliantd and three agents with two slots each in a temporary directory, hands in job.yaml, and
compares the list that comes out with a plain computation. With --kill a random task, an agent with
its tasks, or pliantd gets SIGKILL every now and then, 20 times or until the job has finished; agents
and pliantd are started again. Exit code 0 only if the list is right and nothing is left over. PROGRAMS
is the folder with pliantd and the others.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "service"))
from service import Failed, Service  # noqa: E402

JOB = "examples/wordcount/job.yaml"
AGENTS = ("n1", "n2", "n3")
KILLS = 20
PATIENCE_S = 300
DAEMON_OPTIONS = ("-D", "heartbeat.interval=500 ms", "-D", "heartbeat.timeout=5 s",
                  "-D", "pliant.agent.stop-timeout=1 s")


def plain_count(folder):
    """What has to come out, as lines."""
    words = collections.Counter()
    for file in folder.glob("*.md"):
        words.update(re.findall("[a-z]+", file.read_bytes().decode("latin-1").lower()))
    return [f"{n} {word}" for word, n in sorted(words.items(), key=lambda kv: (-kv[1], kv[0]))]


class Killer:
    """Something dies every now and then."""

    def __init__(self, service, job, seed):
        self.service, self.job, self.random = service, job, random.Random(seed)
        self.killed = collections.Counter()
        self.next = time.monotonic()

    def look(self):
        if time.monotonic() < self.next or self.killed.total() == KILLS:
            return
        self.next = time.monotonic() + self.random.uniform(0.2, 1.2)
        what = self.random.choices(("task", "agent", "pliantd"), (6, 2, 1))[0]
        if getattr(self, f"kill_{what}")():
            self.killed[what] += 1

    def kill_task(self):
        # Of tasks whose agent is not back yet the pid is not known.
        tasks = sorted(t for t in self.service.running(self.job).items() if t[0])
        if not tasks:
            return False
        pid, (vertex, subtask, attempt, node) = self.random.choice(tasks)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has finished meanwhile
            return False
        say(f"killed {vertex}:{subtask}, attempt {attempt}, on {node}")
        return True

    def kill_agent(self):
        name = self.random.choice(AGENTS)
        self.service.agents[name].kill()
        say(f"killed the agent of {name} with its tasks")
        self.service.start_agent(name, ready=False)
        return True

    def kill_pliantd(self):
        self.service.daemon.kill()
        say("killed pliantd")
        self.service.start_daemon()
        return True


def say(text):
    print(f"{time.monotonic() - BEGAN:7.1f} s  {text}", flush=True)


BEGAN = time.monotonic()


def run(service, args):
    result = service.dir / "words"
    service.env.update(WORDCOUNT_TEXT=str(args.text.resolve()), WORDCOUNT_RESULT=str(result),
                       WORDCOUNT_PAUSE=str(args.pause))
    service.start_daemon(*DAEMON_OPTIONS, "-D", f"pliant.results.dir={service.dir / 'results'}")
    for name in AGENTS:
        service.start_agent(name)
    job = service.submit(JOB)
    say(f"job {job} counts the words of {args.text}")
    killer = Killer(service, job, args.kill) if args.kill is not None else None
    status = wait_for_the_end(service, job, killer)
    if status["job_status"] != "FINISHED":
        raise Failed(f"the job is {status['job_status']}")
    found, wanted = [" ".join(line.split()) for line in result.read_text().splitlines()], \
        plain_count(args.text)
    if found != wanted:
        raise Failed(f"{len(found)} lines, {len(set(found) ^ set(wanted))} of them wrong or missing")
    say(f"{len(found)} words, all counted right; the first ones: {', '.join(found[:3])}")
    return killer


def wait_for_the_end(service, job, killer):
    seen = set()

    def ended():
        if killer:
            killer.look()
        status = service.status(job)
        for vertex, of in status["vertices"].items():
            if of["parallelism"] and vertex not in seen:
                seen.add(vertex)
                say(f"{vertex}: {of['parallelism']} tasks")
        return status if status["state"] == "Finished" else None

    return service.wait("the job has finished", ended, PATIENCE_S)


def nothing_is_left(service):
    service.wait("no process of a task is left", lambda: not service.leftovers())
    service.wait("the files between the tasks are deleted",
                 lambda: not any(files for _, _, files in os.walk(service.dir / "results")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, help="the folder with pliantd and the others")
    parser.add_argument("--kill", type=int, metavar="SEED", help="kill at random, by this seed")
    parser.add_argument("--text", type=pathlib.Path, default=TOP / "docs", metavar="DIR",
                        help="a folder with *.md files; default: docs of this project")
    parser.add_argument("--pause", type=float, default=0.5, metavar="SECONDS",
                        help="that each task takes beside its work; default: 0.5")
    args = parser.parse_args()
    try:
        with Service(args.programs) as service:
            killer = run(service, args)
            nothing_is_left(service)
        if killer:
            say(f"killed on the way: {killer.killed['task']} tasks, {killer.killed['agent']} agents, "
                f"pliantd {killer.killed['pliantd']} times")
    except Failed as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
