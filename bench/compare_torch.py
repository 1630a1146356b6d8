#!/usr/bin/python3
"""Training rates in one run: PyTorch's DistributedDataParallel over Gloo, and Keelson in float32 and bfloat16.

usage: bench/compare_torch.py [--alone | --scripts | --strategy=collective [--processes N] [--network NAME] [--replicas WHEN]
                              [--scripts]] [--repeat N] [--steps N] [--bin_dir DIR] [--data_dir DIR]

The same MLP of 2.7 MB (784-512-512-10), batch 32 and plain SGD everywhere; 2 processes of PyTorch with one thread each,
2 workers and 1 server of Keelson. With --scripts the workers of Keelson are scripts in Python with that PyTorch
(keelson.torch), with and without overlap. With --strategy=collective Keelson has no server: its workers hold the model,
and train synchronously as PyTorch's do; --scripts adds scripts there. --network=small has 178 kB there; --network=wide
67.2 MB and batch 1, and two more contenders, counted as gradients likewise: Gloo's all-reduce of as many bytes alone,
and what Keelson's steps take beside computing, optimizer included. All take turns; medians with (min-max). A gradient
is one worker's for one batch, so a step of PyTorch, in which both take part, counts as two. With --alone: steps per
second of one process with all cores, for the MLP and for the network of configs/mnist_cnn.textproto (batch 64). The
PyTorch is that of the interpreter that runs this (Debian: python3-torch; another one: VENV/bin/python
bench/compare_torch.py), and is named with its BLAS.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any, Callable, Dict, List

import train_rate

PROCESSES = 2
WARM_UP_STEPS = 50
CNN_CONFIG = os.path.join(train_rate.REPOSITORY, "configs", "mnist_cnn.textproto")


def layers_of(network: train_rate.Network) -> List[Any]:
    from torch import nn

    layers: List[Any] = []
    width = 784
    for units in network.hidden:
        layers += [nn.Linear(width, units), nn.ReLU()]
        width = units
    return layers + [nn.Linear(width, 10)]


def train_rank(network: train_rate.Network, only_reduce: bool, rank: int, port: int, steps: int, processes: int) -> None:
    """One process of the PyTorch job; rank 0 prints the steps per second. `only_reduce`: a step is an all-reduce of as
    many bytes as the model has."""
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=processes)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers_of(network)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = nn.CrossEntropyLoss()
    images, labels = torch.rand(network.batch, 784), torch.randint(0, 10, (network.batch,))
    gradients = torch.zeros(sum(parameter.numel() for parameter in model.parameters()))
    warm_up = min(WARM_UP_STEPS, steps)
    for step in range(warm_up + steps):
        if step == warm_up:
            distributed.barrier()
            began = time.monotonic()
        if only_reduce:
            distributed.all_reduce(gradients)
            continue
        optimizer.zero_grad()
        loss(model(images), labels).backward()
        optimizer.step()
    if rank == 0:
        print(steps / (time.monotonic() - began))
    distributed.barrier()
    distributed.destroy_process_group()


def measure_torch(steps: int, processes: int = PROCESSES, network: str = "mlp", only_reduce: bool = False) -> float:
    """Gradients per second of the PyTorch job."""
    (port,) = train_rate.free_ports(1)
    command = [sys.executable, os.path.abspath(__file__), f"--port={port}", f"--steps={steps}", f"--processes={processes}"]
    command += [f"--network={network}"] + (["--only_reduce"] if only_reduce else [])
    ranks = [subprocess.Popen(command + [f"--rank={rank}"], stdout=subprocess.PIPE) for rank in range(processes)]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        raise RuntimeError("the PyTorch job failed")
    return processes * float(outputs[0])


def measure_torch_alone(network: str, steps: int) -> float:
    """Steps per second of this process."""
    import torch
    from torch import nn

    torch.manual_seed(1)
    if network == "mlp":
        layers = [nn.Flatten(), *layers_of(train_rate.NETWORKS["mlp"])]
        batch, momentum = train_rate.NETWORKS["mlp"].batch, 0.0
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


def train_script(wire: str, overlap: bool, steps: int, model_dir: str) -> None:
    """A worker of the Keelson job, with the loop of train_rank."""
    sys.path.insert(0, os.path.join(train_rate.REPOSITORY, "python"))
    import keelson
    import keelson.torch as kt
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(*layers_of(train_rate.NETWORKS["mlp"]))
    loss = nn.CrossEntropyLoss()
    images, labels = torch.rand(32, 784), torch.randint(0, 10, (32,))
    groups = [keelson.Wire("*", push="bfloat16", pull="bfloat16")] if wire == "bf16" else []
    with keelson.join("mlp", records=32000, batch_size=32, max_steps=steps, model_dir=model_dir,
                      transfer=keelson.Transfer(groups), checkpoint=keelson.Checkpoint(save_steps=steps)) as job:  # fmt: skip
        optimizer = kt.Optimizer(job, model, keelson.Sgd(lr=0.01), overlap=overlap)
        for _ in kt.Loader(job, range(32000), collate_fn=lambda records: records):
            optimizer.zero_grad()
            value = loss(model(images), labels)
            value.backward()
            optimizer.step(value)


def measure_scripts(wire: str, overlap: bool, steps: int, bin_dir: str, scripts: int = PROCESSES, servers: int = 1) -> float:
    """Gradients per second of a Keelson job whose workers are scripts of this interpreter. Without servers a step has a
    gradient of each."""
    with tempfile.TemporaryDirectory() as work:
        model_dir = os.path.join(work, "model")
        script = [sys.executable, os.path.abspath(__file__), f"--script={wire}", f"--steps={steps}", f"--work={model_dir}"]
        script += ["--overlap"] if overlap else []
        environment = {"KEELSON_BINARY_DIR": bin_dir, "OMP_NUM_THREADS": "1"}
        job = os.path.join(work, "job.json")
        container = {"image": "torch", "command": script, "env": [{"name": k, "value": v} for k, v in environment.items()]}
        manifest = manifest_of(container, scripts, servers)
        with open(job, "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        command = [train_rate.LAUNCHER, f"--bin_dir={bin_dir}", f"--run_dir={work}/run", f"--model_dir={model_dir}"]
        command += ["--image=torch=as-is", "--dashboard_port=none", job]
        rate = train_rate.rate_of(train_rate.run(command, model_dir), steps)
        return rate if servers else rate * scripts


def manifest_of(worker: Dict[str, Any], workers: int = PROCESSES, servers: int = 1) -> Dict[str, Any]:
    """A TFJob of workers of this container, with a chief and servers, or alone."""
    own = {role: {"image": "keelson", "command": [role], "args": ["--config=script"]} for role in ("chief", "ps_server")}
    replicas = {
        kind: {
            "replicas": count,
            "restartPolicy": "Never",
            "template": {"spec": {"containers": [{"name": "tensorflow", **container}]}},
        }
        for kind, count, container in (
            ("Chief", min(1, servers), own["chief"]),
            ("PS", servers, own["ps_server"]),
            ("Worker", workers, worker),
        )
        if count > 0
    }
    head = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "train-rate"}}
    return {**head, "spec": {"tfReplicaSpecs": replicas}}


def contenders_of_scripts(flags: argparse.Namespace, with_torch: bool) -> Dict[str, Callable[[], float]]:
    contenders: Dict[str, Callable[[], float]] = {}
    for wire in ("f32", "bf16"):
        for overlap in (False, True):
            name = f"keelson script {wire}{' overlap' if overlap else ''}"
            contenders[name] = partial(measure_scripts, wire, overlap, flags.steps, flags.bin_dir)
    contenders["torch ddp gloo f32"] = partial(measure_torch, max(200, flags.steps // 8))
    return contenders if with_torch else {}


def contenders_alone(flags: argparse.Namespace, with_torch: bool) -> Dict[str, Callable[[], float]]:
    configs = {"mlp": os.path.join(flags.work, "mlp.textproto"), "cnn": CNN_CONFIG}
    with open(configs["mlp"], "w", encoding="utf-8") as file:
        file.write(train_rate.config_text(train_rate.NETWORKS["mlp"], flags.steps))
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


def contenders_collective(flags: argparse.Namespace, with_torch: bool) -> Dict[str, Callable[[], float]]:
    contenders: Dict[str, Callable[[], float]] = {}
    network = train_rate.NETWORKS[flags.network]
    for wire in ("f32", "bf16"):
        job = (network, wire, flags.processes, flags.steps, flags.bin_dir, flags.data_dir)
        measure = partial(train_rate.measure_collective, *job, replicas=flags.replicas)
        contenders[f"keelson collective {wire}"] = measure
        if flags.network == "wide":
            contenders[f"keelson exchange {wire}"] = partial(measure, exchange=True)
        if flags.scripts and with_torch:
            script = partial(measure_scripts, wire, False, flags.steps, flags.bin_dir, flags.processes, servers=0)
            contenders[f"keelson script {wire}"] = script
    if with_torch:
        torch = partial(measure_torch, max(network.steps, flags.steps // 8), flags.processes, flags.network)
        contenders["torch ddp gloo f32"] = torch
        if flags.network == "wide":
            contenders["gloo all-reduce alone"] = partial(torch, only_reduce=True)
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
    parser.add_argument("--scripts", action="store_true", help="Keelson's workers are scripts in Python")
    parser.add_argument(
        "--strategy",
        choices=("servers", "collective"),
        default="servers",
        help="where the model is: on a server, or on the workers, which then train synchronously as those of DDP do",
    )
    parser.add_argument("--processes", type=int, default=PROCESSES, help="workers of a collective job (default: 2)")
    parser.add_argument(
        "--network", choices=sorted(train_rate.NETWORKS), default="mlp", help="what a collective job trains (default: mlp)"
    )
    parser.add_argument(
        "--replicas", choices=("AUTO", "ALWAYS", "NEVER"), default="AUTO", help="of a collective job's shards (default: AUTO)"
    )
    parser.add_argument("--only_reduce", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--script", choices=sorted(train_rate.TRANSFER), help=argparse.SUPPRESS)
    parser.add_argument("--overlap", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    train_rate.add_flags(parser)
    flags = parser.parse_args()
    if flags.rank is not None:
        network = train_rate.NETWORKS[flags.network]
        train_rank(network, flags.only_reduce, flags.rank, flags.port, flags.steps, flags.processes)
        return
    if flags.script is not None:
        train_script(flags.script, flags.overlap, flags.steps, flags.work)
        return

    try:
        print(describe_own_torch())
        with_torch = True
    except ImportError:
        print(f"{sys.executable} has no PyTorch (Debian: python3-torch): Keelson alone", file=sys.stderr)
        with_torch = False
    make, unit = (contenders_alone, "steps/s") if flags.alone else (contenders_together, "gradients/s")
    if flags.scripts and flags.network != "mlp":
        parser.error(f"--network: expected mlp with --scripts, found {flags.network}")
    if flags.strategy == "collective":
        make = contenders_collective
    elif flags.scripts:
        make = contenders_of_scripts
    with tempfile.TemporaryDirectory() as flags.work:
        try:
            rates = compare(make(flags, with_torch), flags.repeat)
        except RuntimeError as error:
            parser.exit(1, f"compare_torch: {error}\n")
    for name, values in rates.items():
        print(f"{name}: {statistics.median(values):.4g} ({min(values):.4g}-{max(values):.4g}) {unit}")


if __name__ == "__main__":
    main()
