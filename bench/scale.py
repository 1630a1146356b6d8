#!/usr/bin/python3
"""What a job of many workers and servers needs, from measured unit costs, and what breaks first.

usage: bench/scale.py [--workers N,N] [--servers N,N] [--model_gb G] [--step_rate R] [--costs FILE ...] [--markdown]
       bench/scale.py --check FILE [--costs FILE ...]

--costs takes what `chief_bench --json=FILE` and `ps_bench snapshot --json` wrote on the machines in question, and is
fitted to what they measured; without it the figures of docs/scale.md are used. --check predicts what a FILE of
chief_bench measured, and says by how much the prediction is wrong.
"""

import argparse
import json
import math
import sys
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

Features = Tuple[float, ...]
T = TypeVar("T")

REPORTS = "what chief_bench --json or ps_bench snapshot --json wrote"


class Linear(NamedTuple):
    """A cost that grows with the number of workers and servers: never negative."""

    fixed: float = 0
    worker: float = 0
    server: float = 0
    worker_server: float = 0

    def at(self, workers: int, servers: int) -> float:
        return self.fixed + self.worker * workers + (self.server + self.worker_server * workers) * servers


class Curve(NamedTuple):
    """A cost that was measured at some numbers of workers, ascending: between and beyond them it is straight in the
    logarithms of both."""

    points: Tuple[Tuple[int, float], ...] = ()

    def at(self, workers: int, servers: int) -> float:
        del servers  # those that it was measured with
        if not self.points:
            return 0
        if len(self.points) == 1:
            return self.points[0][1] * workers / self.points[0][0]
        segment = sum(workers > size for size, _ in self.points[1:-1])
        (size, cost), (next_size, next_cost) = self.points[segment : segment + 2]
        exponent = math.log(next_cost / cost) / math.log(next_size / size)
        return float(cost * (workers / size) ** exponent)


class Costs(NamedTuple):
    """Unit costs. Those of the chief are chief_bench's, the others ps_bench's (docs/scale.md says which and when)."""

    # Of the chief for a call of a worker, in a whole job.
    call_us: Linear = Linear()
    idle_cores: Linear = Linear()
    chief_bytes: Linear = Linear()
    chief_threads: Linear = Linear()
    job_state_bytes: Linear = Linear()
    round_ms: Curve = Curve()
    # Processor time of a server for a gigabyte in and one out, with Adam (docs/operations.md).
    server_cpu_s_per_gb: float = 0.47
    # Memory of a server and of a worker over what they hold.
    server_memory_factor: float = 1.11
    worker_memory_factor: float = 2.11
    process_bytes: float = 30e6
    # Buffers of one worker's messages at a server, bounded for all of them (ps_server receives 256 MiB at a time, and
    # gRPC keeps twice that).
    client_bytes: float = 4.9e6
    most_client_bytes: float = 2 * 256 * 2**20
    # Gigabytes a second of one server.
    snapshot_gb_per_s: float = 0.79
    restore_gb_per_s: float = 1.71


class Job(NamedTuple):
    workers: int
    servers: int
    model_gb: float = 0.1  # values
    slots: int = 2  # copies of the values that the optimizer keeps
    step_rate: float = 1  # of each worker, a second
    wire_factor: float = 1  # bytes on the wire for one of the model: 0.5 with bfloat16


class Limits(NamedTuple):
    """What the machines give, and what the code allows."""

    chief_cores: float = 2
    members: int = 4096  # Membership::kMaxMembers
    connections: int = 4096  # ConnectionGate::Limits
    chief_gb: float = 4
    job_state_bytes: float = 64 * 2**20  # the largest request of ChiefHeartbeat
    chief_gb_per_s: float = 1.2  # 10 Gbit/s
    server_gb_per_s: float = 1.2
    server_cores: float = 4  # --io_threads at most
    server_gb: float = 64
    worker_gb: float = 64
    snapshot_seconds: float = 1800  # the deadline of a server's call
    restore_seconds: float = 1800


class Needs(NamedTuple):
    """What a job takes; per process where the name says so."""

    chief_cores: float
    chief_gb: float
    chief_threads: float
    chief_connections: int
    chief_gb_per_s: float
    job_state_bytes: float
    round_ms: float
    server_connections: int
    server_gb_per_s: float  # each way
    server_cores: float
    server_gb: float
    worker_gb: float
    worker_gb_per_s: float  # each way
    members: int
    snapshot_gb: float  # of all servers
    snapshot_seconds: float
    restore_seconds: float


