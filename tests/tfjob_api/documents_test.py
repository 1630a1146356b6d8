"""Files of documents: what kubectl reads is read alike; what cannot be read is refused with its place."""

import io
import json
import unittest
from unittest import mock

from support import ManifestTest, manifest, replica
from tfjob_api.documents import load_files, take_apart
from tfjob_api.fields import ManifestError
from tfjob_api.reader import read_manifest

ONE = manifest(replica("Worker"))


class FilesTest(ManifestTest):
    """Documents come in the order of files, and know their file."""

    def values(self, text):
        return [document.value for document in load_files([self.write("file.yaml", text)])]

    def test_several_files_and_documents(self):
        first = self.write("first.yaml", "kind: A\n---\nkind: B\nmetadata: {name: b}\n")
        second = self.write("second.yaml", "kind: C\n")
        documents = load_files([first, second])
        self.assertEqual(
            [(d.source, str(d)) for d in documents], [(first, "A"), (first, "B b"), (second, "C")]
        )

    def test_empty_documents_between(self):
        self.assertEqual(self.values("---\n# nothing\n---\nkind: A\n---\n"), [{"kind": "A"}])

    def test_lists_give_their_items(self):
        text = "kind: List\nitems:\n- kind: A\n- kind: List\n  items: [{kind: B}]\n- kind: C\n"
        self.assertEqual([value["kind"] for value in self.values(text)], ["A", "B", "C"])
        self.assertEqual(self.values("kind: TFJobList\nitems: [{kind: TFJob}]\n"), [{"kind": "TFJob"}])

    def test_json(self):
        self.assertEqual(
            self.values('{"kind":"A","n":[1,2.5,true,null]}'), [{"kind": "A", "n": [1, 2.5, True, None]}]
        )

    def test_json_with_tabs(self):
        text = json.dumps({"kind": "A", "spec": {"n": 1}}, indent="\t")
        self.assertEqual(self.values(text), [{"kind": "A", "spec": {"n": 1}}])

    def test_byte_order_mark(self):
        self.assertEqual(self.values(b"\xef\xbb\xbfkind: A\n"), [{"kind": "A"}])

    def test_standard_input(self):
        with mock.patch("sys.stdin", mock.Mock(buffer=io.BytesIO(ONE.encode()))):
            self.assertEqual(read_manifest(["-"]).job.name, "job")

    def test_standard_input_in_errors(self):
        with mock.patch("sys.stdin", mock.Mock(buffer=io.BytesIO(b"kind: Pod\n"))):
            with self.assertRaises(ManifestError) as caught:
                read_manifest(["-"])
        self.assert_error(caught.exception, "standard input: expected a TFJob, a PyTorchJob or a TrainJob, found Pod")


class ScalarTest(FilesTest):
    """Text without quotes means what it means to kubectl."""

    def test_scalars(self):
        for text, value in (
            ("12:30", "12:30"),
            ("12:30:45.5", "12:30:45.5"),
            ("2026-01-01", "2026-01-01"),
            ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
            ("yes", True),
            ("Y", True),
            ("n", False),
            ("N", False),
            ("off", False),
            ("012", 10),
            ("0x1F", 31),
            ("1_000", 1000),
            ("-5", -5),
            ("1e-4", 1e-4),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("~", None),
            ("1.2.3", "1.2.3"),
            ("2Gi", "2Gi"),
            ("${{WORKERS}}", "${{WORKERS}}"),
        ):
            with self.subTest(text):
                value_read = self.values(f"kind: A\nv: {text}\n")[0]["v"]
                self.assertEqual((type(value_read), value_read), (type(value), value))

    def test_keys_are_text(self):
        value = self.values("kind: A\ndata: {1: a, true: b, 1.5: c}\n")[0]
        self.assertEqual(value["data"], {"1": "a", "true": "b", "1.5": "c"})

    def test_anchors_and_merges(self):
        value = self.values("kind: A\na: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: *a\n")[0]
        self.assertEqual((value["b"], value["c"]), ({"x": 1, "y": 3}, {"x": 1, "y": 2}))

    def test_merge_of_a_merge_is_no_duplicate(self):
        value = self.values("kind: A\nt: {d: {a: &a {x: 1}, b: &b {<<: *a, x: 2}}}\nc: {<<: *b}\n")[0]
        self.assertEqual(value["c"], {"x": 2})


