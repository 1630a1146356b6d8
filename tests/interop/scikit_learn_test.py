"""Compares what the evaluator reports with scikit-learn's figures for the same predictions.

The predictions are computed by numpy, in doubles, from the exported weights of one dense layer or of embeddings.
Skipped where Python has no scikit-learn; tests/interop/run.sh makes an environment that has it. Needs the release
build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import importlib.util
import json
import os
import random
import tempfile
import unittest

import programs
from small_records import PIXELS, make_records, write_idx

HAS_SCIKIT_LEARN = importlib.util.find_spec("sklearn") is not None

if HAS_SCIKIT_LEARN:
    import numpy as np
    from sklearn import metrics

STEPS = 60
CONFIG = f"""
model {{
  input_shape: [3, 3, 1]
  layers {{ flatten {{}} }}
  layers {{ name: "score" dense {{ units: UNITS }} }}
  loss {{ kind: LOSS }}
}}
optimizer {{ momentum {{ momentum: 0.5 }} }}
learning_rate {{ base: 0.3 }}
train {{ batch_size: 16 max_steps: {STEPS} seed: 3 }}
evaluation {{
  batch_size: 50
  METRICS
}}
"""
# The forward pass is in floats, the comparison in doubles.
TOLERANCE = 1e-6


def third_of_the_first_row(pixels, label):
    """A label of three classes in place of the given one, by the brightness of three pixels."""
    return (sum(pixels[:3]) // 150) % 3


# Clicks of users on items that have counts. The users' vectors stay zeros, so that the layer alone makes the score.
CLICK_CONFIG = f"""
model {{
  features {{ name: "numbers" dense {{ shape: 13 }} }}
  features {{ name: "c1" id {{}} }}
  layers {{ name: "score" inputs: "numbers" dense {{ units: 1 }} }}
  layers {{ name: "user" inputs: "c1" embedding {{ rows: 100000 dim: 1 }} }}
  layers {{ name: "click" add {{}} inputs: "score" inputs: "user" }}
  loss {{ kind: SIGMOID_CROSS_ENTROPY label: "label" }}
}}
initial_values {{ groups {{ variables: "user/embeddings" constant {{ value: 0 }} }} }}
optimizer {{ adam {{}} groups {{ variables: "user/embeddings" frozen: true }} }}
learning_rate {{ base: 0.02 }}
data {{ criteo {{}} train_files: "train" eval_files: "test" sequential: true }}
train {{ batch_size: 50 max_steps: 800 seed: 3 }}
evaluation {{
  batch_size: 70
  METRICS
}}
"""


# Users who choose items, where what they have seen before counts, too.
USERS, ITEMS, SEEN, DIM = 25, 40, 50, 4
PAIR_CONFIG = f"""
model {{
  features {{ name: "user" id {{}} }}
  features {{ name: "seen" bag {{}} }}
  features {{ name: "item" id {{}} }}
  layers {{ name: "user_rows" inputs: "user" embedding {{ rows: {USERS} dim: {DIM} }} }}
  layers {{ name: "seen_rows" inputs: "seen" embedding_bag {{ rows: {SEEN} dim: {DIM} combiner: SUM }} }}
  layers {{ name: "query" add {{}} inputs: "user_rows" inputs: "seen_rows" }}
  layers {{ name: "found" inputs: "item" embedding {{ rows: {ITEMS} dim: {DIM} }} }}
  loss {{ kind: IN_BATCH_SOFTMAX queries: "query" items: "found" }}
}}
optimizer {{ adam {{}} }}
learning_rate {{ base: 0.02 }}
data {{
  csv {{}} train_files: "train.csv" eval_files: "test.csv"
  features {{ name: "user" columns {{ integer {{}} }} }}
  features {{ name: "seen" columns {{ integer {{}} separator: "|" }} }}
  features {{ name: "item" columns {{ integer {{}} }} }}
}}
train {{ batch_size: 50 max_steps: 200 seed: 3 }}
evaluation {{
  batch_size: 70
  METRICS
}}
"""


class Run:
    """A short training: what its evaluator reported, and the weights."""

    def __init__(self, config, names, write_data):
        with tempfile.TemporaryDirectory() as folder:
            data, config_file, model = (os.path.join(folder, name) for name in ("data", "config.textproto", "model"))
            os.mkdir(data)
            write_data(data)
            with open(config_file, "w", encoding="utf-8") as file:
                file.write(config.replace("METRICS", " ".join(f"metrics {{ {name} }}" for name in names)))
            programs.run("chief", f"--config={config_file}", f"--data_dir={data}", f"--model_dir={model}")
            programs.run("keelson_ckpt", "export", model, os.path.join(folder, "weights.npz"))
            with np.load(os.path.join(folder, "weights.npz")) as weights:
                self.weights = {name: values.astype(np.float64) for name, values in weights.items()}
            with open(os.path.join(model, "eval", "metrics.jsonl"), encoding="utf-8") as file:
                self.metrics = json.loads(file.readlines()[-1])
            with open(os.path.join(model, "eval", "reports", f"{self.metrics['step']}.json"), encoding="utf-8") as file:
                self.report = json.load(file)


class Evaluation:
    """A trained layer, what its evaluator reported, and the scores of the same records by numpy."""

    def __init__(self, loss, units, names, label_of):
        sets = [[(pixels, label_of(pixels, label)) for pixels, label in make_records(n, n)] for n in (400, 150)]

        def write_data(folder):
            write_idx(folder, "train", sets[0])
            write_idx(folder, "t10k", sets[1])

        run = Run(CONFIG.replace("UNITS", str(units)).replace("LOSS", loss), names, write_data)
        self.metrics = run.metrics
        self.report = run.report
        pixels = np.array([pixels for pixels, _ in sets[1]], np.float64).reshape(-1, PIXELS) / 255
        self.labels = np.array([label for _, label in sets[1]])
        self.scores = pixels @ run.weights["score/kernel"] + run.weights["score/bias"]


def draw_clicks(count, seed):
    """(label, counts, user): the larger the counts, the likelier the click; few users have many records."""
    generator = random.Random(seed)
    clicks = []
    for _ in range(count):
        counts = [generator.randrange(0, 30) for _ in range(13)]
        label = int(generator.gauss(sum(counts) / 13, 2.5) > 17)
        clicks.append((label, counts, f"u{int(40 * generator.random() ** 2)}"))
    return clicks


def write_clicks(path, clicks):
    with open(path, "w", encoding="utf-8") as file:
        for label, counts, user in clicks:
            file.write("\t".join([str(label), *map(str, counts), user, *["x"] * 25]) + "\n")


def draw_pairs(count, seed):
    """(user, seen, item): users have items that they choose often."""
    generator = random.Random(seed)
    pairs = []
    for _ in range(count):
        user = int(USERS * generator.random() ** 2)
        item = (7 * user + int(10 * generator.random() ** 2)) % ITEMS
        pairs.append((user, [generator.randrange(SEEN) for _ in range(generator.randrange(6))], item))
    return pairs


def write_pairs(path, pairs):
    with open(path, "w", encoding="utf-8") as file:
        file.write("user,seen,item\n")
        for user, seen, item in pairs:
            file.write(f"{user},{'|'.join(map(str, seen))},{item}\n")


@unittest.skipUnless(HAS_SCIKIT_LEARN, "needs scikit-learn: see tests/interop/run.sh")
class BinaryLabels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        names = ["accuracy {}", "auc {}", "auc { curve: PRECISION_RECALL }", "precision {}", "recall {}"]
        names += ["mean_squared_error {}", "mean_absolute_error {}"]
        cls.evaluation = Evaluation("SIGMOID_CROSS_ENTROPY", 1, names, lambda pixels, label: label)

    def setUp(self):
        self.labels = self.evaluation.labels
        self.scores = self.evaluation.scores[:, 0]
        self.probabilities = 1 / (1 + np.exp(-self.scores))

    def test_metrics(self):
        predicted = self.scores > 0
        expected = {
            "loss": metrics.log_loss(self.labels, self.probabilities),
            "accuracy": metrics.accuracy_score(self.labels, predicted),
            "auc": metrics.roc_auc_score(self.labels, self.scores),
            "auc_pr": metrics.average_precision_score(self.labels, self.scores),
            "precision": metrics.precision_score(self.labels, predicted),
            "recall": metrics.recall_score(self.labels, predicted),
            "mean_squared_error": metrics.brier_score_loss(self.labels, self.probabilities),
            "mean_absolute_error": metrics.mean_absolute_error(self.labels, self.probabilities),
        }
        self.assertTrue(0.6 < expected["auc"] < 1, "the records are to be neither noise nor trivial")
        for name, value in expected.items():
            self.assertAlmostEqual(self.evaluation.metrics[name], value, delta=TOLERANCE, msg=name)

    def test_curves(self):
        report = self.evaluation.report
        self.assertEqual(report["kind"], "binary")
        false_positives, true_positives, _ = metrics.roc_curve(self.labels, self.scores, drop_intermediate=False)
        precision, recall, _ = metrics.precision_recall_curve(self.labels, self.scores)
        self.assert_points(report["roc"], zip(false_positives, true_positives))
        self.assert_points(report["precision_recall"], zip(recall, precision))

    def assert_points(self, points, expected):
        expected = np.array(list(expected))
        self.assertGreater(len(points), 20)
        for point in points:
            self.assertLess(np.abs(expected - point).sum(axis=1).min(), TOLERANCE, point)

    def test_confusion_matrix(self):
        expected = metrics.confusion_matrix(self.labels, self.scores > 0)
        self.assertEqual(self.evaluation.report["confusion"], expected.tolist())


@unittest.skipUnless(HAS_SCIKIT_LEARN, "needs scikit-learn: see tests/interop/run.sh")
class Classes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        names = ["accuracy {}", "top_k { k: 2 }", "precision {}", "recall {}"]
        cls.evaluation = Evaluation("SOFTMAX_CROSS_ENTROPY", 3, names, third_of_the_first_row)

    def setUp(self):
        self.labels = self.evaluation.labels
        self.scores = self.evaluation.scores
        exponents = np.exp(self.scores)
        self.probabilities = exponents / exponents.sum(axis=1, keepdims=True)
        self.predicted = self.scores.argmax(axis=1)

    def test_metrics(self):
        expected = {
            "loss": metrics.log_loss(self.labels, self.probabilities, labels=range(3)),
            "accuracy": metrics.accuracy_score(self.labels, self.predicted),
            "top_2": metrics.top_k_accuracy_score(self.labels, self.scores, k=2, labels=range(3)),
            "precision": metrics.precision_score(self.labels, self.predicted, average="macro", zero_division=0),
            "recall": metrics.recall_score(self.labels, self.predicted, average="macro", zero_division=0),
        }
        for name, value in expected.items():
            self.assertAlmostEqual(self.evaluation.metrics[name], value, delta=TOLERANCE, msg=name)

    def test_quality_of_each_class(self):
        expected = metrics.precision_recall_fscore_support(self.labels, self.predicted, zero_division=0)
        rows = self.evaluation.report["per_class"]
        found = [[row[name] for row in rows] for name in ("precision", "recall", "f1", "support")]
        for mine, theirs in zip(found, expected):
            np.testing.assert_allclose(mine, theirs, atol=TOLERANCE)
        confusion = metrics.confusion_matrix(self.labels, self.predicted, labels=range(3))
        self.assertEqual(self.evaluation.report["confusion"], confusion.tolist())


@unittest.skipUnless(HAS_SCIKIT_LEARN, "needs scikit-learn: see tests/interop/run.sh")
class Clicks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        clicks = draw_clicks(600, 2)

        def write_data(folder):
            write_clicks(os.path.join(folder, "train"), draw_clicks(2000, 1))
            write_clicks(os.path.join(folder, "test"), clicks)

        names = ["normalized_entropy {}", "calibration {}", 'group_auc { feature: "c1" }']
        names.append('group_auc { feature: "c1" weighting: GROUPS }')
        cls.run_of_clicks = Run(CLICK_CONFIG, names, write_data)
        cls.labels = np.array([label for label, _, _ in clicks])
        cls.users = np.array([user for _, _, user in clicks])
        numbers = np.log1p(np.array([counts for _, counts, _ in clicks], np.float64))
        weights = cls.run_of_clicks.weights
        cls.scores = (numbers @ weights["score/kernel"] + weights["score/bias"])[:, 0]
        cls.probabilities = 1 / (1 + np.exp(-cls.scores))

    def test_metrics(self):
        areas, sizes = [], []
        for user in np.unique(self.users):
            of_user = self.users == user
            if len(set(self.labels[of_user])) == 2:
                areas.append(metrics.roc_auc_score(self.labels[of_user], self.scores[of_user]))
                sizes.append(of_user.sum())
        share = self.labels.mean()
        entropy = metrics.log_loss(self.labels, np.full(len(self.labels), share))
        expected = {
            "normalized_entropy": metrics.log_loss(self.labels, self.probabilities) / entropy,
            "calibration": self.probabilities.sum() / self.labels.sum(),
            "group_auc/c1": np.average(areas, weights=sizes),
            "group_auc_mean/c1": np.mean(areas),
        }
        self.assertTrue(0.05 < share < 0.5 and len(areas) > 20, "the records are to be like clicks of many users")
        self.assertLess(expected["normalized_entropy"], 1, "the model is to know something")
        self.assertGreater(abs(expected["group_auc/c1"] - expected["group_auc_mean/c1"]), 1e-3)
        for name, value in expected.items():
            self.assertAlmostEqual(self.run_of_clicks.metrics[name], value, delta=TOLERANCE, msg=name)
        report = self.run_of_clicks.report
        self.assertEqual(report["normalized_entropy"], self.run_of_clicks.metrics["normalized_entropy"])
        self.assertEqual(report["calibration_ratio"], self.run_of_clicks.metrics["calibration"])
        (groups,) = report["group_auc"]
        figures = [groups[name] for name in ("feature", "groups", "examples", "one_label_groups")]
        self.assertEqual(figures, ["c1", len(areas), sum(sizes), len(np.unique(self.users)) - len(areas)])

    def test_deciles(self):
        ascending = np.argsort(self.probabilities)
        parts = np.array_split(ascending, 10)
        deciles = self.run_of_clicks.report["calibration_deciles"]
        self.assertEqual([decile["count"] for decile in deciles], [len(part) for part in parts])
        for decile, part in zip(deciles, parts):
            found = [decile[name] for name in ("from", "to", "confidence", "accuracy")]
            probabilities = self.probabilities[part]
            expected = [probabilities[0], probabilities[-1], probabilities.mean(), self.labels[part].mean()]
            np.testing.assert_allclose(found, expected, atol=TOLERANCE)

    def test_distribution_of_scores(self):
        bins = self.run_of_clicks.report["scores"]
        edges = [each["from"] for each in bins] + [bins[-1]["to"]]
        np.testing.assert_allclose([edges[0], edges[-1]], [self.scores.min(), self.scores.max()], atol=1e-5)
        for label in (0, 1):
            scores = np.clip(self.scores[self.labels == label], edges[0], edges[-1])
            expected, _ = np.histogram(scores, edges)
            self.assertEqual([each["counts"][label] for each in bins], expected.tolist())


@unittest.skipUnless(HAS_SCIKIT_LEARN, "needs scikit-learn: see tests/interop/run.sh")
class Retrieval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pairs = draw_pairs(300, 2)

        def write_data(folder):
            write_pairs(os.path.join(folder, "train.csv"), draw_pairs(2000, 1))
            write_pairs(os.path.join(folder, "test.csv"), cls.pairs)

        by_user = 'item_feature: "item" query_feature: "user"'
        names = ['retrieval { measure: RECALL k: 5 item_feature: "item" }']
        names.append('retrieval { measure: NDCG k: 5 item_feature: "item" }')
        names.append(f"retrieval {{ measure: RECALL k: 7 {by_user} }}")
        names.append(f"retrieval {{ measure: NDCG k: 7 {by_user} }}")
        names.append(f'retrieval {{ measure: HIT_RATE k: 1 {by_user} exclude_features: "seen" }}')
        names.append(f'retrieval {{ measure: NDCG k: 9 {by_user} exclude_features: "seen" }}')
        run = Run(PAIR_CONFIG, names, write_data)
        cls.metrics = run.metrics
        cls.items = np.unique([item for _, _, item in cls.pairs])
        rows = [run.weights[f"{layer}/embeddings"] for layer in ("user_rows", "seen_rows", "found")]
        queries = np.array([rows[0][user] + rows[1][seen].sum(axis=0) for user, seen, _ in cls.pairs])
        cls.scores = queries @ rows[2][cls.items].T

    def first_of_each_user(self):
        """The first record of each user, and which of the items are those of all of its records."""
        first = {}
        for record, (user, _, item) in enumerate(self.pairs):
            first.setdefault(user, (record, np.zeros(len(self.items), bool)))[1][self.items == item] = True
        return first.values()

    def assert_metric(self, name, expected):
        self.assertTrue(0.05 < expected < 0.999, "the model is to know something, but not everything")
        self.assertAlmostEqual(self.metrics[name], expected, delta=TOLERANCE, msg=name)

    def test_each_record_is_a_query(self):
        own = np.searchsorted(self.items, [item for _, _, item in self.pairs])
        labels = range(len(self.items))
        self.assert_metric("recall@5", metrics.top_k_accuracy_score(own, self.scores, k=5, labels=labels))
        relevant = np.eye(len(self.items))[own]
        self.assert_metric("ndcg@5", metrics.ndcg_score(relevant, self.scores, k=5))

    def test_each_user_is_a_query(self):
        shares, scores, relevant = [], [], []
        for record, wanted in self.first_of_each_user():
            best = np.argsort(-self.scores[record])[:7]
            shares.append(wanted[best].sum() / wanted.sum())
            scores.append(self.scores[record])
            relevant.append(wanted)
        self.assert_metric("recall@7", np.mean(shares))
        self.assert_metric("ndcg@7", metrics.ndcg_score(np.array(relevant, float), np.array(scores), k=7))

    def test_items_that_were_seen_are_left_out(self):
        hits, gains, lost = [], [], 0
        for record, wanted in self.first_of_each_user():
            ranked = ~np.isin(self.items, self.pairs[record][1])
            lost += (wanted & ~ranked).sum()
            wanted, scores = wanted[ranked], self.scores[record][ranked]
            if wanted.any():
                hits.append(wanted[np.argmax(scores)])
                gains.append(metrics.ndcg_score([wanted.astype(float)], [scores], k=9))
        self.assertGreater(lost, 0, "some of the items to be found are to be among those that were seen")
        self.assert_metric("hit_rate@1", np.mean(hits))
        self.assert_metric("ndcg@9", np.mean(gains))


if __name__ == "__main__":
    unittest.main()
