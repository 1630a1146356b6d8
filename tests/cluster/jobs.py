"""The manifests of the comparison, and where the operator's answers to them are kept."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "deploy"))

from tfjob_api.documents import take_apart  # noqa: E402  (needs the path above)
from tfjob_api.fields import ManifestError  # noqa: E402
from tfjob_api.job_kind import JOB_KINDS  # noqa: E402
from tfjob_api.model import Manifest  # noqa: E402
from tfjob_api.operator_version import OperatorVersion  # noqa: E402
from tfjob_api.reader import ReadOptions, read_documents  # noqa: E402
from tfjob_api.template import expand_templates  # noqa: E402

OPERATOR = "1.9.3"
GOLDEN = Path(__file__).with_name("golden")
ODD = "tests/cluster/odd_jobs.yaml"
REFUSED = "tests/cluster/refused_jobs.yaml"
_OPTIONS = ReadOptions(version=OperatorVersion.parse(OPERATOR))


@dataclass(frozen=True)
class Source:
    """A file of manifests. Its objects get a namespace of their own."""

    # From the repository's root.
    path: str
    documents: Sequence[Mapping[str, Any]]

    @property
    def namespace(self) -> str:
        """Files of one name lie in several folders; that of TFJobs is not named."""
        path = Path(self.path)
        folder = f"{path.parent.name}-" if path.parent.name == "pytorchjob" else ""
        return f"{folder}{path.stem}".replace("_", "-")

    @property
    def jobs(self) -> List[Mapping[str, Any]]:
        """Those of the training operator, with their namespace."""
        found = [value for value in self.documents if value["kind"] in JOB_KINDS]
        return [{**job, "metadata": {**job["metadata"], "namespace": self.namespace}} for job in found]

    @property
    def golden(self) -> Path:
        return GOLDEN / f"{self.namespace}.json"


def load(path: str) -> Source:
    """Templates are filled in with their default values."""
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    values = [value for value in yaml.safe_load_all(text) if value]
    return Source(path, [document.value for document in expand_templates(take_apart(values, path), path, {})])


def sources() -> List[Source]:
    """All that are for a cluster."""
    folders = [REPOSITORY / "deploy" / name for name in ("tfjob", "pytorchjob", "trainer", "kubernetes", "openshift")]
    paths = [str(path.relative_to(REPOSITORY)) for folder in folders for path in sorted(folder.glob("*.yaml"))]
    return [load(path) for path in (*paths, ODD)]


def read_job(job: Mapping[str, Any], path: str) -> Manifest:
    """As the launcher reads it for the operator of the comparison. ManifestError."""
    return read_documents([job], path, _OPTIONS)


def refusal(job: Mapping[str, Any], path: str) -> str:
    """Why the launcher refuses the job; empty: it does not."""
    try:
        read_job(job, path)
    except ManifestError as error:
        return str(error).removeprefix(f"{path}: ")
    return ""


def one_order(answer: str) -> str:
    """A refusal with its supported values in one order: the webhook's is that of a Go map."""
    text, found, values = answer.partition("supported values: ")
    return text + found + ", ".join(sorted(values.split(", ")))


def write_golden(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_golden(path: Path) -> Dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
