#!/usr/bin/env python3
"""Training without the training: a worker group that sums a number over all ranks in each step.

Rank 0 listens at MASTER_ADDR:MASTER_PORT, adds up what the ranks send, and sends the sum back: an all-reduce.
Every CHECKPOINT_EVERY steps each rank writes a file of its own into the directory that all of them share, and
reports it. After a restart, at any world size, the group goes on from the latest one.

    train.py [--steps N] [--step SECONDS] [--checkpoint-every N]
"""
import argparse
import json
import os
import pathlib
import socket
import struct
import sys
import time

# The package beside this file, if it is not installed.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import pliant  # noqa: E402

RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
ADDRESS = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", 29500)))
CONNECT_PATIENCE = 60  # seconds


def read_number(sock):
    data = sock.recv(8, socket.MSG_WAITALL)
    if len(data) < 8:
        raise ConnectionError("a rank has gone")
    return struct.unpack("!d", data)[0]


def send_number(sock, x):
    sock.sendall(struct.pack("!d", x))


class Store:
    """Rank 0's end of the all-reduce."""

    def __init__(self):
        listener = socket.create_server(ADDRESS, backlog=WORLD) if WORLD > 1 else None
        self.ranks = [listener.accept()[0] for _ in range(WORLD - 1)] if listener else []
        for sock in self.ranks:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def all_reduce(self, x):
        total = x + sum(read_number(sock) for sock in self.ranks)
        for sock in self.ranks:
            send_number(sock, total)
        return total


class Member:
    """Any other rank's end."""

    def __init__(self):
        until = time.monotonic() + CONNECT_PATIENCE
        while True:
            try:
                self.store = socket.create_connection(ADDRESS)
                break
            except ConnectionRefusedError:  # rank 0 is not there yet
                if time.monotonic() >= until:
                    raise
                time.sleep(0.05)
        self.store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def all_reduce(self, x):
        send_number(self.store, x)
        return read_number(self.store)


def load():
    """(step, sum) of the checkpoint to go on from. Whoever wrote it, rank 0 was there."""
    dir = pliant.get_checkpoint()
    if dir is None:
        return 0, 0.0
    state = json.loads((pathlib.Path(dir) / "rank-0.json").read_text())
    return state["step"], state["sum"]


def save(step, total):
    with pliant.checkpoint_dir() as dir:
        (pathlib.Path(dir) / f"rank-{RANK}.json").write_text(
            json.dumps({"step": step, "sum": total, "world_size": WORLD})
        )
    pliant.report({"step": step, "sum": total}, checkpoint=dir)


def say(event, **more):
    more = "".join(f" {key}={value}" for key, value in more.items())
    print(f"{event} t={time.time():.3f} rank={RANK} world={WORLD}{more}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--step", type=float, default=0.1, help="seconds that a step takes (0.1)")
    options.add_argument("--checkpoint-every", type=int, default=10, help="steps (10)")
    options = options.parse_args()

    step, total = load()
    say("start", step=step, sum=total, attempt=pliant.task().attempt)
    peers = Store() if RANK == 0 else Member()
    while step < options.steps:
        time.sleep(options.step)
        step += 1
        total += peers.all_reduce(1 / WORLD)  # every step adds 1, at any world size
        if step % options.checkpoint_every == 0 or step == options.steps:
            save(step, total)
            say("checkpoint", step=step, sum=f"{total:.6f}")
    say("end", step=step, sum=f"{total:.6f}")


if __name__ == "__main__":
    main()
