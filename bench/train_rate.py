#!/usr/bin/python3
"""How many gradients per second a small Keelson job applies: an MLP of 2.7 MB, batch 32, 2 workers and 1 server.

usage: bench/train_rate.py [--wire f32|bf16] [--steps N] [--bin_dir DIR] [--data_dir DIR]

Runs the job through deploy/tfjob_local.py and reads the steps that the chief writes to status.json twice a second;
the first quarter of the steps is warm-up. A step is one gradient of one worker.
"""

import argparse
import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAUNCHER = os.path.join(REPOSITORY, "deploy", "tfjob_local.py")

CONFIG = """
model {{
  name: "mlp"
  input_shape: [28, 28, 1]
  layers {{ flatten {{}} }}
{hidden}  layers {{ name: "scores" dense {{ units: 10 }} }}
  loss {{ kind: SOFTMAX_CROSS_ENTROPY }}
}}
optimizer {{ sgd {{}} }}
learning_rate {{ base: 0.01 }}
train {{ batch_size: {batch} max_steps: {steps} seed: 1 }}
checkpoint {{ save_steps: {steps} }}
{transfer}
"""

TRANSFER = {
    "f32": "",
    "bf16": 'transfer { groups { variables: "*" push: BFLOAT16 pull: BFLOAT16 } }',
}

HIDDEN = """  layers {{ name: "hidden_{number}" dense {{ units: {units} }} }}
  layers {{ relu {{}} }}
"""


class Network(NamedTuple):
    """Dense layers with a ReLU each, between 784 inputs and 10 classes."""

    hidden: Tuple[int, ...]
    batch: int
    steps: int  # that PyTorch is measured over, at least


NETWORKS = {
    "mlp": Network((512, 512), batch=32, steps=200),  # 2.7 MB
    "small": Network((56,), batch=32, steps=1000),  # 178 kB: a step is little else than its calls
    "wide": Network((21130,), batch=1, steps=50),  # 67.2 MB: a step is little else than its bytes
}


def config_text(network: Network, steps: int, wire: str = "f32") -> str:
    hidden = "".join(HIDDEN.format(number=i, units=units) for i, units in enumerate(network.hidden, 1))
    return CONFIG.format(hidden=hidden, batch=network.batch, steps=steps, transfer=TRANSFER[wire])


REPLICAS = """    {kind}:
      replicas: {count}
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: keelson
              command: [{program}]
              args: ["--config={config}"]
"""


class Sample(NamedTuple):
    time: float
    step: int


class StepTimes(NamedTuple):
    """Of all workers together, since their job began."""

    steps: float
    # Seconds: computing gradients, and everything else, which is exchanging them.
    compute: float
    exchange: float

    def exchanges(self, workers: int) -> float:
        """Gradients per second, if computing them took no time."""
        return workers * self.steps / self.exchange


def manifest(config: str, workers: int = 2) -> str:
    """A chief, workers and one server."""
    head = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n  name: train-rate\nspec:\n  tfReplicaSpecs:\n"
    return (
        head
        + REPLICAS.format(kind="Chief", count=1, program="chief", config=config)
        + REPLICAS.format(kind="PS", count=1, program="ps_server", config=config)
        + REPLICAS.format(kind="Worker", count=workers, program="worker", config=config)
    )


def read_step(path: str) -> Optional[int]:
    try:
        with open(path, encoding="utf-8") as file:
            return int(json.load(file).get("step", 0))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def rate_of(samples: List[Sample], steps: int) -> float:
    """Steps per second between the first sample after a quarter of the steps and the last before the end."""
    measured = [s for s in samples if steps / 4 <= s.step < steps]
    if len(measured) < 2 or measured[-1].step == measured[0].step:
        raise RuntimeError(f"the job was over too soon to measure: {len(measured)} samples; give it more --steps")
    return (measured[-1].step - measured[0].step) / (measured[-1].time - measured[0].time)


def read_step_times(metrics: str) -> Optional[StepTimes]:
    """Of all workers, from what the chief serves as metrics. None: no worker has reported yet."""
    kinds: Dict[str, float] = {}
    for kind, value in re.findall(r'^keelson_chief_worker_step_seconds_total\{.*kind="(\w+)".*\} (\S+)$', metrics, re.MULTILINE):
        kinds[kind] = kinds.get(kind, 0) + float(value)
    steps = sum(map(float, re.findall(r"^keelson_chief_worker_steps_total\{.*\} (\S+)$", metrics, re.MULTILINE)))
    compute = kinds.pop("compute", 0)
    return StepTimes(steps, compute, sum(kinds.values())) if steps else None


