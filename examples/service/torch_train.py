#!/usr/bin/env python3
"""An ordinary PyTorch script: torch.distributed over gloo, started by anything that sets torchrun's variables.

Fits y = 3 x + 1 with DistributedDataParallel's idea by hand: gradients are averaged by all_reduce. Rank 0
saves to a directory now and then; at its start each rank looks for the newest file there.

    torch_train.py DIR [--steps N] [--save-every N] [--step-time SECONDS]
"""
import argparse
import glob
import os
import time

import torch
import torch.distributed as dist


def newest(directory):
    return max(glob.glob(os.path.join(directory, "step-*.pt")), default=None)


def save(directory, step, model, optimizer):
    path = os.path.join(directory, f"step-{step:08d}.pt")
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)  # a file with that name is whole


def main():
    options = argparse.ArgumentParser()
    options.add_argument("dir")
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--save-every", type=int, default=20)
    options.add_argument("--step-time", type=float, default=0.05)
    options = options.parse_args()
    os.makedirs(options.dir, exist_ok=True)

    dist.init_process_group("gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, path = 0, newest(options.dir)
    if path:
        state = torch.load(path)
        first = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    print(f"start rank={rank} world={world} step={first}", flush=True)

    for step in range(first + 1, options.steps + 1):
        x = torch.rand(16, 1)
        loss = ((model(x) - (3 * x + 1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
        time.sleep(options.step_time)
        if rank == 0 and (step % options.save_every == 0 or step == options.steps):
            save(options.dir, step, model, optimizer)
            print(f"saved step={step} loss={loss.item():.6f}", flush=True)
    dist.barrier()
    print(f"end rank={rank} step={options.steps}", flush=True)


if __name__ == "__main__":
    main()
