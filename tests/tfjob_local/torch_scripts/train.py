"""A linear regression under DistributedDataParallel over Gloo, in the way of a user's script.

usage: train.py [--steps N] [--dies-at STEP MARKER]   (the process of rank 1 kills itself before that step, unless the
file MARKER says that it has done so)

It runs under a PyTorchJob's environment and under torchrun's.
"""

import argparse
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES = 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dies-at", nargs=2, metavar=("STEP", "MARKER"))
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    wanted = torch.arange(1.0, FEATURES + 1)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(options.steps):
        if options.dies_at and rank == 1 and step == int(options.dies_at[0]):
            die_once(options.dies_at[1])
        inputs = torch.randn(32, FEATURES)
        optimizer.zero_grad()
        loss = ((model(inputs).squeeze(1) - inputs @ wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    # Every rank has other data, and the same weights.
    weights = model.module.weight.detach().clone()
    others = weights.clone()
    dist.broadcast(others, src=0)
    same = torch.equal(weights, others)
    print(f"rank {rank} of {dist.get_world_size()}: learned {losses[-1] < losses[0] / 2}, same weights {same}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def die_once(marker: str) -> None:
    if not os.path.exists(marker):
        with open(marker, "w", encoding="utf-8"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
