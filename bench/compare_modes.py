#!/usr/bin/python3
"""Whether it matters for a click model how its workers wait for one another, and who of them is lost.

usage: bench/compare_modes.py [--config FILE] [--records N] [--batch N] [--seeds N] [--cases NAME,...] [--bin_dir DIR]

Trains configs/ctr_deepfm.textproto on generated clicks with one worker and then in each of these ways, with two servers:
asynchronously, with bounded staleness and synchronously by four workers (whose parts of a step are a quarter of the
batch); with two workers, then four, then two again; with a server that is killed in the middle and started again; and
with half of the steps by two servers and the other half, from their snapshot, by three. A job writes twenty
snapshots. Prints the AUC of the last one on records that were not trained on, and the greatest difference. Takes minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Callable, NamedTuple

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = ("one worker", "async", "ssp 4", "sync 4", "2-4-2 workers", "killed server", "other servers")
DEADLINE_SECONDS = 1800
# A job writes so many: a server that is killed loses its steps since the newest one.
SNAPSHOTS = 20


class Settings(NamedTuple):
    config: str
    records: int
    batch: int
    bin_dir: str


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [int(bound.getsockname()[1]) for bound in sockets]


class Job:
    """The processes of one job; workers come and go."""

    def __init__(self, settings: Settings, work: str, config: str, servers: int) -> None:
        self._settings = settings
        self._work = work
        self._config = config
        self.model_dir = os.path.join(work, "model")
        addresses = [f"127.0.0.1:{port}" for port in free_ports(servers + 2)]
        self._flags = [f"--ps_hosts={','.join(addresses[:servers])}", f"--chief_hosts={addresses[servers]}"]
        self._evaluator_flag = f"--evaluator_hosts={addresses[servers + 1]}"
        self._processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        for index in range(servers):
            self.start("ps", index)
        self.start("chief", 0)
        self.start("evaluator", 0)

    def start(self, role: str, index: int) -> None:
        program = "ps_server" if role == "ps" else role
        command = [os.path.join(self._settings.bin_dir, program), f"--config={self._config}"]
        command += [f"--model_dir={self.model_dir}", f"--job_name={role}", f"--task_index={index}", *self._flags]
        if role in ("chief", "evaluator"):
            command.append(self._evaluator_flag)
        with open(os.path.join(self._work, f"{role}-{index}.log"), "ab") as log:
            self._processes[role, index] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )

    def end(self, role: str, index: int, with_signal: int) -> None:
        process = self._processes.pop((role, index))
        process.send_signal(with_signal)
        process.wait()

    def status(self) -> tuple[int, int]:
        """The step, and that of the end; 0 while they are not known."""
        try:
            with open(os.path.join(self.model_dir, "status.json"), encoding="utf-8") as file:
                status = json.load(file)
            return int(status.get("step", 0)), int(status.get("max_steps", 0))
        except (FileNotFoundError, json.JSONDecodeError):
            return 0, 0

    def await_fraction(self, fraction: float) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            step, last = self.status()
            if last > 0 and step >= fraction * last:
                return
            self._check()
            time.sleep(0.05)
        raise RuntimeError(f"no step {fraction} within {DEADLINE_SECONDS} s")

    def finish(self) -> float:
        """Waits for the end; the AUC of the last snapshot."""
        self._processes["chief", 0].wait(DEADLINE_SECONDS)
        for key in list(self._processes):
            process = self._processes.pop(key)
            if process.wait(60) != 0:
                raise RuntimeError(f"{key[0]}-{key[1]} ended with {process.returncode}")
        with open(os.path.join(self.model_dir, "eval", "metrics.jsonl"), encoding="utf-8") as file:
            last = json.loads(file.readlines()[-1])
        if last["step"] != self.status()[1]:
            raise RuntimeError(f"the last evaluation is of step {last['step']}")
        return float(last["auc"])

    def stop(self) -> None:
        """The chief first: it takes a last snapshot, for which it needs the servers."""
        order = sorted(self._processes, key=lambda key: ("worker", "chief", "evaluator", "ps").index(key[0]))
        for key in order:
            self._processes[key].send_signal(signal.SIGTERM)
            self._processes[key].wait(60)
        self._processes.clear()

    def kill(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _check(self) -> None:
        for (role, index), process in self._processes.items():
            if process.poll() not in (None, 0):
                raise RuntimeError(f"{role}-{index} ended with {process.returncode}: {self._work}/{role}-{index}.log")


@contextlib.contextmanager
def running(settings: Settings, work: str, config: str, servers: int, workers: int) -> Iterator[Job]:
    job = Job(settings, work, config, servers)
    try:
        for index in range(workers):
            job.start("worker", index)
        yield job
    finally:
        job.kill()


def write_config(settings: Settings, work: str, seed: int, batch: int, mode: str) -> str:
    with open(settings.config, encoding="utf-8") as file:
        text = file.read()
    path = os.path.join(work, "config.textproto")
    with open(path, "w", encoding="utf-8") as file:
        file.write(replace(text, "train_records: 20000000", f"train_records: {settings.records}", "batch_size: 1024",
                           f"batch_size: {batch}", "seed: 1\n", f"seed: {seed}\n", "save_steps: 1000",
                           f"save_steps: {max(1, settings.records // settings.batch // SNAPSHOTS)}"))  # fmt: skip
        file.write(f"consistency {{ mode {{ {mode} }} }}\n")
    return path


def replace(text: str, *pairs: str) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(f"expected {old!r} once, found it {text.count(old)} times")
        text = text.replace(old, new)
    return text


def plainly(servers: int, workers: int, mode: str, parts: int = 1) -> Callable[[Settings, str, int], float]:
    def train(settings: Settings, work: str, seed: int) -> float:
        config = write_config(settings, work, seed, settings.batch // parts, mode)
        with running(settings, work, config, servers, workers) as job:
            return job.finish()

    return train


def with_workers_that_come_and_go(settings: Settings, work: str, seed: int) -> float:
    config = write_config(settings, work, seed, settings.batch, "async {}")
    with running(settings, work, config, 2, 2) as job:
        job.await_fraction(1 / 3)
        for index in (2, 3):
            job.start("worker", index)
        job.await_fraction(2 / 3)
        job.end("worker", 0, signal.SIGKILL)
        job.end("worker", 3, signal.SIGTERM)
        return job.finish()


def with_a_killed_server(settings: Settings, work: str, seed: int) -> float:
    config = write_config(settings, work, seed, settings.batch, "async {}")
    with running(settings, work, config, 2, 2) as job:
        job.await_fraction(0.5)
        job.end("ps", 1, signal.SIGKILL)
        job.start("ps", 1)
        return job.finish()


def with_other_servers(settings: Settings, work: str, seed: int) -> float:
    config = write_config(settings, work, seed, settings.batch, "async {}")
    with running(settings, work, config, 2, 2) as job:
        job.await_fraction(0.5)
        job.stop()
    with running(settings, work, config, 3, 3) as job:
        return job.finish()


TRAINERS: dict[str, Callable[[Settings, str, int], float]] = {
    "one worker": plainly(2, 1, "async {}"),
    "async": plainly(2, 4, "async {}"),
    "ssp 4": plainly(2, 4, "bounded_staleness { staleness: 4 }"),
    "sync 4": plainly(2, 4, "synchronous { replicas_to_aggregate: 4 }", parts=4),
    "2-4-2 workers": with_workers_that_come_and_go,
    "killed server": with_a_killed_server,
    "other servers": with_other_servers,
}


def measure(settings: Settings, case: str, seeds: int) -> float:
    """The mean over the seeds."""
    found: list[float] = []
    for seed in range(1, seeds + 1):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            found.append(TRAINERS[case](settings, work, seed))
        print(f"{case}, seed {seed}: AUC {found[-1]:.4f} ({time.monotonic() - begin:.0f} s)", flush=True)
    return statistics.mean(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=os.path.join(REPOSITORY, "configs", "ctr_deepfm.textproto"))
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--bin_dir", default=os.path.join(REPOSITORY, "build", "release", "bin"))
    flags = parser.parse_args()
    settings = Settings(flags.config, flags.records, flags.batch, flags.bin_dir)
    means = {case: measure(settings, case, flags.seeds) for case in flags.cases.split(",")}
    print("\n| | AUC |\n|---|---:|")
    for case, mean in means.items():
        print(f"| {case} | {mean:.4f} |")
    print(f"\nspread {max(means.values()) - min(means.values()):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
