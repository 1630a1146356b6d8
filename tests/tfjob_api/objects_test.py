"""ConfigMaps, Secrets, claims and the rest beside the job."""

import json

from support import ManifestTest, manifest, replica
from tfjob_api.fields import describe
from tfjob_api.model import ObjectReference
from tfjob_api.reader import read_manifest

JOB = manifest(replica("Worker"))


def beside(*documents, namespace=""):
    job = JOB.replace("name: job", f"name: job\n  namespace: {namespace}", 1) if namespace else JOB
    return "---\n".join((*documents, job))


class ContentTest(ManifestTest):
    def objects(self, *documents, **options):
        return self.read(beside(*documents, **options)).objects

    def test_config_map(self):
        objects = self.objects(
            'kind: ConfigMap\nmetadata: {name: c}\ndata: {a: text, b: "lines\\n"}\nbinaryData: {d: AAE=}\n'
        )
        self.assertEqual(objects.config_maps, {"c": {"a": b"text", "b": b"lines\n", "d": b"\x00\x01"}})
        self.assertEqual(objects.lookup(ObjectReference("ConfigMap", "c", "a"))["a"], b"text")
        self.assertIsNone(objects.lookup(ObjectReference("Secret", "c", "a")))

    def test_secret(self):
        objects = self.objects(
            "kind: Secret\nmetadata: {name: s}\ndata: {a: c2VjcmV0, b: 'eA\n  =='}\nstringData: {a: plain}\n"
        )
        self.assertEqual(objects.secrets, {"s": {"a": b"plain", "b": b"x"}})

    def test_empty_ones(self):
        objects = self.objects(
            "kind: ConfigMap\nmetadata: {name: c}\ndata:\n", "kind: Secret\nmetadata: {name: s}\n"
        )
        self.assertEqual((objects.config_maps, objects.secrets), ({"c": {}}, {"s": {}}))

    def test_keys(self):
        for key in ("a.b-c_D9", ".a", "-", "a..b", "x" * 253):
            objects = self.objects(f"kind: ConfigMap\nmetadata: {{name: c}}\ndata: {{{key}: v}}\n")
            self.assertEqual(objects.config_maps, {"c": {key: b"v"}})

    def test_claims(self):
        objects = self.objects("kind: PersistentVolumeClaim\nmetadata: {name: model}\n")
        self.assertEqual((objects.claims, objects.others), (("model",), ()))

    def test_others(self):
        service = "kind: Service\nmetadata: {name: dashboard}\n"
        role = "kind: Role\nmetadata: {name: r}\n"
        self.assertEqual(self.objects(service, role).others, ("Service dashboard", "Role r"))
        self.assert_warnings(beside(service, role), "ignored locally: Service dashboard, Role r")

    def test_what_concerns_a_cluster_alone_is_no_news(self):
        account = "kind: ServiceAccount\nmetadata: {name: a}\n"
        policy = "kind: NetworkPolicy\nmetadata: {name: p}\n"
        self.assertEqual(self.objects(account, policy).others, ())
        self.assert_warnings(beside(account, policy))

    def test_from_another_file(self):
        path = self.write("config.yaml", "kind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n")
        objects = read_manifest([self.write("job.yaml", JOB), path]).objects
        self.assertEqual(objects.config_maps, {"c": {"a": b"b"}})

    def test_namespaces(self):
        """Without one, an object goes where the job goes."""
        config = "kind: ConfigMap\nmetadata: {{name: {0}, namespace: {1}}}\n"
        objects = self.objects(
            config.format("a", "team"),
            config.format("b", "other"),
            "kind: ConfigMap\nmetadata: {name: c}\n",
            namespace="team",
        )
        self.assertEqual(list(objects.config_maps), ["a", "c"])
        self.assertEqual(objects.others, ("ConfigMap b (namespace other)",))


class RefusedTest(ManifestTest):
    def refuse(self, document, expected):
        self.assert_refused(beside(document), expected)

    def test_names(self):
        for kind in ("ConfigMap", "Secret", "PersistentVolumeClaim"):
            self.refuse(f"kind: {kind}\n", f"{kind}: metadata.name: Required value")
        self.refuse("kind: ConfigMap\nmetadata: 3\n", "ConfigMap: metadata: expected a mapping, found 3")
        self.refuse(
            "kind: Service\nmetadata: {name: s, namespace: 3}\n",
            "Service s: metadata.namespace: expected a string, found 3; quote it",
        )

    def test_keys_that_are_no_names_of_files(self):
        rule = (
            "expected a key of letters, digits, '-', '_' and '.', at most 253, not '.', no '..' at the start, "
        )
        for kind, fields in (("ConfigMap", ("data", "binaryData")), ("Secret", ("data", "stringData"))):
            for field in fields:
                for key in ("../../x", "/etc/x", "a/b", ".", "..", "..a", "", "a b", "a\n", "ü", "x" * 254):
                    with self.subTest(kind, field=field, key=key):
                        self.refuse(
                            f"kind: {kind}\nmetadata: {{name: o}}\n{field}: {{{json.dumps(key)}: eA==}}\n",
                            f"{kind} o: {field}: {rule}found {describe(key)}",
                        )

    def test_two_of_one_name(self):
        config = "kind: ConfigMap\nmetadata: {name: c}\n"
        self.assert_refused(beside(config, config), "ConfigMap c: found twice")

    def test_data_of_config_maps(self):
        config = "kind: ConfigMap\nmetadata: {name: c}\n"
        self.refuse(config + "data: {n: 5}\n", "ConfigMap c: data.n: expected a string, found 5; quote it")
        self.refuse(config + "data: [a]\n", "ConfigMap c: data: expected a mapping, found a list")
        self.refuse(
            config + "binaryData: {n: '%%'}\n",
            "ConfigMap c: binaryData.n: expected base64 (its text is not shown)",
        )
        self.refuse(
            config + "data: {n: a}\nbinaryData: {n: AAE=}\n",
            "ConfigMap c: binaryData.n: the key stands in data too",
        )

    def test_data_of_secrets_is_not_shown(self):
        secret = "kind: Secret\nmetadata: {name: s}\n"
        self.refuse(
            secret + "data: {password: hunter2!}\n",
            "Secret s: data.password: expected base64 (its text is not shown)",
        )
        for key in ("data", "stringData"):
            self.refuse(
                f"{secret}{key}: {{password: 12345}}\n",
                f"Secret s: {key}.password: expected a string; quote it",
            )
