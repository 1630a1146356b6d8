"""Trains variables with TensorFlow's FTRL, for Keelson's to be compared with.

ftrl_golden.py > core/optim/golden/ftrl.txt writes what optimizer_test reads; tensorflow_test.py compares that file
with what TensorFlow computes now.
"""

import sys

import numpy as np
import tensorflow as tf

ELEMENTS = 8
STEPS = 12
# (initial_accumulator, l1, l2, l2_shrinkage, beta)
CASES = (
    (0.1, 0, 0, 0, 0),
    (0.1, 0.25, 0, 0, 0),
    (0.5, 0.25, 0.125, 0, 0),
    (0.1, 0.5, 0.125, 0.25, 0),
    (0.1, 0.25, 0.125, 0.0625, 0.5),
)


def rate_of(step):
    """Falls in the middle, as a schedule does."""
    return 0.5 if step < STEPS // 2 else 0.125


def numbers(array):
    return " ".join(f"{x:.9g}" for x in array)


def train(case):
    """Yields (rate, gradient, values, accum, linear) of each step."""
    accumulator, l1, l2, l2_shrinkage, beta = case
    random = np.random.default_rng(CASES.index(case))
    variable = tf.Variable(np.zeros(ELEMENTS, np.float32))
    accum = tf.Variable(np.full(ELEMENTS, accumulator, np.float32))
    linear = tf.Variable(np.zeros(ELEMENTS, np.float32))
    for step in range(STEPS):
        # Some are always small, so that l1 keeps their variables at 0.
        scale = np.where(np.arange(ELEMENTS) % 4 == 0, 0.01, 1.0)
        gradient = (random.standard_normal(ELEMENTS) * scale).astype(np.float32)
        rate = rate_of(step)
        tf.raw_ops.ResourceApplyFtrlV2(
            var=variable.handle,
            accum=accum.handle,
            linear=linear.handle,
            grad=gradient,
            lr=np.float32(rate),
            l1=np.float32(l1),
            # As TensorFlow's and Keras' optimizers hand beta on.
            l2=np.float32(l2 + beta / (2 * rate)),
            l2_shrinkage=np.float32(l2_shrinkage),
            lr_power=np.float32(-0.5),
        )
        yield rate, gradient, variable.numpy(), accum.numpy(), linear.numpy()


def golden():
    lines = [
        f"# TensorFlow {tf.__version__}, ResourceApplyFtrlV2: tests/interop/ftrl_golden.py wrote this.",
        "# case initial_accumulator l1 l2 l2_shrinkage beta, then of each step its rate, and the gradient, the",
        "# values, n and z after it.",
    ]
    for case in CASES:
        lines.append(f"case {numbers(case)}")
        for rate, *arrays in train(case):
            lines.append(f"step {numbers([rate])}")
            lines += [numbers(array) for array in arrays]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(golden())
