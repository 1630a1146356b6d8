#!/usr/bin/python3
"""Training rates in one run: PyTorch's DistributedDataParallel over Gloo, and Keelson in float32 and bfloat16.

usage: bench/compare_torch.py [--alone] [--repeat N] [--steps N] [--bin_dir DIR] [--data_dir DIR]

The same MLP of 2.7 MB (784-512-512-10), batch 32 and plain SGD everywhere; 2 processes of PyTorch with one thread
each, 2 workers and 1 server of Keelson. The three take turns; medians with (min-max). A gradient is one worker's for
one batch, so a step of PyTorch, in which both take part, counts as two. With --alone: steps per second of one process
with all cores, for the MLP and for the network of configs/mnist_cnn.textproto (batch 64). The PyTorch is that of the interpreter that
runs this (Debian: python3-torch; another one: VENV/bin/python bench/compare_torch.py), and is named with its BLAS.
"""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Callable, Dict, List

import train_rate

PROCESSES = 2
WARM_UP_STEPS = 50
CNN_CONFIG = os.path.join(train_rate.REPOSITORY, "configs", "mnist_cnn.textproto")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def train_rank(rank: int, port: int, steps: int) -> None:
    """One process of the PyTorch job; rank 0 prints the steps per second."""
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=PROCESSES)
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = nn.CrossEntropyLoss()
    images, labels = torch.rand(32, 784), torch.randint(0, 10, (32,))
    for step in range(WARM_UP_STEPS + steps):
        if step == WARM_UP_STEPS:
            distributed.barrier()
            began = time.monotonic()
        optimizer.zero_grad()
        loss(model(images), labels).backward()
        optimizer.step()
    if rank == 0:
        print(steps / (time.monotonic() - began))
    distributed.destroy_process_group()


def measure_torch(steps: int) -> float:
    """Gradients per second of the PyTorch job."""
    port = str(free_port())
    command = [sys.executable, os.path.abspath(__file__), "--rank"]
    ranks = [
        subprocess.Popen(command + [str(rank), "--port", port, "--steps", str(steps)], stdout=subprocess.PIPE)
        for rank in range(PROCESSES)
    ]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        raise RuntimeError("the PyTorch job failed")
    return PROCESSES * float(outputs[0])


def measure_torch_alone(network: str, steps: int) -> float:
    """Steps per second of this process."""
    import torch
    from torch import nn

    torch.manual_seed(1)
    if network == "mlp":
        layers = [nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
        batch, momentum = 32, 0.0
    else:
        layers = [nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        layers += [nn.Linear(64 * 4 * 4, 512), nn.ReLU(), nn.Linear(512, 10)]
        batch, momentum = 64, 0.9
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum)
    loss = nn.CrossEntropyLoss()
    images, labels = torch.rand(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    for step in range(WARM_UP_STEPS + steps):
        if step == WARM_UP_STEPS:
            began = time.monotonic()
        optimizer.zero_grad()
        loss(model(images), labels).backward()
        optimizer.step()
    return steps / (time.monotonic() - began)


def contenders_alone(flags: argparse.Namespace, with_torch: bool) -> Dict[str, Callable[[], float]]:
    configs = {"mlp": os.path.join(flags.work, "mlp.textproto"), "cnn": CNN_CONFIG}
    with open(configs["mlp"], "w", encoding="utf-8") as file:
        file.write(train_rate.CONFIG.format(steps=flags.steps, transfer=""))
    contenders: Dict[str, Callable[[], float]] = {}
    for network, config in configs.items():
        # A step of the CNN takes many times as long.
        steps = flags.steps if network == "mlp" else flags.steps // 8
        contenders[f"keelson {network}"] = partial(
            train_rate.measure_alone, config, steps, flags.bin_dir, flags.data_dir
        )
        if with_torch:
            contenders[f"torch {network}"] = partial(measure_torch_alone, network, steps // 4)
    return contenders


def contenders_together(flags: argparse.Namespace, with_torch: bool) -> Dict[str, Callable[[], float]]:
    contenders: Dict[str, Callable[[], float]] = {}
    for wire in ("f32", "bf16"):
        contenders[f"keelson {wire}"] = partial(
            train_rate.measure, wire, flags.steps, flags.bin_dir, flags.data_dir
        )
    if with_torch:
        contenders["torch ddp gloo f32"] = partial(measure_torch, max(200, flags.steps // 8))
    return contenders


def describe_torch(version: str, build: str, maps: str) -> str:
    """"PyTorch 1.13.1, BLAS generic (libblas.so.3)". `build`: what torch.__config__.show() says. `maps`:
    /proc/PID/maps of a process that has multiplied matrices, which names the libraries behind a generic BLAS."""
    blas = re.search(r"\bBLAS_INFO=(\w+)", build)
    libraries = sorted(set(re.findall(r"/(lib[\w-]*(?:blas|mkl_rt|mkl_core|blis)[\w.-]*\.so[.\w]*)", maps)))
    where = f" ({', '.join(libraries)})" if libraries else ""
    return f"PyTorch {version}, BLAS {blas[1] if blas else 'unknown'}{where}"


def describe_own_torch() -> str:
    """ImportError: this interpreter has none."""
    import torch

    torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    with open("/proc/self/maps", encoding="utf-8") as file:
        return describe_torch(torch.__version__, torch.__config__.show(), file.read())


def compare(contenders: Dict[str, Callable[[], float]], repeat: int) -> Dict[str, List[float]]:
    rates: Dict[str, List[float]] = {name: [] for name in contenders}
    for _ in range(repeat):
        for name, measure in contenders.items():
            rates[name].append(measure())
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description="Training rates of PyTorch DDP over Gloo and of Keelson.")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--alone", action="store_true", help="one process each, instead of a job")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    train_rate.add_flags(parser)
    flags = parser.parse_args()
    if flags.rank is not None:
        train_rank(flags.rank, flags.port, flags.steps)
        return

    try:
        print(describe_own_torch())
        with_torch = True
    except ImportError:
        print(f"{sys.executable} has no PyTorch (Debian: python3-torch): Keelson alone", file=sys.stderr)
        with_torch = False
    make, unit = (contenders_alone, "steps/s") if flags.alone else (contenders_together, "gradients/s")
    with tempfile.TemporaryDirectory() as flags.work:
        try:
            rates = compare(make(flags, with_torch), flags.repeat)
        except RuntimeError as error:
            parser.exit(1, f"compare_torch: {error}\n")
    for name, values in rates.items():
        print(f"{name}: {statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f}) {unit}")


if __name__ == "__main__":
    main()
