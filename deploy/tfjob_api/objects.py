"""Reads the objects beside the TFJob: ConfigMaps, Secrets, claims; of others only the name."""

import base64
import binascii
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from .documents import Document
from .fields import FieldReader, ManifestError
from .model import ClusterObjects
from .names import check_key

Contents = Dict[str, bytes]
# They say what a cluster lets pods do; the processes here are the user's own.
_FOR_CLUSTERS_ALONE = ("NetworkPolicy", "PodDisruptionBudget", "ServiceAccount")


def read_objects(documents: Sequence[Document], namespace: str) -> ClusterObjects:
    """ManifestError. `namespace`: the job's; objects in other namespaces are not available to it."""
    config_maps: Dict[str, Contents] = {}
    secrets: Dict[str, Contents] = {}
    claims: List[str] = []
    others: List[str] = []
    seen: Set[Tuple[str, str, str]] = set()
    for document in documents:
        reader = _ObjectReader(document)
        identity = (document.kind, reader.namespace or namespace, document.name)
        if identity in seen:
            raise reader.error("found twice")
        seen.add(identity)
        if identity[1] != namespace:
            others.append(f"{document} (namespace {identity[1]})")
        elif document.kind == "ConfigMap":
            config_maps[reader.name()] = reader.config_map()
        elif document.kind == "Secret":
            secrets[reader.name()] = reader.secret()
        elif document.kind == "PersistentVolumeClaim":
            claims.append(reader.name())
        elif document.kind not in _FOR_CLUSTERS_ALONE:
            others.append(str(document))
    return ClusterObjects(config_maps, secrets, tuple(claims), tuple(others))


class _ObjectReader:
    def __init__(self, document: Document):
        self._fields = FieldReader(document.source)
        self._title = str(document)
        self._value = document.value
        self._metadata = self._fields.mapping(document.value.get("metadata"), f"{self._title}: metadata")
        self.namespace = self._fields.text(
            self._metadata.get("namespace"), f"{self._title}: metadata.namespace"
        )

    def error(self, what: str) -> ManifestError:
        return self._fields.error(self._title, what)

    def name(self) -> str:
        return self._fields.required_text(self._metadata.get("name"), f"{self._title}: metadata.name")

    def config_map(self) -> Contents:
        text = {key: value.encode() for key, value in self._texts("data").items()}
        binary = {
            key: self._decode(f"binaryData.{key}", value) for key, value in self._texts("binaryData").items()
        }
        for key in binary:
            if key in text:
                raise self._fields.error(f"{self._title}: binaryData.{key}", "the key stands in data too")
        return {**text, **binary}

    def secret(self) -> Contents:
        """stringData wins over data, as on a cluster."""
        data = {key: self._decode(f"data.{key}", value) for key, value in self._texts("data", True).items()}
        text = {key: value.encode() for key, value in self._texts("stringData", True).items()}
        return {**data, **text}

    def _texts(self, key: str, secret: bool = False) -> Mapping[str, str]:
        where = f"{self._title}: {key}"
        values: Dict[str, Any] = self._fields.mapping(self._value.get(key), where)
        for name in values:
            check_key(self._fields, name, where)
        if secret:
            # The error must not show the value.
            for name, value in values.items():
                if value is not None and not isinstance(value, str):
                    raise self._fields.error(f"{where}.{name}", "expected a string; quote it")
        return self._fields.text_map(values, where)

    def _decode(self, where: str, value: str) -> bytes:
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise self._fields.error(
                f"{self._title}: {where}", "expected base64 (its text is not shown)"
            ) from error
