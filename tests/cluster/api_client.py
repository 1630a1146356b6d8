"""A client of a Kubernetes API server: JSON over HTTPS, with a client certificate."""

import json
import ssl
import time
import urllib.error
import urllib.request
from typing import Any, Dict, List, Mapping, Optional, Tuple

Object = Dict[str, Any]
_TIMEOUT_SECONDS = 30
_MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The server refused a request; the text is its own message."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class ApiClient:
    """Not for several threads at once: each has its own."""

    def __init__(self, address: str, ca_file: str, certificate: str, key: str):
        self._address = address
        self._context = ssl.create_default_context(cafile=ca_file)
        self._context.load_cert_chain(certificate, key)
        # (apiVersion, kind) -> (name in paths, whether objects have a namespace).
        self._resources: Dict[Tuple[str, str], Tuple[str, bool]] = {}

    def request(
        self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, content_type: str = "application/json"
    ) -> Object:
        """ApiError; OSError where no server answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": content_type}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=self._context) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, _message(error.read())) from error
        return json.loads(text) if text.startswith(b"{") else {}

    def knows(self, value: Mapping[str, Any]) -> bool:
        """Whether the server has the object's kind."""
        try:
            self._find_resource(value)
        except ApiError:
            return False
        return True

    def create(self, value: Mapping[str, Any], namespace: str = "", dry_run: bool = False) -> Object:
        """Creates the object as `kubectl create --validate=strict`; its own namespace wins over `namespace`.

        `dry_run`: the server judges it and keeps nothing.
        """
        name, has_namespace = self._find_resource(value)
        own = value["metadata"].get("namespace", namespace)
        path = self._prefix(str(value["apiVersion"])) + (f"/namespaces/{own}" if has_namespace else "")
        query = "fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.request("POST", f"{path}/{name}?{query}", value)

    def list(self, path: str) -> List[Object]:
        """The objects of "/api/v1/namespaces/default/pods" and the like."""
        return list(self.request("GET", path)["items"])

    def patch(self, path: str, change: Mapping[str, Any]) -> Object:
        return self.request("PATCH", path, change, _MERGE_PATCH)

    def wait_until_ready(self, seconds: float) -> None:
        """TimeoutError."""
        end = time.monotonic() + seconds
        while True:
            try:
                self.request("GET", "/readyz")
                return
            except (ApiError, OSError) as error:
                if time.monotonic() > end:
                    raise TimeoutError(f"the API server is not ready after {seconds:g} s: {error}") from error
            time.sleep(0.3)

    def _find_resource(self, value: Mapping[str, Any]) -> Tuple[str, bool]:
        version, kind = str(value["apiVersion"]), str(value["kind"])
        if (version, kind) not in self._resources:
            for resource in self.request("GET", self._prefix(version))["resources"]:
                if "/" not in resource["name"]:
                    self._resources[version, resource["kind"]] = (resource["name"], resource["namespaced"])
        if (version, kind) not in self._resources:
            raise ApiError(404, f'the server has no kind "{kind}" in {version}')
        return self._resources[version, kind]

    @staticmethod
    def _prefix(api_version: str) -> str:
        return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError):
        return text.decode(errors="replace")
