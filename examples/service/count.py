#!/usr/bin/env python3
"""A task that counts and loses nothing that a checkpoint had saved, at any parallelism.

Each key group has a counter. A subtask moves on those that it owns, one step each every STEP seconds. When a
checkpoint is asked for it writes them into one file; at its start it reads the parts that hold its key
groups, whoever wrote them. Once a second it prints what it has, `--until N` ends it when all have N.

    count.py [--step SECONDS] [--until N]
"""
import argparse
import json
import pathlib
import sys
import time

# The package beside this file, if it is not installed.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import pliant  # noqa: E402

FILE = "counters.json"


def restore(task):
    """{key group: counter}, of this subtask's key groups."""
    counters = {group: 0 for group in task.key_groups}
    for part in task.restore_parts:
        saved = json.loads((pathlib.Path(part.dir) / FILE).read_text())
        counters.update((group, saved[str(group)]) for group in part.key_groups)
    return counters


def save(counters, dir):
    (pathlib.Path(dir) / FILE).write_text(json.dumps(counters))


def say(task, event, counters, **more):
    """One line of key=value, for people and for scripts."""
    of = f"subtask={task.subtask} parallelism={task.parallelism} attempt={task.attempt}"
    more = "".join(f" {key}={value}" for key, value in more.items())
    print(f"{event} t={time.time():.3f} {of} total={sum(counters.values())}{more}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--step", type=float, default=0.1, help="seconds (0.1)")
    options.add_argument("--until", type=int, help="end when each counter has come so far")
    options = options.parse_args()

    task = pliant.task()
    counters = restore(task)
    say(task, "start", counters, parts=len(task.restore_parts))
    next_step = next_line = time.monotonic()
    while options.until is None or min(counters.values()) < options.until:
        next_step += options.step
        # The pause between two steps is the time to be asked.
        while (request := pliant.checkpoint_requested(next_step - time.monotonic())) is not None:
            with request as dir:
                save(counters, dir)
            say(task, "checkpoint", counters, id=request.id)
        for group in counters:
            counters[group] += 1
        if time.monotonic() >= next_line:
            next_line += 1
            say(task, "count", counters)
    pliant.end_of_data()
    say(task, "end", counters)


if __name__ == "__main__":
    main()
