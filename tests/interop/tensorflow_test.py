"""Compares keelson_ckpt with TensorFlow and Keras themselves, in both directions.

Skipped where Python has no tensorflow; tests/interop/run.sh makes an environment that has it. Needs
the release build's programs, in $KEELSON_BINARY_DIR or build/release/bin.
"""

import importlib.util
import os
import subprocess
import tempfile
import unittest

import programs

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None

if HAS_TENSORFLOW:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import keras
    import numpy as np
    import tensorflow as tf

    import ftrl_golden

# Types that Keelson has no numbers of.
OPAQUE_TYPES = (
    "qint8 quint8 qint16 quint16 qint32 float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz "
    "float8_e5m2fnuz int4 uint4 int2 uint2"
).split()


def small_model():
    """A model with trained moments, beside which TensorFlow keeps 15 tensors of the optimizer."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(3, name="hidden"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Dense(2, name="out"),
        ],
        name="net",
    )
    model.compile(optimizer="adam", loss="mse")
    model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0)
    return model


@unittest.skipUnless(HAS_TENSORFLOW, "needs tensorflow: see tests/interop/run.sh")
class TensorFlowTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_tool(self, *arguments, exit_code=0):
        return programs.run("keelson_ckpt", *arguments, exit_code=exit_code)

    def exported(self, source, *flags):
        out = self.path("out.npz")
        self.run_tool("export", source, out, "--force", *flags)
        with np.load(out) as arrays:
            return {name: arrays[name] for name in arrays}

    def check_model(self, model, source, count_with_slots):
        exported = self.exported(source)
        self.assertEqual(sorted(exported), sorted(weight.path for weight in model.weights))
        for weight in model.weights:
            np.testing.assert_array_equal(exported[weight.path], weight.numpy())
        self.assertEqual(len(self.exported(source, "--slots")), count_with_slots)

    def test_checkpoints_of_keras_have_the_names_of_the_variables(self):
        model = small_model()
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(self.path("both/ck"))
        tf.train.Checkpoint(model).save(self.path("root/ck"))
        self.check_model(model, self.path("both"), 8 + 15)
        self.check_model(model, self.path("root"), 8 + 15)

    def test_saved_models_have_each_variable_once(self):
        model = small_model()
        model.export(self.path("exported"), verbose=False)
        tf.saved_model.save(model, self.path("saved"))
        self.check_model(model, self.path("exported"), 8)
        self.check_model(model, self.path("saved"), 8 + 14)

    def test_a_directory_of_names_without_steps_has_its_newest(self):
        model = small_model()
        callback = keras.callbacks.ModelCheckpoint(self.path("cb/cp-{epoch:04d}.weights.h5"), save_weights_only=True)
        model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0, callbacks=[callback])
        error = self.run_tool("show", self.path("cb/cp-0001.weights.h5"), exit_code=2)
        self.assertIn("a file of Keras", error)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            tf.compat.v1.get_variable("w", initializer=tf.constant([1.0, 2.0]))
            session.run(tf.compat.v1.global_variables_initializer())
            tf.compat.v1.train.Saver().save(session, self.path("b/model.ckpt"))
            old = tf.compat.v1.train.Saver(write_version=tf.compat.v1.train.SaverDef.V1)
            os.mkdir(self.path("v1"))
            old.save(session, self.path("v1/model.ckpt"))
        self.assertEqual(tf.train.latest_checkpoint(self.path("b")), self.path("b/model.ckpt"))
        np.testing.assert_array_equal(self.exported(self.path("b"))["w"], [1, 2])
        self.assertIn("V1 format", self.run_tool("show", self.path("v1/model.ckpt"), exit_code=2))

    def write_types(self, name, last):
        """A bundle with a tensor of each opaque type, and strings; returns its prefix."""
        names, tensors = ["s"], [tf.constant(["a", last])]
        for type_name in OPAQUE_TYPES:
            dtype = tf.as_dtype(type_name)
            if type_name.startswith("q"):
                wide = {1: np.uint8 if "u" in type_name else np.int8, 2: np.int16, 4: np.int32}[dtype.size]
                wide = np.uint16 if type_name == "quint16" else wide
                tensor = tf.bitcast(tf.constant([1, 2], dtype=wide), dtype)
            else:
                tensor = tf.constant(np.array([0, 1]).astype(dtype.as_numpy_dtype))
            names.append(type_name)
            tensors.append(tensor)
        prefix = self.path(name)
        tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
        return prefix, len(names)

    def test_types_without_numbers_are_verified_and_compared(self):
        a, count = self.write_types("a", "b")
        b, _ = self.write_types("b", "b")
        c, _ = self.write_types("c", "c")
        self.assertIn(f"{count} tensors", self.run_tool("verify", a))
        self.assertIn(f"equal: 0 of {count} tensors differ", self.run_tool("diff", a, b))
        self.assertIn("s: 1 of 2 strings differ", self.run_tool("diff", a, c, exit_code=1))
        self.assertEqual(len(self.exported(a, "--slots")), count - 1)

    def test_tensorflow_manages_what_keelson_wrote(self):
        with open(self.path("in.npz"), "wb") as file:
            np.savez(file, w=np.array([1.5, 2.5], np.float32))
        for step in (1, 2):
            self.run_tool("import", self.path("in.npz"), self.path("model"), f"--step={step}", "--force")
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(), self.path("model"), max_to_keep=5)
        self.assertEqual([os.path.basename(name) for name in manager.checkpoints], ["model.ckpt-1", "model.ckpt-2"])
        value = tf.train.load_checkpoint(manager.latest_checkpoint).get_tensor("w")
        np.testing.assert_array_equal(value, [1.5, 2.5])

    def test_tables_are_tensors_of_keys_and_rows(self):
        program = os.path.join(os.path.dirname(programs.BINARIES), "tests", "table_bundle")
        subprocess.run([program, self.path("model.ckpt-1")], check=True)
        checkpoint = tf.train.load_checkpoint(self.path("model.ckpt-1"))
        keys = checkpoint.get_tensor("users/keys")
        self.assertEqual(keys.dtype, np.int64)
        # Row i has the id i or, if i is odd, 2^64 - 1 - i.
        i = np.where(keys < 0, ~keys, keys)
        np.testing.assert_array_equal(np.sort(i), np.arange(1000))
        numbers = 7 * i[:, None] + np.arange(1, 8)
        np.testing.assert_array_equal(checkpoint.get_tensor("users/values"), numbers[:, :3])
        np.testing.assert_array_equal(checkpoint.get_tensor("users/Adagrad"), numbers[:, 3:6])
        np.testing.assert_array_equal(checkpoint.get_tensor("users/Sum"), numbers[:, 6:])
        np.testing.assert_array_equal(checkpoint.get_tensor("users/last_step"), i)
        np.testing.assert_array_equal(checkpoint.get_tensor("users/updates"), i + 1)
        self.assertEqual(checkpoint.get_tensor("nobody/keys").shape, (0,))
        self.assertEqual(checkpoint.get_tensor("nobody/values").shape, (0, 3))

    def test_ftrl_is_still_what_keelson_is_compared_with(self):
        with open(os.path.join(programs.REPOSITORY, "core", "optim", "golden", "ftrl.txt")) as file:
            stored = [line for line in file if not line.startswith("#")]
        computed = [line for line in ftrl_golden.golden().splitlines() if not line.startswith("#")]
        self.assertEqual(len(stored), len(computed))
        for number, (a, b) in enumerate(zip(stored, computed)):
            a, b = (x.replace("case", "").replace("step", "").split() for x in (a, b))
            floats = [np.array([float(x) for x in words]) for words in (a, b)]
            np.testing.assert_allclose(*floats, rtol=1e-6, atol=1e-7, err_msg=f"line {number}")


if __name__ == "__main__":
    unittest.main()
