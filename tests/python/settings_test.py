"""What a script says of its job, as text proto."""

import unittest

import support  # noqa: F401  (finds the package)

import keelson
from keelson.config import Proposal, config_text, make_settings, propose
from keelson.text_proto import Enum, render


class TextProtoTest(unittest.TestCase):
    def test_each_kind_of_field(self):
        fields = [("a", 1), ("b", 1e-8), ("c", True), ("d", Enum("SUM")), ("e", "x"), ("f", []), ("g", [("h", False)])]
        self.assertEqual(render(fields), 'a: 1\nb: 1e-08\nc: true\nd: SUM\ne: "x"\nf {}\ng {\n  h: false\n}\n')

    def test_text_is_escaped(self):
        self.assertEqual(render([("a", 'q"\\\n\t\x01é')]), 'a: "q\\"\\\\\\n\\t\\001é"\n')

    def test_what_cannot_be_written_is_refused(self):
        for value in (float("nan"), float("inf"), "\ud800"):
            with self.assertRaises(ValueError):
                render([("a", value)])


class OptimizerTest(unittest.TestCase):
    def assert_text(self, optimizer, *lines):
        text = " ".join(str(optimizer).split())
        self.assertEqual(text, " ".join(lines))

    def test_sgd(self):
        self.assert_text(
            keelson.Sgd(lr=0.5, weight_decay=0.1, clip_value=2),
            "optimizer { sgd {} clip_value: 2.0 l2: 0.1 } learning_rate { base: 0.5 constant {} }",
        )

    def test_momentum(self):
        self.assert_text(
            keelson.Momentum(lr=1, momentum=0.8, nesterov=True),
            "optimizer { momentum { momentum: 0.8 nesterov: true } } learning_rate { base: 1.0 constant {} }",
        )

    def test_adam_has_pytorchs_epsilon(self):
        self.assert_text(
            keelson.Adam(lr=0.001, schedule=keelson.Cosine(warmup=100)),
            "optimizer { adam { beta1: 0.9 beta2: 0.999 epsilon: 1e-08 corrected_epsilon: true } }",
            "learning_rate { base: 0.001 warmup_steps: 100 cosine {} }",
        )

    def test_adamw_decays_apart_from_the_gradient(self):
        self.assert_text(
            keelson.AdamW(lr=0.001),
            "optimizer { adamw { beta1: 0.9 beta2: 0.999 epsilon: 1e-08 corrected_epsilon: true weight_decay: 0.01 } }",
            "learning_rate { base: 0.001 constant {} }",
        )

    def test_the_others(self):
        self.assertIn("adagrad {\n    initial_accumulator: 0.0\n    epsilon: 1e-10\n", str(keelson.Adagrad(lr=1)))
        self.assertIn("rmsprop {\n    decay: 0.9\n", str(keelson.RmsProp(lr=1)))
        self.assertIn("ftrl {\n    initial_accumulator: 0.1\n    l2: 2.0\n", str(keelson.Ftrl(lr=1, l2_strength=2)))

    def test_schedules(self):
        for schedule, text in (
            (keelson.Step(boundaries=[10, 20], factor=0.5), "step { boundaries: 10 boundaries: 20 factor: 0.5 }"),
            (keelson.Exponential(rate=0.9, decay_steps=7, staircase=True),
             "exponential { rate: 0.9 decay_steps: 7 staircase: true }"),
            (keelson.Cosine(decay_steps=5, alpha=0.1), "cosine { decay_steps: 5 alpha: 0.1 }"),
            (keelson.Constant(warmup=3), "warmup_steps: 3 constant {}"),
        ):  # fmt: skip
            self.assertEqual(" ".join(str(schedule).split()), text)

    def test_groups(self):
        groups = [
            keelson.Group("*.bias", keelson.Sgd(lr=0.2, weight_decay=0.3)),
            keelson.Group("a*", lr=0.4),
            keelson.Group("b*", lr_factor=2),
        ]
        text = " ".join(str(keelson.Sgd(lr=1, groups=groups)).split())
        self.assertIn('groups { variables: "*.bias" sgd {} learning_rate: 0.2 clip_value: 0.0 l2: 0.3 }', text)
        self.assertIn('groups { variables: "a*" learning_rate: 0.4 }', text)
        self.assertIn('groups { variables: "b*" learning_rate_factor: 2.0 }', text)

    def test_what_is_wrong_is_named(self):
        for make, words in (
            (lambda: keelson.Sgd(lr=0), "lr: expected a number > 0, found 0"),
            (lambda: keelson.Sgd(lr=1, weight_decay=-1), "weight_decay: expected a number >= 0, found -1"),
            (lambda: keelson.Sgd(lr=1, schedule=0.1), "schedule: expected one such as keelson.Cosine(), found 0.1"),
            (lambda: keelson.Group("*"), "group: expected one of optimizer, lr and lr_factor, found 0"),
            (lambda: str(keelson.Sgd(lr=1, groups=[keelson.Group("*", keelson.Sgd(lr=1, schedule=keelson.Cosine()))])),
             "group *: expected an optimizer without a schedule"),
            (lambda: str(keelson.Transfer([keelson.Wire(push="int4")])), "expected one of float32, float16, "),
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, words.replace("*", "\\*").replace("(", "\\(").replace(")", "\\)")):
                make()


