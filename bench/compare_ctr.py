#!/usr/bin/python3
"""Training rates of click models: Keelson with tables on a server, the same network without tables, and PyTorch.

usage: bench/compare_ctr.py [--models dlrm,deepfm] [--repeat N] [--steps N] [--bin_dir DIR]

The shapes are those of DeepRec's model zoo on Criteo: 13 numbers, 26 ids with vectors of 16, batch 2048. DLRM has a
network of 512-256-64-16 for the numbers and 512-256 behind the products of all pairs; DeepFM 1024-256-32. Adagrad
everywhere. One worker and one server of Keelson share the machine's cores and read lines of text; "dense" makes the
vectors of the numbers by one layer instead of looking them up, so that nothing but the network is left; PyTorch trains
in one process with all cores on ids in memory, with EmbeddingBag(sparse=True). All take turns; examples per second,
medians with (least-most). The PyTorch is that of the interpreter that runs this.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from functools import partial
from typing import Any, Callable

import train_rate

FIELDS, NUMBERS, DIM, BATCH = 26, 13, 16, 2048
VALUES = 100_000  # of a field, with frequencies in proportion to 1 / rank^1.05
LINES = 200_000
EXPONENT = 1.05
WARM_UP_STEPS = 5

Contender = Callable[[], float]


def dense(inputs: str, name: str, units: int, relu: bool = True) -> str:
    layer = f'layers {{ name: "{name}" inputs: "{inputs}" dense {{ units: {units} }} }}\n'
    return layer + (f'layers {{ name: "{name}_relu" inputs: "{name}" relu {{}} }}\n' if relu else "")


def names(name: str) -> str:
    return " ".join(f'inputs: "{name}{field}"' for field in range(FIELDS))


def vectors(tables: bool) -> str:
    """The layers "vector0" to "vector25", [16] each."""
    if tables:
        return "".join(
            f'layers {{ name: "vector{field}" inputs: "c{field + 1}" embedding {{ table: "vectors" }} }}\n'
            for field in range(FIELDS)
        )
    slices = "".join(
        f'layers {{ name: "vector{field}" inputs: "all_vectors" slice {{ begin: {field * DIM} size: {DIM} }} }}\n'
        for field in range(FIELDS)
    )
    return dense("numbers", "all_vectors", FIELDS * DIM, relu=False) + slices


def dlrm() -> str:
    bottom = dense("numbers", "b1", 512) + dense("b1_relu", "b2", 256) + dense("b2_relu", "b3", 64)
    pairs = f'layers {{ name: "pairs" dot_interaction {{}} inputs: "b4_relu" {names("vector")} }}\n'
    both = 'layers { name: "both" concat {} inputs: "b4_relu" inputs: "pairs" }\n'
    top = dense("both", "t1", 512) + dense("t1_relu", "t2", 256) + dense("t2_relu", "score", 1, relu=False)
    return bottom + dense("b3_relu", "b4", DIM) + pairs + both + top


def deepfm() -> str:
    products = f'layers {{ name: "products" factorization_machine {{}} {names("vector")} }}\n'
    both = f'layers {{ name: "both" concat {{}} inputs: "numbers" {names("vector")} }}\n'
    deep = dense("both", "d1", 1024) + dense("d1_relu", "d2", 256) + dense("d2_relu", "d3", 32)
    last = dense("d3_relu", "deep", 1, relu=False)
    return products + both + deep + last + 'layers { name: "score" add {} inputs: "deep" inputs: "products" }\n'


NETWORKS = {"dlrm": dlrm, "deepfm": deepfm}


def config_of(model: str, tables: bool, data_dir: str, steps: int) -> str:
    features = "".join(f'features {{ name: "c{field + 1}" id {{}} }}\n' for field in range(FIELDS)) if tables else ""
    table = f'tables {{ name: "vectors" dim: {DIM} }}\n' if tables else ""
    return f"""
