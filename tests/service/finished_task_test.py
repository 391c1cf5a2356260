#!/usr/bin/env python3
"""A task that had finished before a checkpoint is not started again. finished_task_test.py PROGRAMS

`short` ends by itself; checkpoints go on without it. When `long` is killed the whole job restarts:
`long` from its part of the checkpoint, `short` not at all.
"""
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
from service import SOURCE, Failed, Service  # noqa: E402

TASK = """
import os, sys
sys.path.insert(0, {python!r})
import pliant
open({diary!r} + os.environ["PLIANT_VERTEX"], "a").write(os.environ["PLIANT_RESTORE"] + "\\n")
if os.environ["PLIANT_VERTEX"] == "short":
    sys.exit(0)
while not os.path.exists({diary!r} + "end"):
    request = pliant.checkpoint_requested(0.2)
    if request:
        with request as part:
            open(os.path.join(part, "state"), "w").write("x")
"""


def job(script):
    return f"""
name: two
vertices:
  - {{id: short, parallelism: 2, command: [python3, {script}]}}
  - {{id: long, parallelism: 1, command: [python3, {script}]}}
config:
  execution.checkpointing.interval: 300 ms
  restart-strategy.type: fixed-delay
  restart-strategy.fixed-delay.attempts: 100
  restart-strategy.fixed-delay.delay: 0 s
"""


def main(programs):
    with Service(programs) as service:
        diary = str(service.dir / "diary-")
        script = service.dir / "task.py"
        script.write_text(TASK.format(python=str(SOURCE / "python"), diary=diary))
        service.start_daemon()
        service.start_agent("n1", slots=2)
        name = service.submit_text(job(script))

        def taken_after_short():
            status = service.status(name)
            done = [t for t in status["tasks"] if t["vertex"] == "short"]
            return status["checkpoint"] and all(t["state"] == "FINISHED" for t in done)

        service.wait("a checkpoint without those that have finished", taken_after_short)
        before = service.status(name)["checkpoint"]["id"]
        service.wait("one more", lambda: service.status(name)["checkpoint"]["id"] != before)
        long = [t for t in service.tasks(name) if t["vertex"] == "long"][0]
        os.kill(long["pid"], signal.SIGKILL)
        service.wait("long starts again", lambda: len(lines(diary + "long")) == 2)
        if not lines(diary + "long")[1].endswith("/long/0-1"):
            raise Failed(f"long was to read its part, not {lines(diary + 'long')}")
        if lines(diary + "short") != ["", ""]:
            raise Failed(f"short was started again: {lines(diary + 'short')}")
        pathlib.Path(diary + "end").touch()
        service.wait("the job finishes", lambda: service.status(name)["job_status"] == "FINISHED")


def lines(path):
    return pathlib.Path(path).read_text().splitlines()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Failed as failed:
        sys.exit(f"finished_task_test: {failed}")
