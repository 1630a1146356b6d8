"""The metrics that the programs export, and those that a query of Prometheus names."""

import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Dict, FrozenSet, List, NamedTuple, Set

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "deploy" / "monitoring"
# Folders of C++ sources that export metrics.
SOURCES = ("chief", "core/metrics", "core/startup", "evaluator", "ps_server", "worker")
# The figures of workers, each with its options.
FIGURES = "proto/keelson/v1/figures.proto"
FIGURE = re.compile(r"\[\(figure\) = \{(.*?)\}\]", re.DOTALL)
EXPORTED_NAME = re.compile(r'"((?:keelson|process)_[a-z0-9_]+)"')
DEADLINE_SECONDS = 60
TYPES = ("counter", "gauge", "histogram")
# The labels that a scrape adds to all metrics of a target, and Prometheus' own.
TARGET_LABELS = frozenset({"job", "instance"})
PROMETHEUS_METRICS = frozenset({"up"})

# Parts of PromQL that hold no names of metrics.
STRING = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'")
LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
RANGE = re.compile(r"\[[^\]]*\]")
NAME = re.compile(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(\s*\()?")
KEYWORDS = frozenset({"and", "or", "unless", "bool", "offset", "by", "without", "Inf", "NaN", "inf", "nan"})


class Metric(NamedTuple):
    type: str
    labels: FrozenSet[str]


class Selector(NamedTuple):
    name: str
    labels: FrozenSet[str]  # that it asks for


@lru_cache(maxsize=None)
def documented_metrics() -> Dict[str, Metric]:
    """The tables of docs/metrics.md. A label's documented values are among the labels, which is harmless."""
    metrics: Dict[str, Metric] = {}
    for line in (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 4 or cells[1] not in TYPES:
            continue
        for name in re.findall(r"`([a-z0-9_]+)`", cells[0]):
            if name in metrics:
                raise ValueError(f"docs/metrics.md has {name} twice")
            metrics[name] = Metric(cells[1], frozenset(re.findall(r"`([^`]+)`", cells[2])))
    return metrics


@lru_cache(maxsize=None)
def exported_names() -> FrozenSet[str]:
    """The names in the sources that export metrics, and of figures.proto."""
    names: Set[str] = set()
    for folder in SOURCES:
        for path in sorted((REPOSITORY / folder).rglob("*.cc")):
            if not re.search(r"_test(ing)?\.cc$", path.name):
                names.update(EXPORTED_NAME.findall(path.read_text(encoding="utf-8")))
    # A metric's prefix is no metric.
    return frozenset(name for name in names if not name.endswith("_")) | figure_names()


@lru_cache(maxsize=None)
def figure_names() -> FrozenSet[str]:
    """The metrics of the figures that workers report, at the worker and at the chief."""
    names: Set[str] = set()
    for options in FIGURE.findall((REPOSITORY / FIGURES).read_text(encoding="utf-8")):
        metric = re.search(r'\bmetric: "([a-z_]+)"', options)
        if metric is None:
            continue
        names.add(f"keelson_chief_worker_{metric[1]}")
        if "chief_only: true" not in options:
            names.add(f"keelson_worker_{metric[1]}")
    return frozenset(names)


def family_of(name: str) -> str:
    """The family of a sample: "a_bucket" of the histogram "a" is "a"."""
    family = re.sub(r"_(bucket|sum|count)$", "", name)
    documented = documented_metrics()
    return family if family in documented and documented[family].type == "histogram" else name


def selectors(query: str) -> List[Selector]:
    """The selections of a query, by the name of the metric."""
    query = STRING.sub('""', query)
    query = RANGE.sub("", LABEL_LIST.sub("", query))
    found = []
    for name, matchers, call in NAME.findall(query):
        if call or name in KEYWORDS:
            continue
        found.append(Selector(name, frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))))
    return found


def problems_of(query: str, own: FrozenSet[str] = frozenset()) -> List[str]:
    """The problems with the metrics that a query names; `own`: names of recording rules."""
    problems = []
    asked = selectors(query)
    if not asked:
        problems.append(f"no metric in: {query}")
    for selector in asked:
        family = family_of(selector.name)
        if selector.name in own | PROMETHEUS_METRICS:
            continue
        if family not in documented_metrics():
            problems.append(f"docs/metrics.md has no {selector.name}")
            continue
        if family not in exported_names():
            problems.append(f"no program exports {selector.name}")
        metric = documented_metrics()[family]
        if metric.type == "histogram" and family == selector.name:
            problems.append(f"{family} is a histogram: expected _bucket, _sum or _count")
        labels = metric.labels | TARGET_LABELS | ({"le"} if metric.type == "histogram" else set())
        problems += [f"{family} has no label {label}" for label in sorted(selector.labels - labels)]
    for function, name in re.findall(r"\b(rate|increase|irate)\(([\w:]+)", query):
        if family_of(name) == name and not name.endswith("_total"):
            problems.append(f"{function} of {name}, which is no counter")
    return problems


def promtool(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
