"""Reads the files of a real training as TensorBoard does, and recomputes their values.

Needs the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import json
import math
import os
import struct
import tempfile
import time
import unittest

import programs
import tensorboard_reader as reader
from small_records import PIXELS, make_records, write_idx

TIMEOUT_SECONDS = 120

STEPS, SUMMARY_STEPS, HISTOGRAM_STEPS = 60, 10, 20
BATCH, RATE = 16, 0.5
# Logistic regression, whose predictions can be recomputed from the weights.
CONFIG = f"""
model {{
  name: "bright_or_dark"
  input_shape: [3, 3, 1]
  layers {{ flatten {{}} }}
  layers {{ name: "score" dense {{ units: 1 }} }}
  loss {{ kind: SIGMOID_CROSS_ENTROPY }}
}}
optimizer {{ momentum {{ momentum: 0.5 }} }}
learning_rate {{ base: {RATE} cosine {{}} }}
train {{
  batch_size: {BATCH} max_steps: {STEPS} seed: 3
  summary_steps: {SUMMARY_STEPS} histogram_steps: {HISTOGRAM_STEPS}
}}
checkpoint {{ save_steps: {STEPS // 2} keep_max: 10 }}
evaluation {{
  batch_size: 50
  metrics {{ accuracy {{}} }}
  metrics {{ auc {{}} }}
  metrics {{ auc {{ curve: PRECISION_RECALL }} }}
  metrics {{ precision {{}} }}
  metrics {{ recall {{}} }}
  metrics {{ mean_squared_error {{}} }}
  metrics {{ mean_absolute_error {{}} }}
}}
data {{ class_names: ["dark", "bright"] sequential: true }}
"""


def read_safetensors(path):
    """name -> values."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return tensors


def metrics_of(scores, labels):
    """The metrics of the evaluation, computed directly from their definitions."""
    pairs = list(zip(scores, labels))
    probabilities = [1 / (1 + math.exp(-score)) for score in scores]
    positives = [score for score, label in pairs if label == 1]
    negatives = [score for score, label in pairs if label == 0]
    right = sum(score > 0 for score in positives)
    wrong = sum(score > 0 for score in negatives)
    wins = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    precision_at = [
        sum(p >= threshold for p in positives) / sum(score >= threshold for score in scores) for threshold in positives
    ]
    errors = [probability - label for probability, label in zip(probabilities, labels)]
    return {
        "loss": sum(math.log1p(math.exp(-score if label else score)) for score, label in pairs) / len(pairs),
        "accuracy": (right + len(negatives) - wrong) / len(pairs),
        "auc": wins / len(positives) / len(negatives),
        "auc_pr": sum(precision_at) / len(positives),
        "precision": right / max(1, right + wrong),
        "recall": right / len(positives),
        "mean_squared_error": sum(error * error for error in errors) / len(errors),
        "mean_absolute_error": sum(abs(error) for error in errors) / len(errors),
    }


class TensorBoardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        data = os.path.join(folder.name, "data")
        os.mkdir(data)
        cls.train_records = make_records(400, seed=1)
        write_idx(data, "train", cls.train_records)
        cls.eval_records = make_records(230, seed=2)
        write_idx(data, "t10k", cls.eval_records)
        config = os.path.join(folder.name, "config.textproto")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG)
        cls.model_dir = os.path.join(folder.name, "model")
        cls.begun = time.time()
        flags = (f"--model_dir={cls.model_dir}", f"--config={config}", f"--data_dir={data}")
        programs.run("chief", *flags, timeout=TIMEOUT_SECONDS)
        cls.ended = time.time()
        cls.train = reader.read_values(cls.model_dir)
        cls.eval = reader.read_values(os.path.join(cls.model_dir, "eval"))
        cls.gradients = {tag: points for tag, points in cls.train.items() if tag.startswith("gradients/")}
        with open(os.path.join(cls.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            cls.evaluations = {line["step"]: line for line in map(json.loads, file)}

    def weights(self, step):
        path = os.path.join(self.model_dir, f"{step}.safetensors")
        if not os.path.exists(path):
            programs.run("keelson_ckpt", "export", os.path.join(self.model_dir, f"model.ckpt-{step}"), path)
        tensors = read_safetensors(path)
        return tensors["score/kernel"], tensors["score/bias"]

    def check_histogram(self, histogram, elements):
        """The invariants that TensorBoard relies on."""
        limits, counts = list(histogram.bucket_limit), list(histogram.bucket)
        self.assertEqual(len(limits), len(counts))
        self.assertEqual(limits, sorted(set(limits)))
        self.assertEqual(sum(counts), histogram.num)
        self.assertEqual(histogram.num, elements)
        self.assertLessEqual(histogram.min, histogram.max)
        self.assertLessEqual(histogram.min * elements, histogram.sum)
        self.assertLessEqual(histogram.sum, histogram.max * elements)
        last = max(i for i, count in enumerate(counts) if count > 0)
        self.assertLess(histogram.max, limits[last])

    def text(self, tag):
        ((step, _, value),) = self.train[tag]
        self.assertEqual(step, 0)
        self.assertEqual(value.metadata.plugin_data.plugin_name, "text")
        self.assertEqual(value.metadata.data_class, reader.DATA_CLASS_TENSOR)
        self.assertEqual(value.tensor.dtype, reader.STRING)
        self.assertTrue(value.tensor.HasField("tensor_shape"))
        self.assertEqual(len(value.tensor.tensor_shape.dim), 0)
        (text,) = value.tensor.string_val
        return text.decode()

    def test_times_are_those_of_the_run(self):
        for values in (self.train, self.eval, self.gradients):
            for tag, points in values.items():
                times = [wall_time for _, wall_time, _ in points]
                self.assertEqual(times, sorted(times), tag)
                self.assertGreater(times[0], self.begun - 1)
                self.assertLess(times[-1], self.ended + 1)

    def test_training_has_loss_and_learning_rate(self):
        steps = list(range(SUMMARY_STEPS, STEPS + 1, SUMMARY_STEPS))
        for tag in ("loss", "learning_rate", "speed/steps_per_second", "exchange/staleness"):
            found = [step for step, _, _ in self.train.get(tag, [])]
            # Rates are there from the second look on.
            self.assertEqual(found, steps[len(steps) - len(found) :] if "/" in tag else steps, tag)
            for _, _, value in self.train.get(tag, []):
                self.assertEqual(value.WhichOneof("value"), "simple_value")
        losses = [value.simple_value for _, _, value in self.train["loss"]]
        self.assertLess(losses[-1], 0.9 * math.log(2))
        for step, _, value in self.train["learning_rate"]:
            expected = RATE / 2 * (1 + math.cos(math.pi * (step - 1) / STEPS))
            self.assertAlmostEqual(value.simple_value, expected, places=6)

    def test_evaluations_are_those_of_the_metrics_file_and_of_the_weights(self):
        self.assertEqual((min(self.evaluations), max(self.evaluations)), (0, STEPS))
        labels = [label for _, label in self.eval_records]
        for step in self.evaluations:
            kernel, (bias,) = self.weights(step)
            scores = [
                bias + sum(w * pixel / 255 for w, pixel in zip(kernel, pixels)) for pixels, _ in self.eval_records
            ]
            for name, expected in metrics_of(scores, labels).items():
                (found,) = [value.simple_value for at, _, value in self.eval[name] if at == step]
                self.assertAlmostEqual(found, expected, places=5, msg=f"{name} at step {step}")
                self.assertAlmostEqual(self.evaluations[step][name], found, places=6)

    def test_histograms_of_the_weights(self):
        for step in self.evaluations:
            for tag, elements in zip(("weights/score/kernel", "weights/score/bias"), self.weights(step)):
                (histogram,) = [value.histo for at, _, value in self.eval[tag] if at == step]
                self.check_histogram(histogram, len(elements))
                self.assertEqual(histogram.min, min(elements))
                self.assertEqual(histogram.max, max(elements))
                self.assertAlmostEqual(histogram.sum, sum(elements))
                self.assertAlmostEqual(histogram.sum_squares, sum(w * w for w in elements))
                lower = -math.inf
                for limit, count in zip(histogram.bucket_limit, histogram.bucket):
                    self.assertEqual(count, sum(lower <= w < limit for w in elements), (lower, limit))
                    lower = limit

    def test_histograms_of_the_gradients(self):
        steps = list(range(1, STEPS + 1, HISTOGRAM_STEPS))
        for tag, elements in (("gradients/score/kernel", PIXELS), ("gradients/score/bias", 1)):
            self.assertEqual([step for step, _, _ in self.gradients[tag]], steps)
            for _, _, value in self.gradients[tag]:
                self.check_histogram(value.histo, elements)
                self.assertGreater(value.histo.sum_squares, 0)
        self.assertEqual([value.simple_value for _, _, value in self.gradients["gradients/non_finite"]], [0] * len(steps))

    def test_the_first_gradient_is_that_of_the_first_batch(self):
        kernel, (bias,) = self.weights(0)
        gradient = [0.0] * (PIXELS + 1)
        for pixels, label in self.train_records[:BATCH]:
            features = [pixel / 255 for pixel in pixels] + [1]
            score = sum(w * x for w, x in zip((*kernel, bias), features))
            error = 1 / (1 + math.exp(-score)) - label
            for i, x in enumerate(features):
                gradient[i] += error * x / BATCH
        for tag, elements in (("gradients/score/kernel", gradient[:PIXELS]), ("gradients/score/bias", gradient[PIXELS:])):
            histogram = self.gradients[tag][0][2].histo
            self.assertAlmostEqual(histogram.min, min(elements), places=6)
            self.assertAlmostEqual(histogram.max, max(elements), places=6)
            self.assertAlmostEqual(histogram.sum, sum(elements), places=6)
            self.assertAlmostEqual(histogram.sum_squares, sum(g * g for g in elements), places=6)

    def test_the_model_as_text(self):
        self.assertIn(f"| `score` | dense | [1] | {PIXELS + 1} |", self.text("model"))
        config = self.text("config")
        for line in ('name: "bright_or_dark"', f"histogram_steps: {HISTOGRAM_STEPS}", 'class_names: "bright"'):
            self.assertIn(line, config)
        for line in config.rstrip().splitlines():
            self.assertTrue(line.startswith("    "), f"not shown as code: {line!r}")

    def plugin_data(self, tag):
        ((step, _, value),) = self.train[tag]
        self.assertEqual(step, 0)
        self.assertEqual(value.metadata.plugin_data.plugin_name, "hparams")
        self.assertEqual(value.metadata.data_class, reader.DATA_CLASS_TENSOR)
        self.assertEqual(value.tensor.dtype, reader.FLOAT)
        elements = math.prod(dim.size for dim in value.tensor.tensor_shape.dim)
        self.assertEqual(len(value.tensor.float_val), elements)
        data = reader.parse("HParamsPluginData", value.metadata.plugin_data.content)
        self.assertEqual(data.version, 0)
        return data

    def test_hparams(self):
        session = self.plugin_data("_hparams_/session_start_info").session_start_info
        self.assertGreater(session.start_time_secs, self.begun - 1)
        self.assertLess(session.start_time_secs, self.ended)
        values = {hparam.key: hparam.value for hparam in session.hparams}
        found = {name: getattr(value, value.WhichOneof("kind")) for name, value in values.items()}
        self.assertEqual(found["optimizer"], "momentum")
        self.assertEqual(found["learning_rate"], RATE)
        self.assertEqual(found["batch_size"], BATCH)
        self.assertEqual(found["mode"], "async")
        end = self.plugin_data("_hparams_/session_end_info").session_end_info
        self.assertEqual(end.status, reader.SUCCESS)
        self.assertGreaterEqual(end.end_time_secs, session.start_time_secs)
        # TensorBoard takes the first such record of a directory for all of its runs.
        self.assertNotIn("_hparams_/experiment", self.train)


class ReaderTest(unittest.TestCase):
    def test_crc32c(self):
        self.assertEqual(reader.crc32c(b"123456789"), 0xE3069283)  # RFC 3720's check value
        self.assertEqual(reader.crc32c(bytes(32)), 0x8A9136AA)

    def test_sees_damage(self):
        record = b"data"
        length = struct.pack("<Q", len(record))
        frame = length + struct.pack("<I", reader.masked_crc32c(length)) + record
        frame += struct.pack("<I", reader.masked_crc32c(record))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records")

            def read(content):
                with open(path, "wb") as file:
                    file.write(content)
                return reader.read_records(path)

            self.assertEqual(read(frame * 2), [record, record])
            for position in range(len(frame)):
                damaged = bytearray(frame)
                damaged[position] ^= 1
                with self.assertRaises(ValueError):
                    read(bytes(damaged))
            for end in range(1, len(frame)):
                with self.assertRaises(ValueError):
                    read(frame[:end])

    def test_sees_fields_that_tensorflow_does_not_have(self):
        self.assertEqual(reader.parse("Event", b"\x10\x07").step, 7)
        with self.assertRaises(ValueError):
            reader.parse("Event", b"\x10\x07\xf8\x07\x01")
