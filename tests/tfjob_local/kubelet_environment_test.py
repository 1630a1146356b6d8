"""env and envFrom become what the kubelet makes of them; whatever is missing is named."""

import unittest

import kubelet_support
from tfjob_api.model import ClusterObjects, Container, EnvironmentSource, EnvironmentVariable, ObjectReference
from tfjob_local.kubelet.environment import EnvironmentBuilder, PodFacts, expand
from tfjob_local.kubelet.plan import PlanError

OBJECTS = ClusterObjects(
    config_maps={
        "settings": {"MODE": b"fast", "not a name": b"x"},
        "binary": {"zero": b"a\0b", "bytes": b"\xff"},
    },
    secrets={"db": {"password": b"s3cret"}},
)
FACTS = PodFacts(
    fields={"metadata.name": "job-ps-1", "status.podIP": "127.0.0.1"},
    labels={"tier": "gold"},
    annotations={"note": "hello"},
    cores=8,
    memory_bytes=2**30,
)


def reference(kind, name, key="", optional=False):
    return ObjectReference(kind, name, key, optional)


class EnvironmentTest(kubelet_support.WarningsTest):
    def build(self, *variables, sources=(), operators=None, **container):
        builder = EnvironmentBuilder("PS", OBJECTS, FACTS, self.warn)
        return builder.build(
            Container(environment=variables, environment_sources=sources, **container), operators or {}
        )

    def value(self, **source):
        return self.build(EnvironmentVariable("X", **source)).get("X")

    def assert_refused(self, text, *variables, **arguments):
        with self.assertRaises(PlanError) as caught:
            self.build(*variables, **arguments)
        self.assertEqual(str(caught.exception), text)

    def test_values_see_what_stands_before_them(self):
        variables = kubelet_support.env(A="1", B="$(A)-$$(A)-$(LATER)-$(", LATER="2")
        self.assertEqual(self.build(*variables), {"A": "1", "B": "1-$(A)-$(LATER)-$(", "LATER": "2"})

    def test_later_value_of_the_same_name_wins(self):
        variables = (EnvironmentVariable("A", "1"), EnvironmentVariable("A", "$(A)2"))
        self.assertEqual(self.build(*variables), {"A": "12"})

    def test_sources_come_first_and_are_seen_by_values(self):
        sources = (
            EnvironmentSource(reference("ConfigMap", "settings"), "P_"),
            EnvironmentSource(reference("Secret", "db")),
            EnvironmentSource(reference("Secret", "absent", optional=True)),
        )
        result = self.build(*kubelet_support.env(A="$(P_MODE)", password="mine"), sources=sources)
        self.assertEqual(result, {"P_MODE": "fast", "password": "mine", "A": "fast"})
        self.assertEqual(
            self.warnings, ['PS: envFrom: "P_not a name" cannot be a variable\'s name, left out']
        )

    def test_keys_of_objects(self):
        self.assertEqual(self.value(reference=reference("ConfigMap", "settings", "MODE")), "fast")
        self.assertEqual(self.value(reference=reference("Secret", "db", "password")), "s3cret")

    def test_optional_references_may_miss(self):
        self.assertIsNone(self.value(reference=reference("ConfigMap", "absent", "k", optional=True)))
        self.assertIsNone(self.value(reference=reference("ConfigMap", "settings", "k", optional=True)))

    def test_missing_objects_and_keys_are_named(self):
        self.assert_refused(
            'PS: env X: the manifest\'s files: no ConfigMap "absent", expected one of binary, settings',
            EnvironmentVariable("X", reference=reference("ConfigMap", "absent", "k")),
        )
        self.assert_refused(
            'PS: env X: Secret "db": no key "user", expected one of password',
            EnvironmentVariable("X", reference=reference("Secret", "db", "user")),
        )
        self.assert_refused(
            'PS: envFrom: the manifest\'s files: no Secret "absent", expected one of db',
            sources=(EnvironmentSource(reference("Secret", "absent")),),
        )

    def test_missing_object_where_there_is_none_of_its_kind(self):
        builder = EnvironmentBuilder("PS", ClusterObjects(), FACTS, self.warn)
        variable = EnvironmentVariable("X", reference=reference("Secret", "s", "k"))
        with self.assertRaises(PlanError) as caught:
            builder.build(Container(environment=(variable,)))
        self.assertEqual(
            str(caught.exception), 'PS: env X: the manifest\'s files: no Secret "s", there is none at all'
        )

    def test_content_that_is_no_text(self):
        self.assert_refused(
            "PS: env X: expected text, found a zero byte",
            EnvironmentVariable("X", reference=reference("ConfigMap", "binary", "zero")),
        )
        self.assert_refused(
            "PS: env X: expected UTF-8 text, found other bytes",
            EnvironmentVariable("X", reference=reference("ConfigMap", "binary", "bytes")),
        )

    def test_fields(self):
        self.assertEqual(self.value(field_path="metadata.name"), "job-ps-1")
        self.assertEqual(self.value(field_path="metadata.labels['tier']"), "gold")
        self.assertEqual(self.value(field_path="metadata.annotations['note']"), "hello")
        self.assertEqual(self.value(field_path="metadata.labels['absent']"), "")

    def test_unknown_field(self):
        self.assert_refused(
            "PS: env X: fieldPath: expected metadata.name, status.podIP, metadata.labels['KEY'], "
            "metadata.annotations['KEY'], found \"status.phase\"",
            EnvironmentVariable("X", field_path="status.phase"),
        )

    def test_resources(self):
        def resource(name, **container):
            return self.build(EnvironmentVariable("X", resource=name), **container)["X"]

        limits, requests = {"cpu": "1500m", "memory": "1Gi"}, {"cpu": "250m"}
        self.assertEqual(resource("limits.cpu", limits=limits), "2")
        self.assertEqual(resource("limits.memory", limits=limits), str(2**30))
        self.assertEqual(resource("requests.cpu", limits=limits, requests=requests), "1")
        self.assertEqual(resource("requests.memory", limits=limits, requests=requests), str(2**30))
        # Without limits: those of the node.
        self.assertEqual(resource("limits.cpu"), "8")
        self.assertEqual(resource("limits.memory"), str(2**30))
        self.assertEqual(resource("requests.cpu"), "0")

    def test_bad_resources(self):
        self.assert_refused(
            "PS: env X: resource: expected limits.cpu, limits.memory, requests.cpu, requests.memory, "
            'found "cpu"',
            EnvironmentVariable("X", resource="cpu"),
        )

    def test_tf_config_comes_last(self):
        variables = kubelet_support.env(TF_CONFIG="mine", A="$(TF_CONFIG)")
        self.assertEqual(self.build(*variables, operators={"TF_CONFIG": "{}"}), {"TF_CONFIG": "{}", "A": "mine"})
        self.assertEqual(self.build(*variables)["TF_CONFIG"], "mine")


class ExpandTest(unittest.TestCase):
    def test_as_kubernetes_does(self):
        environment = {"A": "1", "B.C-D": "2", "S": "$(A)"}
        for text, expected in (
            ("$(A)", "1"),
            ("x$(A)y$(B.C-D)", "x1y2"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$A $ $(A", "$A $ $(A"),
            ("$(ABSENT)", "$(ABSENT)"),
            ("$(S)", "$(A)"),
        ):
            self.assertEqual(expand(text, environment), expected, text)