model {{
  name: "{model}"
  features {{ name: "numbers" dense {{ shape: {NUMBERS} }} }}
  {features}{table}{vectors(tables)}{NETWORKS[model]()}
  loss {{ kind: SIGMOID_CROSS_ENTROPY scores: "score" }}
}}
optimizer {{ adagrad {{}} }}
learning_rate {{ base: 0.01 }}
data {{ criteo {{}} data_dir: "{data_dir}" train_files: "lines" eval_files: "lines" eval_subset {{ end: 2048 }} }}
train {{ batch_size: {BATCH} max_steps: {steps} seed: 1 }}
checkpoint {{ save_steps: {steps} }}
"""


def write_lines(path: str) -> None:
    draw = random.Random(1)
    cumulative = list(itertools.accumulate((k + 1) ** -EXPONENT for k in range(VALUES)))
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(LINES):
            numbers = "\t".join(str(draw.randrange(1000)) for _ in range(NUMBERS))
            ids = "\t".join(f"{value:08x}" for value in draw.choices(range(VALUES), cum_weights=cumulative, k=FIELDS))
            file.write(f"{draw.randrange(2)}\t{numbers}\t{ids}\n")


def measure_keelson(model: str, tables: bool, data_dir: str, flags: argparse.Namespace) -> float:
    with tempfile.TemporaryDirectory() as work:
        config, job = os.path.join(work, "config.textproto"), os.path.join(work, "job.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(config_of(model, tables, data_dir, flags.steps))
        with open(job, "w", encoding="utf-8") as file:
            file.write(train_rate.manifest(config, workers=1))
        model_dir = os.path.join(work, "model")
        command = [train_rate.LAUNCHER, f"--bin_dir={flags.bin_dir}", f"--run_dir={work}/run"]
        samples = train_rate.run(command + [f"--model_dir={model_dir}", job], model_dir)
        return BATCH * train_rate.rate_of(samples, flags.steps)


def torch_network(model: str) -> Any:
    """A module of numbers [n, 13] and ids [26][n] whose output is [n]."""
    import torch
    from torch import nn

    def stack(*sizes: int, last: bool = True) -> nn.Sequential:
        layers: list[nn.Module] = []
        for before, after in zip(sizes, sizes[1:]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*(layers if last else layers[:-1]))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(VALUES, DIM, mode="sum", sparse=True) for _ in range(FIELDS))
            if model == "dlrm":
                count = (FIELDS + 1) * FIELDS // 2
                self.bottom = stack(NUMBERS, 512, 256, 64, DIM)
                self.top = stack(DIM + count, 512, 256, 1, last=False)
                self.lower = torch.tril_indices(FIELDS + 1, FIELDS + 1, offset=-1)
            else:
                self.top = stack(NUMBERS + FIELDS * DIM, 1024, 256, 32, 1, last=False)

        def forward(self, numbers: torch.Tensor, ids: list[torch.Tensor]) -> torch.Tensor:
            found = [table(field.unsqueeze(1)) for table, field in zip(self.tables, ids)]
            if model == "dlrm":
                low = self.bottom(numbers)
                z = torch.stack([low] + found, dim=1)
                pairs = torch.bmm(z, z.transpose(1, 2))[:, self.lower[0], self.lower[1]]
                return self.top(torch.cat([low, pairs], dim=1)).squeeze(1)
            z = torch.stack(found, dim=1)
            total = z.sum(dim=1)
            products = (total * total - (z * z).sum(dim=1)).sum(dim=1) / 2
            return self.top(torch.cat([numbers] + found, dim=1)).squeeze(1) + products

    return Network()


def measure_torch(model: str, steps: int) -> float:
    import torch

    torch.manual_seed(1)
    network = torch_network(model)
    sparse = list(network.tables.parameters())
    others = [parameter for name, parameter in network.named_parameters() if not name.startswith("tables.")]
    optimizers = [torch.optim.Adagrad(sparse, lr=0.01), torch.optim.Adagrad(others, lr=0.01)]
    loss = torch.nn.BCEWithLogitsLoss()
    weights = torch.arange(1, VALUES + 1, dtype=torch.float64) ** -EXPONENT
    batches = [
        (
            torch.rand(BATCH, NUMBERS),
            [torch.multinomial(weights, BATCH, replacement=True) for _ in range(FIELDS)],
            torch.randint(0, 2, (BATCH,)).float(),
        )
        for _ in range(8)
    ]
    began = 0.0
    for step in range(WARM_UP_STEPS + steps):
        if step == WARM_UP_STEPS:
            began = time.monotonic()
        numbers, ids, labels = batches[step % len(batches)]
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss(network(numbers, ids), labels).backward()
        for optimizer in optimizers:
            optimizer.step()
    return BATCH * steps / (time.monotonic() - began)


def contenders(flags: argparse.Namespace, data_dir: str, with_torch: bool) -> dict[str, Contender]:
    result: dict[str, Contender] = {}
    for model in flags.models.split(","):
        for kind, tables in (("tables", True), ("dense", False)):
            result[f"{model} {kind}"] = partial(measure_keelson, model, tables, data_dir, flags)
        if with_torch:
            result[f"{model} torch"] = partial(measure_torch, model, max(20, flags.steps // 8))
    return result


def torch_version() -> str | None:
    try:
        import torch
    except ImportError:
        return None
    return str(torch.__version__)


def report(rates: dict[str, list[float]]) -> None:
    for name, values in rates.items():
        model = name.split()[0]
        median = statistics.median(values)
        own = statistics.median(rates[f"{model} tables"])
        print(f"{name:14} {median:9.0f} examples/s ({min(values):.0f}-{max(values):.0f}), tables have {own / median:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Training rates of click models, beside PyTorch's.")
    parser.add_argument("--models", default="dlrm,deepfm", help="some of dlrm, deepfm (default: both)")
    parser.add_argument("--repeat", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--steps", type=int, default=200, help="length of a job (default: 200)")
    parser.add_argument("--bin_dir", default=os.path.join(train_rate.REPOSITORY, "build", "release", "bin"))
    flags = parser.parse_args()
    unknown = set(flags.models.split(",")) - set(NETWORKS)
    if unknown:
        parser.error(f"--models: expected some of {', '.join(NETWORKS)}, found {', '.join(sorted(unknown))}")
    version = torch_version()
    print(f"PyTorch {version}" if version else "no PyTorch here: Keelson alone")
    with tempfile.TemporaryDirectory() as data_dir:
        write_lines(os.path.join(data_dir, "lines"))
        turns = contenders(flags, data_dir, version is not None)
        rates: dict[str, list[float]] = {name: [] for name in turns}
        for _ in range(flags.repeat):
            for name, measure in turns.items():
                rates[name].append(measure())
                print(f"  {name}: {rates[name][-1]:.0f}", file=sys.stderr)
    report(rates)


if __name__ == "__main__":
    main()
