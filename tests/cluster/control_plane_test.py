"""The parts of the control plane that run without one."""

import base64
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict

from control_plane import Operator, Processes


class Parts(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def test_a_process_that_has_ended_is_told_with_its_last_lines(self) -> None:
        processes = Processes(self.folder)
        self.addCleanup(processes.stop)
        script = "i=1; while [ $i -le 9 ]; do echo line $i; i=$((i+1)); done; exit 3"
        processes.start("server", ["sh", "-c", script], {"PATH": os.environ["PATH"]})
        with self.assertRaises(RuntimeError) as caught:
            while True:
                processes.check()
        first, *last = str(caught.exception).splitlines()
        self.assertEqual((first, last), ("server ended with 3:", [f"line {i}" for i in range(5, 10)]))

    def test_the_certificate_of_a_webhook_is_mounted_once_the_operator_has_made_it(self) -> None:
        secret: Dict[str, Any] = {}

        class Client:
            def request(self, method: str, path: str) -> Any:
                return {"/api/v1/namespaces/system/secrets/cert": secret}[path]

        operator = Operator("program", "service", "cert", "system", 1)
        self.assertFalse(operator.mount_certificate(Client(), self.folder))  # type: ignore[arg-type]
        secret["data"] = {name: base64.b64encode(name.encode()).decode() for name in ("tls.crt", "ca.crt", "tls.key")}
        self.assertTrue(operator.mount_certificate(Client(), self.folder))  # type: ignore[arg-type]
        files = {path.name: path.read_text() for path in self.folder.iterdir()}
        self.assertEqual(files, {name: name for name in secret["data"]})


if __name__ == "__main__":
    unittest.main()
