"""Creates a job and the objects beside it on the cluster, all or none."""

import json
from typing import Any, Dict, Mapping, Sequence

from tfjob_api.job_document import kind_of
from tfjob_api.job_kind import JOB_KINDS, JobKind
from tfjob_api.yaml_text import to_yaml

from .command_line import kind_flag
from .errors import ClusterError, ErrorKind, InputError
from .kubectl import Kubectl, find_json, find_objects, read_json, resource_of
from .manifest import MANAGED_BY, find_job

Document = Dict[str, Any]

# The kinds of the objects beside a job, as kubectl lists them.
COMPANION_RESOURCES = (
    "configmaps",
    "secrets",
    "serviceaccounts",
    "networkpolicies",
    "poddisruptionbudgets",
    "services",
)
_OWN_METADATA = ("name", "namespace", "labels", "annotations")
# The cluster's answers to what a user asks for.
_ASSIGNED = {"Service": ("clusterIP", "clusterIPs")}


class JobCreation:
    def __init__(self, kubectl: Kubectl, namespace: str):
        self._kubectl = kubectl
        self._namespace = namespace

    def create(self, documents: Sequence[Document]) -> Document:
        """Returns the job as created on the cluster; it owns the other objects. InputError: a name is
        taken."""
        job = find_job(documents)
        companions = [document for document in documents if document is not job]
        self._refuse_taken_name(job)
        if companions:
            self._make_room(companions, kind_of(job))
        created = self._create(job, companions)
        if companions:
            self._set_owner(companions, created)
        return created

    def _refuse_taken_name(self, job: Document) -> None:
        name = _name(job)
        if find_json(self._kubectl, resource_of(kind_of(job)), name, self._namespace) is not None:
            flag = kind_flag(kind_of(job))
            raise InputError(
                f"job {name} exists already; give another --name, or delete it: keelson.py delete {flag}{name}"
            )

    def _make_room(self, documents: Sequence[Document], kind: JobKind) -> None:
        """Deletes objects of an earlier job: the cluster may be about to collect them, so that an update of
        them could be lost."""
        found = find_objects(self._kubectl, [_reference(document) for document in documents], self._namespace)
        for document in found:
            what = f"{document['kind']} {_name(document)}"
            if not _is_ours(document):
                raise InputError(f"{what} exists already, and was not made by keelson.py")
            for owner in document["metadata"].get("ownerReferences") or []:
                if owner.get("kind") in JOB_KINDS and owner["kind"] != kind.name:
                    job = f"{owner['kind']} {owner['name']}"
                    raise InputError(f"{what} exists already, and belongs to the {job}; give another --name")
        if found:
            self._delete(found)

    def _create(self, job: Document, companions: Sequence[Document]) -> Document:
        """Creates the objects without `apply`, which would change an object that another user has just
        created."""
        command = ["create", "--filename=-"]
        try:
            if companions:
                self._kubectl.run(command, self._namespace, to_yaml(companions))
            return read_json(self._kubectl, command, self._namespace, to_yaml([job]))
        except ClusterError as error:
            # An object that exists already belongs to that user.
            if error.kind is not ErrorKind.EXISTS:
                self._delete_quietly(companions)
            raise

    def _delete_quietly(self, documents: Sequence[Document]) -> None:
        try:
            self._delete(documents)
        except ClusterError:
            # The original error is the one to report.
            pass

    def _delete(self, documents: Sequence[Document]) -> None:
        if documents:
            references = [_reference(document) for document in documents]
            self._kubectl.run(["delete", *references, "--ignore-not-found"], self._namespace)

    def _set_owner(self, documents: Sequence[Document], owner: Document) -> None:
        """The cluster deletes the objects with the job, also after ttlSecondsAfterFinished."""
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": _name(owner),
            "uid": owner["metadata"]["uid"],
        }
        patch = json.dumps({"metadata": {"ownerReferences": [reference]}})
        references = [_reference(document) for document in documents]
        try:
            self._kubectl.run(["patch", *references, "--type=merge", f"--patch={patch}"], self._namespace)
        except ClusterError as error:
            # A user that may create but not change objects leaves them behind; the next job of this name
            # deletes them.
            if error.kind is not ErrorKind.FORBIDDEN:
                raise


def is_owned_by(document: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    references = (document.get("metadata") or {}).get("ownerReferences") or []
    return any(reference.get("uid") == owner["metadata"]["uid"] for reference in references)


def without_servers_fields(document: Mapping[str, Any]) -> Document:
    """The object as a user would write it."""
    result = {key: value for key, value in document.items() if key not in ("status", "secrets")}
    result["metadata"] = {k: v for k, v in document["metadata"].items() if k in _OWN_METADATA}
    for field in _ASSIGNED.get(document["kind"], ()):
        result["spec"] = {key: value for key, value in result["spec"].items() if key != field}
    return result


def _reference(document: Mapping[str, Any]) -> str:
    """As kubectl names one object among others."""
    return f"{document['kind'].lower()}/{_name(document)}"


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _is_ours(document: Mapping[str, Any]) -> bool:
    labels = (document.get("metadata") or {}).get("labels") or {}
    return all(labels.get(key) == value for key, value in MANAGED_BY.items())
