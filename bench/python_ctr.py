#!/usr/bin/python3
"""The click model of python/examples/ctr.py, by a script and by a C++ worker: AUC on records not trained on, and rates.

usage: bench/python_ctr.py [--records N] [--repeat N] [--bin_dir DIR]

Records of Criteo's form are drawn: 13 counts, and 26 texts of 20,000 values each with frequencies in proportion to
1 / rank. The log odds of a click are a sum of weights of the values, of products of their factors, and of the counts'
logarithms. Both jobs have the same network, optimizers, batch size, bound of staleness and seed, one worker and one
server on this machine, and go once over the records. The models are scored by the same code, from their last snapshots.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple

import train_rate

sys.path.insert(0, os.path.join(train_rate.REPOSITORY, "python"))

FIELDS, NUMBERS, DIM, VALUES, FACTORS, BATCH = 26, 13, 16, 20_000, 4, 1024
EVALUATED = 50_000

CONFIG = """
model {{
  name: "ctr"
  features {{ name: "numbers" dense {{ shape: 13 }} }}
  {features}
  tables {{ name: "ids" dim: 16 }}
  {lookups}
  layers {{ name: "all" concat {{}} {inputs} inputs: "numbers" }}
  layers {{ name: "hidden" dense {{ units: 64 }} }}
  layers {{ relu {{}} }}
  layers {{ name: "score" dense {{ units: 1 }} }}
  loss {{ kind: SIGMOID_CROSS_ENTROPY }}
}}
optimizer {{
  adamw {{}}
  groups {{ variables: "ids" adagrad {{ initial_accumulator: 0 epsilon: 1e-10 }} learning_rate: 0.05 }}
}}
learning_rate {{ base: 0.001 }}
initial_values {{ groups {{ variables: "ids" uniform {{ low: -0.01 high: 0.01 }} }} }}
data {{ criteo {{}} data_dir: "{directory}" train_files: "train.tsv" eval_files: "eval.tsv" }}
train {{ batch_size: 1024 epochs: 1 }}
consistency {{ mode {{ bounded_staleness {{ staleness: 4 }} }} }}
"""


class Outcome(NamedTuple):
    auc: float
    rate: float  # records per second


def write_records(directory: str, records: int) -> None:
    import torch

    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(FIELDS, VALUES, generator=generator) * 0.3
    factors = torch.randn(FIELDS, VALUES, FACTORS, generator=generator) * 0.15
    of_counts = torch.randn(NUMBERS, generator=generator) * 0.1
    frequencies = 1 / torch.arange(1, VALUES + 1).double()
    cumulative = frequencies.cumsum(0) / frequencies.sum()
    for name, count in (("train", records), ("eval", EVALUATED)):
        with open(os.path.join(directory, f"{name}.tsv"), "w", encoding="utf-8") as file:
            for begin in range(0, count, 10_000):
                size = min(10_000, count - begin)
                drawn = torch.rand(size, FIELDS, dtype=torch.float64, generator=generator)
                values = torch.searchsorted(cumulative, drawn).clamp(max=VALUES - 1)
                counts = torch.poisson(torch.full((size, NUMBERS), 3.0), generator=generator)
                fields = torch.arange(FIELDS)
                own = factors[fields, values]
                pairs = (own.sum(1).square() - own.square().sum(1)).sum(1) / 2
                odds = weights[fields, values].sum(1) + pairs + counts.log1p() @ of_counts - 1
                clicks = torch.bernoulli(torch.sigmoid(odds), generator=generator).int().tolist()
                for click, numbers, ids in zip(clicks, counts.int().tolist(), values.tolist()):
                    texts = "\t".join(f"{one:08x}" for one in ids)
                    file.write(f"{click}\t" + "\t".join(map(str, numbers)) + f"\t{texts}\n")


def by_script(directory: str, model_dir: str, records: int, bin_dir: str) -> Outcome:
    """By the example, with a model directory."""
    with open(os.path.join(train_rate.REPOSITORY, "python", "examples", "ctr.py"), encoding="utf-8") as file:
        text = file.read()
    text = text.replace("/data/criteo.tsv", os.path.join(directory, "train.tsv"))
    text = text.replace('keelson.join("ctr", ', f'keelson.join("ctr", model_dir={model_dir!r}, ')
    script = os.path.join(model_dir + ".py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"import sys\nsys.path.insert(0, {sys.path[0]!r})\n{text}")
    os.environ["KEELSON_BINARY_DIR"] = bin_dir
    samples = train_rate.run([sys.executable, script], model_dir)
    return Outcome(area(directory, model_dir, True), BATCH * train_rate.rate_of(samples, records // BATCH))


def by_worker(directory: str, model_dir: str, records: int, bin_dir: str) -> Outcome:
    config, job = model_dir + ".textproto", model_dir + ".yaml"
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            CONFIG.format(
                directory=directory,
                features="\n  ".join(f'features {{ name: "c{k + 1}" id {{}} }}' for k in range(FIELDS)),
                lookups="\n  ".join(
                    f'layers {{ name: "v{k + 1}" inputs: "c{k + 1}" embedding {{ table: "ids" }} }}'
                    for k in range(FIELDS)
                ),
                inputs=" ".join(f'inputs: "v{k + 1}"' for k in range(FIELDS)),
            )
        )
    with open(job, "w", encoding="utf-8") as file:
        file.write(train_rate.manifest(config, workers=1))
    command = [train_rate.LAUNCHER, f"--bin_dir={bin_dir}", f"--run_dir={model_dir}.run", f"--model_dir={model_dir}"]
    samples = train_rate.run([*command, job], model_dir)
    return Outcome(area(directory, model_dir, False), BATCH * train_rate.rate_of(samples, records // BATCH))


def area(directory: str, model_dir: str, of_script: bool) -> float:
    """Under the curve of the records that were not trained on."""
    import torch

    import keelson
    import keelson.torch as kt

    state = keelson.load_state_dict(model_dir)
    values = kt.tensors(state)
    names = ("top.0.weight", "top.0.bias", "top.2.weight", "top.2.bias")
    if not of_script:
        names = ("hidden/kernel", "hidden/bias", "score/kernel", "score/bias")
    weights = [values[name] if of_script or values[name].dim() == 1 else values[name].T for name in names]
    ids = kt.Embedding("ids", DIM, init=0.0)
    ids.load_rows(state.tables["ids"])
    data = kt.TsvDataset(os.path.join(directory, "eval.tsv"))
    scores, labels = [], []
    with torch.no_grad():
        for begin in range(0, len(data), 10_000):
            dense, found, label = data.batch(range(begin, min(begin + 10_000, len(data))))
            hidden = torch.cat([ids(found).flatten(1), dense], 1) @ weights[0].T + weights[1]
            scores.append((hidden.relu() @ weights[2].T + weights[3])[:, 0])
            labels.append(label)
    return area_of(torch.cat(scores).tolist(), torch.cat(labels).tolist())


def area_of(scores: List[float], labels: List[float]) -> float:
    """The share of pairs of a click and another record that are in the right order; scores are distinct enough."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    below = right = 0
    for index in order:
        if labels[index]:
            right += below
        else:
            below += 1
    clicks = len(scores) - below
    return right / (below * clicks)


