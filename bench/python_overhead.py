#!/usr/bin/python3
"""What a step of a Python script costs beside one of a C++ client: a chief, a server and a script that computes nothing.

usage: bench/python_overhead.py [--steps N] [--repeat N] [--bin_dir DIR]

The models are those of `ps_bench --scenarios=model-180KB,model-2.7MB`, which gives the C++ client's times: gradients are
pushed and values come back, with SGD, over one connection. "python" pushes arrays by keelson.join; "torch" makes
optimizer steps of keelson.torch on tensors whose gradients are there already, if this interpreter has torch. All take
turns; microseconds per step, medians of the turns' medians.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(REPOSITORY, "python"))

import keelson  # noqa: E402

SHAPES = {
    "180KB": [(5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (256, 120), (120,), (120, 84), (84,), (84, 10), (10,)],
    "2.7MB": [(784, 512), (512,), (512, 512), (512,), (512, 10), (10,)],
}
WARM_UP = 0.2  # of the steps


def elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def shaped(shape: tuple[int, ...], value: float) -> memoryview:
    return memoryview(array.array("f", [value]) * elements(shape)).cast("B").cast("f", shape)


def median_of(moments: list[float]) -> float:
    """Microseconds between two moments."""
    kept = moments[int(WARM_UP * len(moments)) :]
    return statistics.median(1e6 * (after - before) for before, after in zip(kept, kept[1:]))


def python_step(model: str, steps: int) -> float:
    variables = {f"v{i}": shaped(shape, 1.0) for i, shape in enumerate(SHAPES[model])}
    gradients = {f"v{i}": shaped(shape, 0.001) for i, shape in enumerate(SHAPES[model])}
    moments: list[float] = []
    with keelson.join("null", variables=variables, optimizer=keelson.Sgd(lr=0.01), records=1024, batch_size=32,
                      max_steps=steps) as job:  # fmt: skip
        for step in job.steps():
            step.push(gradients, loss=0.5)
            moments.append(time.monotonic())
    return median_of(moments)


def torch_step(model: str, steps: int) -> float:
    import keelson.torch as kt
    import torch

    class Null(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(shape)) for shape in SHAPES[model]])

    module = Null()
    gradients = [torch.full(shape, 0.001) for shape in SHAPES[model]]
    moments: list[float] = []
    with keelson.join("null", records=1024, batch_size=32, max_steps=steps) as job:
        optimizer = kt.Optimizer(job, module, keelson.Sgd(lr=0.01))
        for _ in kt.Loader(job, range(1024), collate_fn=lambda records: records):
            for parameter, gradient in zip(module.all, gradients):
                parameter.grad = gradient
            optimizer.step(0.5)
            moments.append(time.monotonic())
    return median_of(moments)


def cpp_step(model: str, bin_dir: str) -> float:
    command = [os.path.join(bin_dir, "ps_bench"), f"--scenarios=model-{model}", "--handlers=sgd", "--repeat=1", "--json"]
    command.append("--transport=memory")  # As scripts have it on one machine.
    results = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    (found,) = (result for result in results if result["wire"] == "f32" and result["workers"] == 1)
    return float(found["p50_us"])


def has_torch() -> bool:
    try:
        import torch
    except ImportError:
        return False
    torch.set_num_threads(1)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000, help="of a script (default: 3000)")
    parser.add_argument("--repeat", type=int, default=5, help="turns (default: 5)")
    parser.add_argument("--bin_dir", default=os.path.join(REPOSITORY, "build", "release", "bin"))
    flags = parser.parse_args()
    os.environ["KEELSON_BINARY_DIR"] = flags.bin_dir
    os.environ.pop("TF_CONFIG", None)
    with_torch = has_torch()
    print("| model | C++ us | python us | difference | torch us | ratio |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as work:
        os.environ["TMPDIR"] = work
        for model in SHAPES:
            turns: dict[str, list[float]] = {"cpp": [], "python": [], "torch": []}
            for _ in range(flags.repeat):
                turns["cpp"].append(cpp_step(model, flags.bin_dir))
                turns["python"].append(python_step(model, flags.steps))
                if with_torch:
                    turns["torch"].append(torch_step(model, flags.steps))
            cpp, python = statistics.median(turns["cpp"]), statistics.median(turns["python"])
            torch_text = "| | |"
            if with_torch:
                torch_median = statistics.median(turns["torch"])
                torch_text = f"| {torch_median:.0f} | {torch_median / cpp:.2f} |"
            spread = f"({min(turns['python']):.0f}-{max(turns['python']):.0f})"
            print(f"| {model} | {cpp:.0f} | {python:.0f} {spread} | {python - cpp:+.0f}, {python / cpp:.2f} {torch_text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