class UnreadableTest(ManifestTest):
    """One line that names the file, the line and the column."""

    def assert_not_read(self, content, expected, name="job.yaml"):
        path = self.write(name, content)
        with self.assertRaises(ManifestError) as caught:
            load_files([path])
        self.assert_error(caught.exception, path + expected)

    def test_missing_file(self):
        with self.assertRaises(ManifestError) as caught:
            load_files([self.path("missing.yaml")])
        self.assert_error(caught.exception, f"{self.path('missing.yaml')}: No such file or directory")

    def test_directory(self):
        with self.assertRaises(ManifestError) as caught:
            load_files([self.directory])
        self.assert_error(caught.exception, f"{self.directory}: Is a directory")

    def test_empty_file(self):
        for text in ("", "# a comment\n", "---\n---\n"):
            self.assert_not_read(text, ": expected a document of kind TFJob, PyTorchJob or TrainJob, found an empty file")

    def test_not_utf8(self):
        self.assert_not_read(b"kind: A\nname: \xff\xfe\n", ":2: not UTF-8 text")

    def test_syntax(self):
        self.assert_not_read(
            "kind: TFJob\nspec: [1,\nmetadata: }\n",
            ":3:11: not YAML: expected the node content, but found '}' (while parsing a flow node)",
        )
        self.assert_not_read(
            "kind: TFJob\n\tspec: 1\n",
            ":2:1: not YAML: found character '\\t' that cannot start any token "
            "(while scanning for the next token)",
        )
        self.assert_not_read(
            "kind: TFJob\n  spec: 1\n", ":2:7: not YAML: mapping values are not allowed here"
        )

    def test_control_character(self):
        self.assert_not_read("kind: A\nv: a\x07b\n", ":2:5: not YAML: the character U+0007 is not allowed")

    def test_key_that_stands_twice(self):
        self.assert_not_read(
            "kind: TFJob\nspec:\n  replicas: 1\n  replicas: 2\n",
            ':4:3: not YAML: the key "replicas" stands twice in one mapping; kubectl would take the last one',
        )

    def test_json_key_that_stands_twice(self):
        self.assert_not_read(
            '{\n\t"kind": "A", "kind": "B"}',
            ":2:1: not YAML: found character '\\t' that cannot start any token "
            "(while scanning for the next token)",
        )
        self.assert_not_read(
            '{"kind": "A", "kind": "B"}',
            ':1:15: not YAML: the key "kind" stands twice in one mapping; kubectl would take the last one',
        )

    def test_alias_within_its_anchor(self):
        self.assert_not_read(
            "kind: A\nspec: &a [*a]\n",
            ": not YAML that Kubernetes takes: an alias stands inside its own anchor",
        )

    def test_aliases_that_multiply_a_document(self):
        limit = "not YAML: expected at most 16777216 characters with aliases replaced, found more"
        lists = "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20))
        self.assert_not_read(f"kind: A\na0: &a0 [x]\n{lists}", f":1:1: {limit}")
        merges = "".join(f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 20))
        self.assert_not_read(f"kind: A\na0: &a0 {{x: 1}}\n{merges}", f":1:1: {limit}")
        text = f"kind: A\ns: &s {'x' * 100000}\nl: [{','.join(['*s'] * 100)}]\n"
        # Each document is below the limit, both are not.
        self.assert_not_read(f"{text}---\n{text}", f":5:1: {limit}")
        self.assertEqual(len(load_files([self.write("file.yaml", text)])[0].value["l"]), 100)

    def test_deep_nesting(self):
        self.assert_not_read(f"kind: A\nspec: {'[' * 1500}{']' * 1500}\n", ": not YAML: nested too deeply")

    def test_values_that_json_does_not_have(self):
        self.assert_not_read(
            "kind: A\nspec: !!set {a}\n",
            ": not YAML that Kubernetes takes: Object of type set is not JSON serializable",
        )
        self.assert_not_read(
            "kind: A\nspec: !!int x\n", ": not YAML: invalid literal for int() with base 10: 'x'"
        )
        self.assert_not_read(
            "kind: A\nspec: !Sub x\n", ":2:7: not YAML: could not determine a constructor for the tag '!Sub'"
        )

    def test_not_rendered(self):
        helm = (
            "expected rendered YAML, this is a template ({{ ... }}): render it first, as with helm template"
        )
        jsonnet = "expected rendered YAML, this is jsonnet: render it first, as with jsonnet FILE"
        self.assert_not_read(
            "kind: TFJob\nspec:\n  replicas: {{ .Values.workers }}\n",
            f":3:14: not YAML: found unhashable key (while constructing a mapping); {helm}",
        )
        self.assert_not_read(
            "{{- if .Values.enabled }}\n",
            f":1:3: not YAML: expected the node content, but found '-' (while parsing a flow node); {helm}",
        )
        self.assert_not_read("local x = 1\n", f": not YAML: {jsonnet}", "job.jsonnet")
        self.assert_not_read(
            "local job = {\n  kind: 'TFJob',\n};\njob\n",
            f":2:7: not YAML: mapping values are not allowed here; {jsonnet}",
            "job.jsonnet",
        )

    def test_openshift_reference_is_no_helm_template(self):
        self.assert_not_read(
            "kind: Template\nspec: ${{WORKERS}}\n  a: b\n",
            ":3:4: not YAML: mapping values are not allowed here",
        )

    def test_documents_that_are_no_objects(self):
        what = "expected a mapping with apiVersion and kind"
        self.assert_not_read("- 1\n", f": document: {what}, found a list")
        self.assert_not_read("kind: A\n---\njust text\n", f': document 2: {what}, found "just text"')
        self.assert_not_read("spec: {}\n", ": document: kind: Required value")
        self.assert_not_read("kind: List\nitems: [{spec: 1}]\n", ": document: items[0]: kind: Required value")
        self.assert_not_read("kind: List\nitems: 3\n", ": document: items: expected a list, found 3")

    def test_documents_from_memory(self):
        self.assertEqual([d.source for d in take_apart([{"kind": "A"}], "generated")], ["generated"])
        with self.assertRaises(ManifestError) as caught:
            take_apart([{"kind": "A"}, None], "generated")
        self.assert_error(
            caught.exception,
            "generated: document 2: expected a mapping with apiVersion and kind, found nothing",
        )