def heartbeat_rate(workers: int) -> float:
    """Heartbeats of each worker, a second: Membership::HeartbeatInterval, with a lease of 10 s."""
    return 1 / max(0.25, min(workers / 1000, 10 / 8))


def needs_of(job: Job, costs: Costs) -> Needs:
    def at(cost: Union[Linear, Curve]) -> float:
        return cost.at(job.workers, job.servers)

    calls = heartbeat_rate(job.workers) + job.step_rate  # of each worker, a second
    shard_gb = job.model_gb * (1 + job.slots) / job.servers
    moved = job.workers * job.step_rate * job.model_gb * job.wire_factor / job.servers
    buffers = min(costs.client_bytes * job.workers, costs.most_client_bytes)
    return Needs(
        chief_cores=at(costs.idle_cores) + job.workers * calls * at(costs.call_us) / 1e6,
        chief_gb=at(costs.chief_bytes) / 1e9,
        chief_threads=at(costs.chief_threads),
        chief_connections=job.workers,
        # Each server gets the state once a second.
        chief_gb_per_s=at(costs.job_state_bytes) * job.servers / 1e9,
        job_state_bytes=at(costs.job_state_bytes),
        round_ms=at(costs.round_ms),
        server_connections=job.workers + 1,
        server_gb_per_s=moved,
        server_cores=moved * costs.server_cpu_s_per_gb,
        # While a snapshot is written a block that changes exists twice.
        server_gb=2 * shard_gb * costs.server_memory_factor + (buffers + costs.process_bytes) / 1e9,
        worker_gb=job.model_gb * costs.worker_memory_factor + costs.process_bytes / 1e9,
        worker_gb_per_s=job.step_rate * job.model_gb * job.wire_factor,
        members=job.workers,
        snapshot_gb=job.model_gb * (1 + job.slots),
        snapshot_seconds=shard_gb / costs.snapshot_gb_per_s,
        restore_seconds=shard_gb / costs.restore_gb_per_s,
    )


def loads_of(needs: Needs, limits: Limits) -> Dict[str, float]:
    """What is needed of each limit: above 1 the job does not run so."""
    return {
        "chief: cores": needs.chief_cores / limits.chief_cores,
        "chief: memory": needs.chief_gb / limits.chief_gb,
        "chief: connections": needs.chief_connections / limits.connections,
        "chief: network": needs.chief_gb_per_s / limits.chief_gb_per_s,
        "chief: size of the job state": needs.job_state_bytes / limits.job_state_bytes,
        "chief: members": needs.members / limits.members,
        "server: connections": needs.server_connections / limits.connections,
        "server: network": needs.server_gb_per_s / limits.server_gb_per_s,
        "server: cores": needs.server_cores / limits.server_cores,
        "server: memory": needs.server_gb / limits.server_gb,
        "worker: memory": needs.worker_gb / limits.worker_gb,
        "worker: network": needs.worker_gb_per_s / limits.server_gb_per_s,
        "snapshot: time": needs.snapshot_seconds / limits.snapshot_seconds,
        "restore: time": needs.restore_seconds / limits.restore_seconds,
    }


def first_limit(needs: Needs, limits: Limits) -> Tuple[str, float]:
    return max(loads_of(needs, limits).items(), key=lambda item: item[1])


def solve(matrix: List[List[float]], right: List[float]) -> Optional[List[float]]:
    """Gauss with pivots; nothing for a singular matrix."""
    size = len(right)
    rows = [row[:] + [value] for row, value in zip(matrix, right)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda r: abs(rows[r][column]))
        if abs(rows[pivot][column]) < 1e-9:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for r in range(size):
            if r != column:
                factor = rows[r][column] / rows[column][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[column])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def least_squares(points: Sequence[Tuple[Features, float]], used: Sequence[int]) -> Optional[List[float]]:
    """Coefficients of the used features for the least relative errors; no value is 0."""
    weighted = [[f[u] / max(abs(y), 1e-12) for u in used] for f, y in points]
    scale = [max(abs(row[i]) for row in weighted) or 1 for i in range(len(used))]
    rows = [[value / s for value, s in zip(row, scale)] for row in weighted]
    normal = [[sum(row[i] * row[j] for row in rows) for j in range(len(used))] for i in range(len(used))]
    found = solve(normal, [sum(row[i] for row in rows) for i in range(len(used))])
    return None if found is None else [value / s for value, s in zip(found, scale)]