def watch(
    process: "subprocess.Popen[bytes]", status_path: str, each: Callable[[], None] = lambda: None
) -> List[Sample]:
    """When each new step was seen, until the process ends. `each` is called with each one."""
    samples: List[Sample] = []
    while process.poll() is None:
        step = read_step(status_path)
        if step is not None and (not samples or samples[-1].step != step):
            samples.append(Sample(time.monotonic(), step))
            each()
        time.sleep(0.02)
    return samples


def measure(wire: str, steps: int, bin_dir: str, data_dir: Optional[str]) -> float:
    """Gradients per second of one job."""
    with tempfile.TemporaryDirectory() as work:
        config, job = os.path.join(work, "config.textproto"), os.path.join(work, "job.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(config_text(NETWORKS["mlp"], steps, wire))
        with open(job, "w", encoding="utf-8") as file:
            file.write(manifest(config))
        model_dir = os.path.join(work, "model")
        # By its own interpreter, which has PyYAML; the one of this script may be another program's.
        command = [LAUNCHER]
        command += [f"--bin_dir={bin_dir}", f"--run_dir={work}/run", f"--model_dir={model_dir}"]
        command += [f"--data_dir={data_dir}"] if data_dir else []
        return rate_of(run(command + [job], model_dir), steps)


def run(command: List[str], model_dir: str) -> List[Sample]:
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
            samples = watch(process, os.path.join(model_dir, "status.json"))
        if process.returncode != 0:
            output.seek(0)
            raise RuntimeError("the job failed:\n" + output.read().decode())
    return samples


def measure_collective(
    network: Network,
    wire: str,
    workers: int,
    steps: int,
    bin_dir: str,
    data_dir: Optional[str],
    exchange: bool = False,
    replicas: str = "AUTO",
) -> float:
    """Gradients per second of a job of workers alone, which host the model themselves and train synchronously; of its
    `exchange` alone: what it would be, if computing a gradient took no time."""
    with tempfile.TemporaryDirectory() as work:
        config, model_dir = os.path.join(work, "config.textproto"), os.path.join(work, "model")
        with open(config, "w", encoding="utf-8") as file:
            file.write(config_text(network, steps, wire) + f"collective {{ replicas: {replicas} }}\n")
        command = [os.path.join(bin_dir, "worker"), f"--config={config}", f"--model_dir={model_dir}"]
        command += [f"--data_dir={data_dir}"] if data_dir else []
        metrics_port, *ports = free_ports(1 + workers)
        hosts = [f"127.0.0.1:{port}" for port in ports]
        times: List[StepTimes] = []

        def note_times() -> None:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=1) as response:
                    newest = read_step_times(response.read().decode())
                times.extend([newest] if newest else [])

        with tempfile.TemporaryFile() as output:
            processes = []
            for index in range(workers):
                tf_config = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}}
                environment = {**os.environ, "TF_CONFIG": json.dumps(tf_config)}
                flags = [f"--metrics_port={metrics_port}"] if exchange and index == 0 else []
                processes.append(subprocess.Popen(command + flags, env=environment, stdout=output, stderr=output))
            status_path = os.path.join(model_dir, "status.json")
            samples = watch(processes[0], status_path, note_times) if exchange else watch(processes[0], status_path)
            if any(process.wait() != 0 for process in processes):
                output.seek(0)
                raise RuntimeError("the job failed:\n" + output.read().decode())
        if exchange:
            if not times:
                raise RuntimeError("the job was over too soon to measure; give it more --steps")
            return times[-1].exchanges(workers)
        return workers * rate_of(samples, steps)


def free_ports(count: int) -> List[int]:
    """Ports on which nobody listens."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def measure_alone(config: str, steps: int, bin_dir: str, data_dir: Optional[str]) -> float:
    """Steps per second of one process that is the whole job; `config` is a file."""
    with tempfile.TemporaryDirectory() as model_dir:
        command = [os.path.join(bin_dir, "chief"), f"--config={config}", f"--model_dir={model_dir}"]
        command += [f"--training_steps={steps}"] + ([f"--data_dir={data_dir}"] if data_dir else [])
        return rate_of(run(command, model_dir), steps)


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=4000, help="length of a job (default: 4000)")
    parser.add_argument(
        "--bin_dir", default=os.path.join(REPOSITORY, "build", "release", "bin"), help="where the programs are"
    )
    parser.add_argument("--data_dir", help="IDX files (default: generated digits)")


def parse_flags() -> Tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description="Gradients per second of a small Keelson job.")
    parser.add_argument("--wire", choices=sorted(TRANSFER), default="f32", help="format of gradients and values")
    add_flags(parser)
    return parser, parser.parse_args()


def main() -> None:
    parser, flags = parse_flags()
    try:
        rate = measure(flags.wire, flags.steps, flags.bin_dir, flags.data_dir)
    except RuntimeError as error:
        parser.exit(1, f"train_rate: {error}\n")
    print(f"keelson {flags.wire}: {rate:.0f} gradients/s")


if __name__ == "__main__":
    main()
