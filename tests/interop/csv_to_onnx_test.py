"""From a CSV file of clicks without a configuration to scores and to ONNX: as good as the file allows, and no better."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import subprocess
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import numpy
    from onnx.reference import ReferenceEvaluator
except ImportError:
    ReferenceEvaluator = None

BINARIES = Path(os.environ.get("KEELSON_BINARY_DIR", "build/release/bin"))
SOURCES = Path(os.environ.get("KEELSON_SOURCE_DIR", "."))
ROWS, FIELDS, VALUES, NUMBERS = 40_000, 4, 12, 2

Row = list[int]


class Clicks:
    """Rows of ids whose clicks depend on a weight of each id and on products of pairs, with known probabilities."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        weights = [[draw.gauss(0, 0.5) for _ in range(VALUES)] for _ in range(FIELDS)]
        vectors = [[[draw.gauss(0, 0.9) for _ in range(NUMBERS)] for _ in range(VALUES)] for _ in range(FIELDS)]
        frequencies = [1 / (k + 1) for k in range(VALUES)]
        self.rows: list[Row] = [draw.choices(range(VALUES), frequencies, k=FIELDS) for _ in range(ROWS)]
        self.logits = [self._logit(row, weights, vectors) for row in self.rows]
        self.labels = [int(draw.random() < probability(logit)) for logit in self.logits]

    @staticmethod
    def _logit(row: Row, weights: list[list[float]], vectors: list[list[list[float]]]) -> float:
        logit = -0.5 + sum(weights[field][value] for field, value in enumerate(row))
        for f in range(FIELDS):
            for g in range(f):
                logit += sum(a * b for a, b in zip(vectors[f][row[f]], vectors[g][row[g]]))
        return logit

    def write(self, path: Path) -> None:
        with open(path, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file)
            lines.writerow([f"field{field}" for field in range(FIELDS)] + ["clicked"])
            for row, label in zip(self.rows, self.labels):
                lines.writerow([f"v{value}" for value in row] + [label])

    def additive_scores(self) -> list[float]:
        """What the best sum of a number per id says, fitted to the known probabilities."""
        numbers = [[0.0] * VALUES for _ in range(FIELDS)]
        for epoch in range(6):
            rate = 0.05 / (1 + epoch)
            for row, logit in zip(self.rows, self.logits):
                score = sum(numbers[field][value] for field, value in enumerate(row))
                step = rate * (probability(logit) - probability(score))
                for field, value in enumerate(row):
                    numbers[field][value] += step
        return [sum(numbers[field][value] for field, value in enumerate(row)) for row in self.rows]


def probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def expected_auc(scores: Sequence[float], logits: Sequence[float]) -> float:
    """The AUC that an order of rows has in the mean, for labels with these probabilities."""
    ordered = sorted(zip(scores, map(probability, logits)))
    pairs = below = 0.0
    for begin in range(len(ordered)):
        if begin > 0 and ordered[begin][0] == ordered[begin - 1][0]:
            continue
        end = begin
        positives = negatives = 0.0
        while end < len(ordered) and ordered[end][0] == ordered[begin][0]:
            positives += ordered[end][1]
            negatives += 1 - ordered[end][1]
            end += 1
        pairs += positives * (below + negatives / 2)
        below += negatives
    total = sum(p for _, p in ordered)
    return pairs / (total * (len(ordered) - total))


def run(*command: str, **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class CsvToOnnxTest(unittest.TestCase):
    """A job of all roles on a file of which only the label's column is said."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.TemporaryDirectory()
        root = Path(cls.directory.name)
        cls.clicks = Clicks(seed=5)
        cls.clicks.write(root / "clicks.csv")
        cls.model_dir = root / "model"
        cls.output = run(
            str(SOURCES / "deploy" / "run_local.sh"), "--data", str(root / "clicks.csv"), "--label", "clicked",
            "--model_dir", str(cls.model_dir),
        )  # fmt: skip
        scores = root / "scores.csv"
        run(str(BINARIES / "keelson_predict"), str(cls.model_dir), f"--out={scores}")
        with open(scores, encoding="utf-8", newline="") as file:
            cls.scores = [float(line["probability"]) for line in csv.DictReader(file)]
        cls.held_out = slice(ROWS * 4 // 5, ROWS)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.directory.cleanup()

    def test_scores_lie_between_the_best_sum_and_the_best_of_all(self) -> None:
        logits = self.clicks.logits[self.held_out]
        self.assertEqual(len(self.scores), len(logits))
        ours = expected_auc(self.scores, logits)
        ceiling = expected_auc(self.clicks.additive_scores()[self.held_out], logits)
        best = expected_auc(logits, logits)
        self.assertLess(ceiling + 0.02, best)
        self.assertGreater(ours, ceiling)
        self.assertLessEqual(ours, best)

    def test_the_summary_has_the_metrics_of_clicks(self) -> None:
        for name in ("auc", "loss", "calibration", "normalized_entropy"):
            self.assertRegex(self.output, rf"evaluation .*\b{name} [0-9.]+")

    @unittest.skipIf(ReferenceEvaluator is None, "no package onnx")
    def test_onnx_says_the_same(self) -> None:
        exported = Path(self.directory.name) / "model.onnx"
        run(str(BINARIES / "keelson_ckpt"), "onnx", str(self.model_dir), str(exported))
        lines = Path(self.directory.name) / "lines.json"
        run(str(BINARIES / "keelson_predict"), str(self.model_dir), "--json", "--features", f"--out={lines}")
        rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        feeds = {
            name: numpy.array([row["features"][name] for row in rows], dtype=numpy.uint64).view(numpy.int64)
            for name in rows[0]["features"]
        }
        theirs = ReferenceEvaluator(str(exported)).run(["probabilities"], feeds)[0]
        difference = numpy.abs(numpy.asarray(theirs).reshape(-1) - numpy.array(self.scores)).max()
        self.assertLess(float(difference), 1e-5)


if __name__ == "__main__":
    unittest.main()
