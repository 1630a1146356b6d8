"""join(config=…): what it takes of a file, and what it refuses. The rest is in mixed_job_test.py."""

import os
import tempfile
import unittest

import support  # noqa: F401  (finds the package)

import keelson
from keelson.config_file import ConfigFile

CONFIG = """
model {
  name: "clicks"
  features { name: "user" id {} }
  tables { name: "users" dim: 4 }
  tables { name: "others" dim: 2 }
  layers { embedding { table: "users" } }
  loss { kind: MEAN_SQUARED_ERROR }
}
learning_rate { base: 0.25 }
transfer { reject_non_finite: true }
checkpoint { model_dir: "/model" }
train { batch_size: 8 epochs: 3 seed: 5 }
"""


class ConfigFileTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "job.textproto")

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.path

    def test_says_what_a_script_needs_to_know(self):
        config = ConfigFile.read(self.write(CONFIG))
        settings = config.settings(20, None)
        self.assertEqual((settings.name, settings.records, settings.batch_size), ("clicks", 20, 8))
        self.assertEqual((settings.epochs, settings.max_steps, settings.seed), (3, None, 5))
        self.assertEqual((settings.model_dir, settings.transfer.reject_non_finite), ("/model", True))
        self.assertEqual(list(config.table_dims().items()), [("users", 4), ("others", 2)])
        self.assertEqual(config.learning_rate(), 0.25)
        self.assertEqual(config.settings(20, "/other").model_dir, "/other")

    def assert_refused(self, expected, text):
        with self.assertRaises(keelson.JoinError) as raised:
            keelson.join(config=self.write(text), records=20)
        self.assertEqual(str(raised.exception), expected.replace("FILE", self.path))

    def test_refuses_what_is_none(self):
        self.assert_refused('FILE:1:7: expected ":" or "{", found the end', "model ")
        self.assert_refused(
            "FILE: model: expected layers, found external: its script has the model", "model { external {} }"
        )
        self.assert_refused(
            "FILE: data.stream: expected records whose number is known, found a stream",
            CONFIG + "data { stream {} }",
        )
        self.assert_refused(
            "epochs, max_steps: expected one of the two, found neither", CONFIG.replace("epochs: 3", "")
        )
        self.assert_refused("batch_size: expected a whole number > 0, found 0", CONFIG.replace("batch_size: 8", ""))
        self.assert_refused(
            "FILE:13:9: batch_size: expected a whole number, found 0.5",
            CONFIG.replace("batch_size: 8", "batch_size: 0.5"),
        )

    def test_refuses_a_file_that_is_not_there(self):
        with self.assertRaisesRegex(keelson.JoinError, r"^config: .*No such file or directory: '.*/job\.textproto'$"):
            keelson.join(config=self.path, records=20)

    def test_the_file_says_the_rest(self):
        for more in ({"epochs": 3}, {"optimizer": keelson.Sgd(lr=1.0)}, {"name": "clicks"}, {"seed": 1}):
            with self.assertRaisesRegex(TypeError, "expected records, model_dir, .* and debug alone beside config"):
                keelson.join(**{"config": self.write(CONFIG), "records": 20, **more})
        with self.assertRaisesRegex(TypeError, "expected data_dir with config, whose chief counts the records, found"):
            keelson.join("line", records=20, batch_size=2, epochs=1, data_dir="/data")
        with self.assertRaisesRegex(TypeError, "expected a name and a batch_size, or a config, found neither"):
            keelson.join(records=20, epochs=1)


if __name__ == "__main__":
    unittest.main()