class ConfigTest(unittest.TestCase):
    def settings(self, **changes):
        given = dict(
            name="line", records=100, batch_size=10, epochs=2, max_steps=None, consistency=None, transfer=None,
            checkpoint=None, evaluation=None, model_dir=None, initial=None, seed=7,
        )  # fmt: skip
        return make_settings(**{**given, **changes})

    def text(self, proposal, **changes):
        return config_text(self.settings(**changes), proposal, keelson.Sgd(lr=0.1))

    def test_an_evaluation(self):
        self.assertNotIn("evaluation", self.text(propose({"w": 0.0})))
        evaluation = keelson.Evaluation(
            metrics=["accuracy", "top_5", "auc_pr"],
            early_stopping=keelson.EarlyStopping(patience=3, metric="accuracy", min_steps=10),
            keep_best="accuracy",
            throttle_seconds=5,
            final_timeout_seconds=30,
        )
        self.assertEqual(
            str(evaluation),
            "evaluation {\n  metrics {\n    accuracy {}\n  }\n  metrics {\n    top_k {\n      k: 5\n    }\n  }\n"
            "  metrics {\n    auc {\n      curve: PRECISION_RECALL\n    }\n  }\n  final_timeout_seconds: 30\n"
            '  throttle_seconds: 5\n  early_stopping {\n    metric: "accuracy"\n    patience: 3\n    min_steps: 10\n  }\n'
            '  exporters {\n    best {\n      metric: "accuracy"\n    }\n  }\n}\n',
        )
        self.assertIn(str(evaluation), self.text(propose({"w": 0.0}), evaluation=evaluation))
        with self.assertRaisesRegex(ValueError, "^metrics: expected some of accuracy, "):
            keelson.Evaluation(metrics=["f1"]).fields()

    def test_a_whole_job(self):
        proposal = propose({"a.weight": [[1.0, 2.0]], "mean": keelson.Variable((3,), average_decay=0.9)})
        text = self.text(
            proposal,
            consistency=keelson.Sync(2, total=3),
            transfer=keelson.Transfer([keelson.Wire(push="bfloat16")], reject_non_finite=True),
            checkpoint=keelson.Checkpoint(save_steps=50),
        )
        self.assertEqual(
            " ".join(text.split()),
            'model { name: "line" external { variables { name: "a.weight" shape: 1 shape: 2 } variables { name: "mean" '
            "shape: 3 average_decay: 0.9 } } } optimizer { sgd {} } learning_rate { base: 0.1 constant {} } data { external "
            "{ train_records: 100 } } train { batch_size: 10 epochs: 2 seed: 7 } checkpoint { save_steps: 50 keep_max: 5 } "
            'transfer { groups { variables: "*" push: BFLOAT16 pull: FLOAT32 } reject_non_finite: true } consistency { mode '
            '{ synchronous { replicas_to_aggregate: 2 total_replicas: 3 } } } initial_values { groups { variables: "*" from '
            '{ path: "proposed" } } }',
        )

    def test_bounded_staleness(self):
        text = " ".join(str(keelson.Ssp(4, scale_learning_rate=True)).split())
        self.assertEqual(text, "consistency { mode { bounded_staleness { staleness: 4 } } stale_gradients { "
                         "scale_learning_rate: true } }")  # fmt: skip
        self.assertEqual(" ".join(str(keelson.Async()).split()), "consistency { mode { async {} } }")

    def test_arguments_are_checked(self):
        for changes, words in (
            ({"records": 0}, "records: expected a whole number > 0, found 0"),
            ({"batch_size": 2.5}, "batch_size: expected a whole number > 0, found 2.5"),
            ({"max_steps": 3}, "epochs, max_steps: expected one of the two, found both"),
            ({"epochs": None}, "epochs, max_steps: expected one of the two, found neither"),
            ({"seed": -1}, "seed: expected a whole number >= 0, found -1"),
            ({"name": ""}, "name: expected the job's name, found ''"),
            ({"consistency": "sync"}, "consistency: expected a keelson.Consistency, found sync"),
        ):
            with self.assertRaises(keelson.JoinError) as raised:
                self.settings(**changes)
            self.assertEqual(str(raised.exception), words)

    def test_variables_are_checked(self):
        for variables, words in (
            ({"w": "text"}, "variable w: expected an array of float32, found str"),
            ({"w": [[1.0], [1.0, 2.0]]}, "variable w: expected lists of equal lengths"),
            ({"w": keelson.Variable((3,), initial=[1.0])}, "variable w: expected initial values [3], found [1]"),
        ):
            with self.assertRaises(keelson.JoinError) as raised:
                propose(variables)
            self.assertIn(words, str(raised.exception))

    def test_no_variable_is_no_text(self):
        self.assertIn("external {}", self.text(Proposal({})))


if __name__ == "__main__":
    unittest.main()