def fit(points: Sequence[Tuple[int, int, float]]) -> Linear:
    """The cost through (workers, servers, value): the features that the points can tell apart, none negative."""
    features = [((1.0, w, s, w * s), value) for w, s, value in points]
    many_workers = len({w for w, _, _ in points}) > 1
    many_servers = len({s for _, s, _ in points}) > 1
    used = [0] + [1] * many_workers + [2] * many_servers
    used += [3] * (many_workers and many_servers and len(points) > 3)
    while used:
        found = least_squares(features, used)
        if found is not None and min(found) >= 0:
            coefficients = dict(zip(used, found))
            return Linear(*(coefficients.get(i, 0.0) for i in range(4)))
        # The most negative one goes, or the last where there are too few points.
        used.pop(len(used) - 1 if found is None else found.index(min(found)))
    return Linear()


def curve(points: Sequence[Tuple[int, int, float]]) -> Curve:
    """Through (workers, servers, value); several values of one number of workers count as their geometric mean."""
    logarithms: Dict[int, List[float]] = {}
    for workers, _, value in points:
        logarithms.setdefault(workers, []).append(math.log(value))
    return Curve(tuple((w, math.exp(sum(logs) / len(logs))) for w, logs in sorted(logarithms.items())))


def points_of(results: Iterable[dict], mode: str, *keys: str) -> List[Tuple[int, int, float]]:
    points = []
    for result in results:
        value = result.get(mode)
        for key in keys:
            value = None if value is None else value.get(key)
        if value is not None and value > 0:
            points.append((result["workers"], result["servers"], float(value)))
    return points


def keeps_up(job: Dict[str, Any]) -> bool:
    """A chief that does not answer 95 % of the calls uses less than it needs, so its cores say nothing."""
    return bool(job["answered_per_second"] >= 0.95 * job["wanted_per_second"])


def call_points_of(results: Iterable[dict]) -> List[Tuple[int, int, float]]:
    """Microseconds of the chief for a call in a whole job, without what it does for an idle one."""
    points = []
    for result in results:
        job = result.get("asynchronous")
        if job is None or not keeps_up(job):
            continue
        busy = job["cores"]["median"] - job["idle_cores"]["median"]
        if busy > 0:
            points.append((result["workers"], result["servers"], busy * 1e6 / job["answered_per_second"]))
    return points


def changes_of(reports: Iterable[object]) -> Dict[str, Any]:
    """The fields of Costs that the reports have measured."""
    results: List[dict] = []
    writes: List[float] = []
    for report in reports:
        if isinstance(report, dict):
            results += report.get("results", [])
        elif isinstance(report, list):
            writes += [entry["write_gbytes_per_s"] for entry in report if "write_gbytes_per_s" in entry]
    wanted = {
        "call_us": call_points_of(results),
        "idle_cores": points_of(results, "asynchronous", "idle_cores", "median"),
        "chief_bytes": points_of(results, "asynchronous", "memory", "resident_bytes"),
        "chief_threads": points_of(results, "asynchronous", "memory", "threads"),
        "job_state_bytes": points_of(results, "asynchronous", "job_state_bytes"),
    }
    changes: Dict[str, Any] = {name: fit(points) for name, points in wanted.items() if points}
    rounds = points_of(results, "synchronous", "round_ms", "median")
    if rounds:
        changes["round_ms"] = curve(rounds)
    if writes:
        changes["snapshot_gb_per_s"] = sorted(writes)[len(writes) // 2]
    return changes


class Check(NamedTuple):
    workers: int
    servers: int
    what: str
    predicted: float
    measured: float

    def error(self) -> float:
        return self.predicted / self.measured - 1


def checks_of(report: dict, costs: Costs) -> List[Check]:
    """Predictions beside what was measured."""
    checks = []
    for result in report["results"]:
        workers, servers = result["workers"], result["servers"]
        needs = needs_of(Job(workers, servers), costs)
        pairs: List[Tuple[str, float, float]] = []
        job = result.get("asynchronous")
        if job is not None:
            if keeps_up(job):
                pairs.append(("cores of the chief", needs.chief_cores, job["cores"]["median"]))
            pairs.append(("MB of the chief", needs.chief_gb * 1000, job["memory"]["resident_bytes"] / 1e6))
            pairs.append(("threads of the chief", needs.chief_threads, job["memory"]["threads"]))
            pairs.append(("KB of the job state", needs.job_state_bytes / 1000, job["job_state_bytes"] / 1000))
        rounds = result.get("synchronous")
        if rounds is not None and rounds["rounds"] > 0:
            pairs.append(("ms of a synchronous round", needs.round_ms, rounds["round_ms"]["median"]))
        checks += [Check(workers, servers, *pair) for pair in pairs]
    return checks


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.1g}"