def report(outcomes: Dict[str, List[Outcome]]) -> None:
    for name, own in outcomes.items():
        rates = [outcome.rate for outcome in own]
        print(
            f"{name:<10} AUC {' '.join(f'{outcome.auc:.4f}' for outcome in own)}   "
            f"{statistics.median(rates):.0f} records/s ({min(rates):.0f}-{max(rates):.0f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="The click model of a script beside that of a C++ worker.")
    parser.add_argument("--records", type=int, default=500_000, help="to train on (default: 500000)")
    parser.add_argument("--repeat", type=int, default=1, help="turns (default: 1)")
    parser.add_argument("--bin_dir", default=os.path.join(train_rate.REPOSITORY, "build", "release", "bin"))
    flags = parser.parse_args()
    bin_dir = os.path.abspath(flags.bin_dir)
    outcomes: Dict[str, List[Outcome]] = {"script": [], "C++ worker": []}
    contenders: Dict[str, Any] = {"script": by_script, "C++ worker": by_worker}
    with tempfile.TemporaryDirectory() as work:
        write_records(work, flags.records)
        for turn in range(flags.repeat):
            for name, run in contenders.items():
                model_dir = os.path.join(work, f"{name[0]}{turn}")
                outcomes[name].append(run(work, model_dir, flags.records, bin_dir))
    report(outcomes)


if __name__ == "__main__":
    main()
