#!/usr/bin/python3
"""The time of each layer on the CPU beside PyTorch's for the same shape and number of threads.

usage: VENV/bin/python bench/compare_layers.py [--rounds N] [--threads N] [--layers NAME,...] [--bin_dir DIR] [--markdown]

Both take turns, layer by layer; medians over the rounds with (least-most). Forward alone, and forward and backward with
the gradients of inputs and variables. Of PyTorch's two layouts of images the faster one counts. The PyTorch is that of
the interpreter that runs this. The exit code is 1 when a layer takes more than 1.3 times PyTorch's time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOAL = 1.3
LEAST_SECONDS = 0.02

Layer = Dict[str, Any]
Call = Callable[[], Any]


# The kinds of layers that are measured under other names than theirs.
KINDS = {"cross_low_rank": "cross"}
# What each is called with: shapes of variables as torch_layers has them, and fields of the configuration.
VARIABLES: Dict[str, Dict[str, Sequence[int]]] = {
    "dense": {"kernel": (512, 512), "bias": (512,)},
    "conv2d": {"kernel": (64, 32, 5, 5), "bias": (64,)},
    "batch_norm": {"gamma": (32,), "beta": (32,)},
    "layer_norm": {"gamma": (512,), "beta": (512,)},
    "cross": {"kernel": (512, 512), "bias": (512,)},
    "cross_low_rank": {"down_kernel": (64, 512), "kernel": (512, 64), "bias": (512,)},
    "embedding": {"embeddings": (100000, 32)},
    "embedding_bag": {"embeddings": (100000, 32)},
}
FIELDS: Dict[str, Dict[str, Any]] = {
    "conv2d": {"padding": "SAME"},
    "max_pool": {"size": 2},
    "avg_pool": {"size": 2},
    "dropout": {"rate": 0.5},
    "scale": {"factor": 0.5},
    "slice": {"begin": 1024, "size": 1024},
    # PyTorch transposes [channels, height, width], as inputs_of makes it: that moves as much as
    # the other order.
    "transpose": {"axes": (1, 2, 0)},
    "embedding_bag": {"combiner": "SUM"},
}


def function_of(torch: Any, name: str) -> Callable[[List[Any]], Any]:
    """What computes the output of the layer from its inputs."""
    import torch_layers

    if name == "cosine":  # PyTorch's own is faster than the formula with our epsilon.
        return lambda xs: torch.nn.functional.cosine_similarity(xs[0], xs[1], dim=-1)
    variables = {
        part: ((torch.rand(shape) * 2 - 1) * shape[-1] ** -0.5).requires_grad_()
        for part, shape in VARIABLES.get(name, {}).items()
    }
    call = torch_layers.LAYERS[KINDS.get(name, name)]
    return lambda xs: call(xs, variables, **FIELDS.get(name, {}))


def inputs_of(torch: Any, layer: Layer, channels_last: bool) -> List[Any]:
    if layer["ids"] > 0:
        shape = [layer["batch"]] if layer["ids"] == 1 else [layer["batch"], layer["ids"]]
        return [torch.randint(0, layer["num_ids"], shape)]
    inputs = []
    for shape in layer["shapes"]:
        x = torch.rand([layer["batch"]] + shape) * 2 - 1
        if len(shape) == 3:
            x = x.permute(0, 3, 1, 2)
            x = x if channels_last else x.contiguous()
        inputs.append(x.requires_grad_())
    return inputs


def milliseconds(call: Call) -> float:
    """Of one call, repeated for LEAST_SECONDS."""
    calls, began = 0, time.perf_counter()
    while True:
        call()
        calls += 1
        seconds = time.perf_counter() - began
        if seconds >= LEAST_SECONDS:
            return 1000 * seconds / calls


def measure_torch(torch: Any, layer: Layer) -> Tuple[float, float]:
    """Forward; forward and backward. Of both layouts, where there are two, the faster one."""
    function = function_of(torch, layer["name"])
    images = any(len(shape) == 3 for shape in layer["shapes"])
    times = []
    # With channels last there would be nothing to copy for it.
    both_layouts = images and layer["name"] != "transpose"
    for channels_last in (False, True) if both_layouts else (False,):
        xs = inputs_of(torch, layer, channels_last)
        with torch.no_grad():
            gradient = torch.full_like(function(xs), 1e-3)

        def forward() -> None:
            with torch.no_grad():
                function(xs)

        def both() -> None:
            for x in xs:
                x.grad = None
            function(xs).backward(gradient)

        both()
        times.append((milliseconds(forward), milliseconds(both)))
    return min(t[0] for t in times), min(t[1] for t in times)


def measure_keelson(program: str, flags: argparse.Namespace, names: str) -> List[Layer]:
    command = [program, "--json", "--repeat=1", f"--threads={flags.threads}"]
    if names:
        command.append(f"--layers={names}")
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"compare_layers.py: {result.stderr.strip()}")
    return list(json.loads(result.stdout)["layers"])


def spread(values: List[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def report(rows: List[List[str]], markdown: bool) -> None:
    header = ["layer", "forward ms", "PyTorch", "ratio", "forward and backward ms", "PyTorch", "ratio"]
    if markdown:
        print("| " + " | ".join(header) + " |\n|---" + "|---:" * (len(header) - 1) + "|")
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    for row in [header] + rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layers", default="")
    parser.add_argument("--bin_dir", default=os.path.join(REPOSITORY, "build", "release", "bin"))
    parser.add_argument("--markdown", action="store_true")
    flags = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("compare_layers.py: no PyTorch: expected an interpreter that has it (VENV/bin/python)")
    from compare_torch import describe_own_torch

    torch.set_num_threads(flags.threads)
    print(describe_own_torch(), f"oneDNN {'yes' if torch.backends.mkldnn.is_available() else 'no'}", sep=", ")
    program = os.path.join(flags.bin_dir, "layer_bench")
    rows, slow = [], 0
    for layer in measure_keelson(program, flags, flags.layers):
        own: List[Tuple[float, float]] = []
        other: List[Tuple[float, float]] = []
        for _ in range(flags.rounds):
            found = measure_keelson(program, flags, layer["name"])[0]
            own.append((found["forward_ms"]["median"], found["forward_backward_ms"]["median"]))
            other.append(measure_torch(torch, layer))
        row = [layer["name"]]
        for k in (0, 1):
            mine, theirs = [t[k] for t in own], [t[k] for t in other]
            ratio = statistics.median(mine) / statistics.median(theirs)
            slow += k == 1 and ratio > GOAL
            row += [spread(mine), spread(theirs), f"{ratio:.2f}"]
        rows.append(row)
    report(rows, flags.markdown)
    print(f"{slow} of {len(rows)} layers take more than {GOAL} times PyTorch's time for forward and backward")
    return 1 if slow > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