def render(rows: Sequence[Sequence[str]], markdown: bool) -> str:
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = []
    for r, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip())
        if markdown and r == 0:
            lines.append("|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (w + 1) + ":" for w in widths[1:]]) + "|")
    return "\n".join(lines)


COLUMNS = (
    "workers x servers",
    "chief cores",
    "MB",
    "threads",
    "state MB/s",
    "round ms",
    "server GB/s",
    "cores",
    "GB",
    "connections",
    "snapshot s",
    "restore s",
    "first limit",
    "of it",
)


def row_of(job: Job, costs: Costs, limits: Limits) -> List[str]:
    needs = needs_of(job, costs)
    name, load = first_limit(needs, limits)
    values = (
        needs.chief_cores,
        needs.chief_gb * 1000,
        needs.chief_threads,
        needs.chief_gb_per_s * 1000,
        needs.round_ms,
        needs.server_gb_per_s,
        needs.server_cores,
        needs.server_gb,
        needs.server_connections,
        needs.snapshot_seconds,
        needs.restore_seconds,
    )
    return [f"{job.workers:,} x {job.servers:,}", *(number(value) for value in values), name, number(load)]


def table_of(jobs: Iterable[Job], costs: Costs, limits: Limits, markdown: bool) -> str:
    return render([COLUMNS, *(row_of(job, costs, limits) for job in jobs)], markdown)


def check_table(checks: Iterable[Check], markdown: bool) -> str:
    rows: List[List[str]] = [["workers x servers", "what", "predicted", "measured", "error"]]
    for check in checks:
        size = f"{check.workers:,} x {check.servers:,}"
        figures = [number(check.predicted), number(check.measured), f"{check.error():+.0%}"]
        rows.append([size, check.what, *figures])
    return render(rows, markdown)


class ReportError(Exception):
    """A file that has no measurements: one line with its path."""


def numbers(text: str) -> List[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"expected whole numbers from 1, separated by commas, found {text!r}")
    return found


def slots(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {text!r}")
    return int(text)


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return value


def use_report(path: str, use: Callable[[Any], T]) -> T:
    """What `use` makes of a file's report. ReportError: the file cannot be read, or has no measurements."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ReportError(f"{path}: expected JSON, found none: {error}") from error
    try:
        found = use(report)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReportError(f"{path}: expected {REPORTS}, found something else: {error!r}") from error
    if not found:
        raise ReportError(f"{path}: expected {REPORTS}, found no measurements")
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a job of many workers and servers needs.")
    parser.add_argument("--workers", type=numbers, default=[100, 1000, 3000, 10000])
    parser.add_argument("--servers", type=numbers, default=[10, 100, 1000])
    parser.add_argument("--model_gb", type=positive, default=0.1, help="gigabytes of values")
    parser.add_argument("--slots", type=slots, default=2, help="of the optimizer: 2 for Adam, 0 for SGD")
    parser.add_argument("--step_rate", type=positive, default=1, help="steps a second of each worker")
    parser.add_argument("--wire_factor", type=positive, default=1, help="0.5 for bfloat16")
    parser.add_argument("--costs", action="append", default=[], help="JSON of chief_bench or of ps_bench snapshot")
    parser.add_argument("--check", help="JSON of chief_bench")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args(arguments)


def answer(flags: argparse.Namespace) -> str:
    reports = [use_report(path, lambda report: changes_of([report]) and [report]) for path in flags.costs]
    measured = changes_of([report for found in reports for report in found])
    costs = DEFAULT_COSTS._replace(**measured)
    if flags.check:
        return check_table(use_report(flags.check, lambda report: checks_of(report, costs)), flags.markdown)
    jobs = [
        Job(workers, servers, flags.model_gb, flags.slots, flags.step_rate, wire_factor=flags.wire_factor)
        for workers in flags.workers
        for servers in flags.servers
    ]
    return table_of(jobs, costs, Limits(), flags.markdown)


def main(arguments: Sequence[str]) -> int:
    flags = parse(arguments)
    try:
        print(answer(flags))
    except ReportError as error:
        print(f"scale.py: {error}", file=sys.stderr)
        return 2
    return 0


# Fitted to the measurements of docs/scale.md, which says on what machine.
DEFAULT_COSTS = Costs(
    call_us=Linear(fixed=140.0),
    idle_cores=Linear(worker=1.4e-05, server=0.0008),
    chief_bytes=Linear(fixed=42400000.0, server=85400.0, worker_server=232.0),
    chief_threads=Linear(fixed=19.0, server=2.0),
    job_state_bytes=Linear(worker=95.9, worker_server=0.000141),
    round_ms=Curve(((100, 13.0), (1000, 76.7), (3000, 1753.0))),
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
