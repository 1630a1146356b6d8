"""A job of arrays with the installed package alone: chief, server, agent and evaluator run, and the snapshot is read again.

run.sh --wheel starts it where there is no NumPy and no PyTorch, and none of the libraries that Keelson is built with."""

import array
import importlib.util
import json
import os
import tempfile

import keelson

RECORDS = 16


def errors(values, xs):
    """Of the line at these points, from 2 x + 1."""
    return [(x, values["w"][0] * x + values["b"].tolist() - (2 * x + 1)) for x in xs]


def scores(values, records):
    xs = [(record + 0.5) / RECORDS for record in records]
    return array.array("f", [error + 2 * x + 1 for x, error in errors(values, xs)]), [2 * x + 1 for x in xs]


def train(model_dir):
    evaluation = keelson.Evaluation(metrics=["mean_squared_error"])
    with keelson.join("line", variables={"w": array.array("f", [0.0]), "b": 0.0}, optimizer=keelson.Momentum(lr=0.2),
                      records=RECORDS, batch_size=4, epochs=40, model_dir=model_dir, evaluation=evaluation) as job:  # fmt: skip
        keelson.Evaluator(job, scores, records=RECORDS, kind="regression").start()
        for step in job.steps():
            found = errors(job.values, [record / RECORDS for record in step.records])
            w = array.array("f", [2 * sum(error * x for x, error in found) / len(found)])
            b = 2 * sum(error for _, error in found) / len(found)
            step.push({"w": memoryview(w), "b": b}, sum(error * error for _, error in found) / len(found))


def main():
    there = [name for name in ("numpy", "torch") if importlib.util.find_spec(name)]
    assert not there, f"expected neither NumPy nor PyTorch, found {there}"
    with tempfile.TemporaryDirectory() as model_dir:
        train(model_dir)
        state = keelson.load_state_dict(model_dir)
        w, b = state["w"].elements()[0], state["b"].elements().tolist()
        with open(os.path.join(model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            evaluated = [json.loads(line) for line in file][-1]
    print(f"{os.path.dirname(keelson.__file__)}: step {state.step}, w {w:.3f}, b {b:.3f}, loss {evaluated['loss']:.1e}")
    assert state.step == evaluated["step"] == 160, "expected 160 steps, all of them evaluated"
    assert abs(w - 2) < 0.05 and abs(b - 1) < 0.05, "expected the line 2 x + 1"


if __name__ == "__main__":
    main()
