"""What keelson_ckpt writes as ONNX predicts what keelson_predict does, in ONNX Runtime and in ONNX' own evaluator."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
except ImportError as error:
    raise unittest.SkipTest(f"no ONNX: {error}") from error

BINARIES = Path(os.environ.get("KEELSON_BINARY_DIR", "build/release/bin"))
SOURCES = Path(os.environ.get("KEELSON_SOURCE_DIR", "."))
TOLERANCE = 1e-5

Line = dict[str, Any]


def run(program: str, *arguments: str) -> None:
    """Runs a program that must succeed."""
    done = subprocess.run([BINARIES / program, *arguments], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{program} {' '.join(arguments)}: {done.returncode}\n{done.stderr[-2000:]}")


def ids_of(values: list[int]) -> numpy.ndarray:
    """Ids of 64 bits, as int64 of the same bits."""
    return numpy.array(values, dtype=numpy.uint64).view(numpy.int64)


def feeds_of(model: onnx.ModelProto, lines: list[Line]) -> dict[str, numpy.ndarray]:
    """The graph's inputs for the features of some predictions."""
    inputs = {value.name: value.type.tensor_type for value in model.graph.input}
    feeds = {}
    for name in lines[0]["features"]:
        values = [line["features"][name] for line in lines]
        if f"{name}_offsets" in inputs:
            weighted = isinstance(values[0], dict)
            bags = [value["ids"] for value in values] if weighted else values
            feeds[name] = ids_of([key for bag in bags for key in bag])
            feeds[f"{name}_offsets"] = numpy.cumsum([0] + [len(bag) for bag in bags]).astype(numpy.int64)
            if weighted:
                weights = [weight for value in values for weight in value["weights"]]
                feeds[f"{name}_weights"] = numpy.array(weights, dtype=numpy.float32)
        elif inputs[name].elem_type == onnx.TensorProto.INT64:
            feeds[name] = ids_of(values)
        else:
            shape = [len(values)] + [dim.dim_value for dim in inputs[name].shape.dim[1:]]
            feeds[name] = numpy.array(values, dtype=numpy.float32).reshape(shape)
    return feeds


class OnnxTest(unittest.TestCase):
    """Trains each configuration for some steps, exports it, and predicts with both."""

    def compare(self, config: str, steps: int = 30, *, text: str | None = None) -> None:
        with tempfile.TemporaryDirectory() as directory:
            model_dir, exported, scored = (os.path.join(directory, name) for name in ("model", "m.onnx", "scores"))
            path = SOURCES / "configs" / f"{config}.textproto"
            if text is not None:
                path = Path(directory) / "config.textproto"
                path.write_text(text, encoding="utf-8")
            run("chief", f"--config={path}", f"--model_dir={model_dir}", f"--training_steps={steps}")
            run("keelson_ckpt", "onnx", model_dir, exported)
            # Every id of a record that has trained has a row.
            run("keelson_predict", model_dir, "--train", "--limit=64", "--json", "--features", f"--out={scored}")
            lines = [json.loads(line) for line in Path(scored).read_text(encoding="utf-8").splitlines()]
            model = onnx.load(exported)
        onnx.checker.check_model(model, full_check=True)
        feeds = feeds_of(model, lines)
        outputs = [value.name for value in model.graph.output]
        output = "probabilities" if "probabilities" in outputs else "scores"
        keys = ("probability", "probabilities", "score")
        ours = numpy.array([next(line[key] for key in keys if key in line) for line in lines])
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for runtime in (session, ReferenceEvaluator(model)):
            theirs = numpy.asarray(runtime.run([output], feeds)[0]).reshape(ours.shape)
            self.assertLess(float(numpy.abs(theirs - ours).max()), TOLERANCE, (config, type(runtime)))

    def test_images(self):
        for config in ("mnist_mlp", "mnist_cnn", "mnist_cnn_batch_norm", "mnist_residual", "textures_residual"):
            with self.subTest(config):
                self.compare(config)

    def test_numbers_and_two_towers(self):
        for config in ("regression_mlp", "two_towers"):
            with self.subTest(config):
                self.compare(config)

    def test_ids_and_bags(self):
        for config in ("clicks_embeddings", "dlrm_toy"):
            with self.subTest(config):
                self.compare(config)

    def test_tables(self):
        """Of a table that has a row for each id of the records: they all have been trained."""
        for config in ("ctr_lr", "ctr_fm", "ctr_deepfm", "ctr_dcn", "ctr_dlrm", "ctr_wide_deep"):
            with self.subTest(config):
                text = (SOURCES / "configs" / f"{config}.textproto").read_text(encoding="utf-8")
                few = text.replace("train_records: 20000000", "train_records: 20000")
                self.assertNotEqual(few, text)
                self.compare(config, 20, text=few)


if __name__ == "__main__":
    unittest.main()
