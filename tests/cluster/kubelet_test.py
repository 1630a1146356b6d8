"""The parts of the small kubelet that need no cluster."""

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

from kubelet import Volumes


class Parts(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def test_volumes_are_filled_as_a_kubelet_does(self) -> None:
        objects = {"configmaps/c": {"data": {"k": "text"}}, "secrets/s": {"data": {"k": "c2VjcmV0"}}}

        class Client:
            def request(self, method: str, path: str) -> Any:
                return objects[path.removeprefix("/api/v1/namespaces/n/")]

        kinds = [{"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}}, {"emptyDir": {}}]
        volumes: List[Dict[str, Any]] = [{"name": f"v{i}", **kind} for i, kind in enumerate(kinds)]
        volumes.append({"name": "shared", "persistentVolumeClaim": {"claimName": "claim"}})
        security = {"fsGroup": os.getgid()}
        pods = [{"metadata": {"name": p}, "spec": {"volumes": volumes, "securityContext": security}} for p in "ab"]
        a, b = (Volumes(Client(), "n", self.folder).prepare(pod) for pod in pods)  # type: ignore[arg-type]
        self.assertEqual((a["v0"] / "k").read_text(), "text")
        self.assertEqual((a["v1"] / "k").read_text(), "secret")
        self.assertEqual(list(a["v2"].iterdir()), [])
        self.assertEqual(a["shared"], b["shared"])
        self.assertNotEqual(a["v2"], b["v2"])


if __name__ == "__main__":
    unittest.main()
