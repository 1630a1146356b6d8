"""Running kubectl: its output, its lines as they come, and the kinds of its errors."""

import os
import signal
import unittest

from support import TemporaryDirectoryTest

from keelson_client.errors import ClusterError, ErrorKind
from keelson_client.kubectl import KubectlProgram, kubectl_error, read_json

LOGGED = 'E1122 07:45:41.873275    9020 memcache.go:265] "Unhandled Error" err="couldn\'t get"\n'


class ErrorKindTest(unittest.TestCase):
    """The texts of kubectl 1.20 to 1.32 for each error have the right kind."""

    def check(self, written, kind):
        error = kubectl_error(written, 1)
        self.assertIs(error.kind, kind, written)
        self.assertNotIn("\n", str(error))
        return str(error)

    def test_not_found(self):
        text = 'Error from server (NotFound): tfjobs.kubeflow.org "m" not found\n'
        self.assertEqual(self.check(text, ErrorKind.NOT_FOUND), f"kubectl: {text.strip()}")

    def test_forbidden(self):
        text = (
            'Error from server (Forbidden): tfjobs.kubeflow.org is forbidden: User "u" cannot list resource '
            '"tfjobs" in API group "kubeflow.org" in the namespace "default"'
        )
        self.check(text, ErrorKind.FORBIDDEN)

    def test_unauthorized(self):
        self.check("error: You must be logged in to the server (Unauthorized)", ErrorKind.UNAUTHORIZED)

    def test_no_server(self):
        refused = (
            "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?"
        )
        self.assertEqual(self.check(LOGGED * 5 + refused, ErrorKind.NO_SERVER), f"kubectl: {refused}")
        dial = "Unable to connect to the server: dial tcp: lookup k8s.example on 1.1.1.1:53: no such host"
        self.check(dial, ErrorKind.NO_SERVER)
        self.check("Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout", ErrorKind.NO_SERVER)
        config = (
            "error: invalid configuration: no configuration has been provided, try setting "
            "KUBERNETES_MASTER environment variable"
        )
        self.check(config, ErrorKind.NO_SERVER)

    def test_no_operator(self):
        for text in (
            'error: the server doesn\'t have a resource type "tfjobs"',
            'error: unable to recognize "STDIN": no matches for kind "TFJob" in version "kubeflow.org/v1"',
            'error: resource mapping not found for name: "m" namespace: "" from "STDIN": no matches for kind '
            '"TFJob" in version "kubeflow.org/v1"\nensure CRDs are installed first',
        ):
            message = self.check(text, ErrorKind.NO_OPERATOR)
            self.assertTrue(message.startswith("the TFJob operator is not installed: "), message)

    def test_no_operator_of_pytorch_jobs(self):
        text = 'error: unable to recognize "STDIN": no matches for kind "PyTorchJob" in version "kubeflow.org/v1"'
        expected = "the PyTorchJob operator is not installed: the cluster does not know pytorchjobs.kubeflow.org; "
        self.assertTrue(self.check(text, ErrorKind.NO_OPERATOR).startswith(expected))

    def test_refused_objects(self):
        self.check('Error from server (AlreadyExists): configmaps "m" already exists', ErrorKind.EXISTS)
        denied = (
            'Error from server (Forbidden): error when creating "STDIN": admission webhook '
            '"validator.tfjob.training-operator.kubeflow.org" denied the request: spec: Required value'
        )
        self.check(denied, ErrorKind.INVALID)
        self.check('The TFJob "m" is invalid: error validating data', ErrorKind.INVALID)

    def test_anything_else_is_told_as_it_is(self):
        text = self.check('error: context "x" does not exist\n', ErrorKind.OTHER)
        self.assertEqual(text, 'kubectl: error: context "x" does not exist')

    def test_only_logged_lines(self):
        self.assertIn("Unhandled Error", self.check(LOGGED, ErrorKind.OTHER))

    def test_nothing_written(self):
        self.assertEqual(str(kubectl_error("", 7)), "kubectl: exit code 7")
        self.assertEqual(kubectl_error("", 7).exit_code, 7)


class ProgramTest(TemporaryDirectoryTest):
    """KubectlProgram with a shell script in kubectl's place."""

    def program(self, script, **options):
        return KubectlProgram(self.write_script("kubectl", script), **options)

    def stream(self, script):
        stream = self.program(script).stream(["logs"])
        self.addCleanup(stream.close)
        return stream

    def read_all(self, stream):
        lines = []
        while (read := stream.read(10.0)) is not None:
            lines += read
        return lines

    def test_flags_and_input(self):
        kubectl = self.program('echo "$@"; cat', context="c", kubeconfig="/k")
        output = kubectl.run(["apply"], "ns", "text\n")
        flags = "--context=c --kubeconfig=/k --namespace=ns --request-timeout=30s apply"
        self.assertEqual(output, f"{flags}\ntext\n")
        self.assertEqual(self.program('echo "$@"').run(["get"]), "--request-timeout=30s get\n")

    def test_error_has_kind_and_exit_code(self):
        kubectl = self.program('echo "Error from server (NotFound): x" >&2; exit 3')
        with self.assertRaises(ClusterError) as caught:
            kubectl.run(["get"])
        self.assertEqual((caught.exception.kind, caught.exception.exit_code), (ErrorKind.NOT_FOUND, 3))

    def test_missing_program(self):
        kubectl = KubectlProgram("/nonexistent/kubectl")
        expected = (
            'kubectl: cannot run "/nonexistent/kubectl": No such file or directory; install it or give '
            "--kubectl PATH"
        )
        for call in (kubectl.run, kubectl.stream):
            with self.assertRaises(ClusterError) as caught:
                call(["get"])
            self.assertIs(caught.exception.kind, ErrorKind.NO_KUBECTL)
            self.assertEqual(str(caught.exception), expected)

    def test_json(self):
        self.assertEqual(read_json(self.program("echo '{\"a\": 1}'"), ["get"]), {"a": 1})
        for output, expected in (("oops", "not JSON"), ("[1]", "expected an object")):
            with self.assertRaisesRegex(ClusterError, expected):
                read_json(self.program(f"echo '{output}'"), ["get"])

    def test_lines_as_they_come(self):
        stream = self.stream("echo one; exec sleep 600")
        self.assertEqual(stream.read(10.0), ["one"])
        self.assertEqual(stream.read(0.01), [])

    def test_last_line_without_end(self):
        stream = self.stream("printf 'one\\ntw'; printf 'o'")
        self.assertEqual(self.read_all(stream), ["one", "two"])
        self.assertIsNone(stream.close())
        self.assertIsNone(stream.read(10.0))

    def test_error_of_a_stream(self):
        stream = self.stream("echo 'Error from server (Forbidden): x' >&2; exit 1")
        self.assertEqual(self.read_all(stream), [])
        self.assertIs(stream.close().kind, ErrorKind.FORBIDDEN)

    def test_closing_ends_a_running_process(self):
        stream = self.stream("echo $$; exec sleep 600")
        pid = int(stream.read(10.0)[0])
        self.assertIsNone(stream.close())
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    def test_killed_process_is_an_error(self):
        stream = self.stream("kill -9 $$")
        self.assertEqual(self.read_all(stream), [])
        self.assertEqual(stream.close().exit_code, -signal.SIGKILL)
