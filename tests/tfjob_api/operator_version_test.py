"""Versions of the operator: how they are written, and where their behaviour changes."""

import unittest

import support  # Puts deploy/ on sys.path.
from tfjob_api.job_kind import TF_JOB
from tfjob_api.operator_version import NEWEST, OperatorVersion

assert support.REPOSITORY


class ParseTest(unittest.TestCase):
    def test_accepted(self):
        for text, expected in (("1.4", "1.4.0"), ("v1.9.4", "1.9.4"), ("0.3.0", "0.3.0"), ("2.0", "2.0.0")):
            self.assertEqual(str(OperatorVersion.parse(text)), expected)

    def test_refused(self):
        for text in ("", "1", "1.x", "latest", "1.4.0-rc.1", " 1.4", "1.4.0.0"):
            with self.assertRaises(ValueError) as raised:
                OperatorVersion.parse(text)
            self.assertEqual(str(raised.exception), f'expected a version such as 1.9.4, found "{text}"')

    def test_too_old(self):
        with self.assertRaises(ValueError) as raised:
            OperatorVersion.parse("0.2.9")
        self.assertEqual(str(raised.exception), 'expected 0.3.0 or newer, found "0.2.9"')

    def test_order(self):
        self.assertLess(OperatorVersion.parse("1.9.4"), OperatorVersion.parse("1.10.0"))


class ApiVersionTest(unittest.TestCase):
    """A manifest of an older API version was written for an older operator."""

    def test_known(self):
        expected = {"v1alpha2": "0.3.0", "v1beta1": "0.4.0", "v1beta2": "0.5.3", "v1": NEWEST}
        for api_version, version in expected.items():
            self.assertEqual(str(OperatorVersion.for_api_version(api_version)), version)

    def test_old_ones_leave_the_evaluator_out_and_clean_up_what_runs(self):
        for api_version in ("v1alpha2", "v1beta1", "v1beta2"):
            version = OperatorVersion.for_api_version(api_version)
            self.assertFalse(version.evaluator_in_cluster)
            self.assertEqual(TF_JOB.default_clean_pod_policy(version), "Running")

    def test_unknown(self):
        with self.assertRaises(ValueError) as raised:
            OperatorVersion.for_api_version("v1alpha1")
        self.assertEqual(
            str(raised.exception), 'expected one of v1alpha2, v1beta1, v1beta2, v1, found "v1alpha1"'
        )


class BehaviourTest(unittest.TestCase):
    """Each property changes at the version that its documentation names, and stays."""

    # Property -> the first version of each value.
    CHANGES = {
        "evaluator_in_cluster": {"0.3.0": False, "1.2.0": True},
        "single_replica_has_tf_config": {"0.3.0": True, "1.1.0": False},
        "services_have_all_ports": {"0.3.0": False, "1.2.0": True},
        "has_webhook": {"0.3.0": False, "1.8.0": True},
        "wants_one_evaluator": {"0.3.0": False, "0.4.0": True, "1.1.0": False},
        "knows_dynamic_workers": {"0.3.0": False, "1.1.0": True},
        "sparse_cluster_key": {"0.3.0": "sparseCluster", "1.7.0": "cluster"},
        "hosts_have_namespace": {"0.3.0": False, "0.4.0": True},
        "has_prefixed_labels": {"0.3.0": False, "1.4.0": True},
        "has_plain_labels": {"0.3.0": False, "1.0.0": True, "1.6.0": False},
        "has_tf_labels": {"0.3.0": True, "1.0.0": False},
        "has_underscore_labels": {"0.3.0": True, "0.4.0": False},
        "retries_every_code_from_128": {"0.3.0": False, "1.5.0": True},
        "remembers_restarting": {"0.3.0": False, "1.5.0": True},
        "recreates_lost_on_failure_pods": {"0.3.0": False, "1.6.0": True},
        "restarting_subject": {"0.3.0": "TFJob", "1.6.0": "job"},
        "counts_terminating_as_failed": {"0.3.0": False, "1.7.0": True},
        "names_failing_replica_type": {"0.3.0": False, "1.8.0": True},
        "cleans_up_after_limits": {"0.3.0": True, "1.7.0": False, "1.9.4": True},
        "forgets_the_deadline": {"0.3.0": False, "1.3.0": True},
        "knows_suspend": {"0.3.0": False, "1.7.0": True},
        "knows_managed_by": {"0.3.0": False, "1.9.0": True},
        "wants_dns_1035_name": {"0.3.0": False, "1.6.0": True},
        "reads_policies_beside_run_policy": {"0.3.0": True, "1.2.0": False},
        "master_has_its_name": {"0.3.0": False, "1.4.0": True},
        "waits_for_master": {"0.3.0": False, "1.4.0": True},
        "gives_up_waiting": {"0.3.0": False, "1.7.0": True},
        "knows_elastic_policy": {"0.3.0": False, "1.4.0": True},
        "one_elastic_worker_is_enough": {"0.3.0": False, "1.6.0": True},
        "has_torchrun_variables": {"0.3.0": False, "1.7.0": True},
        "always_has_nproc_per_node": {"0.3.0": False, "1.8.0": True},
        "fails_while_others_run": {"0.3.0": True, "1.5.0": False},
    }
    VERSIONS = (
        "0.3.0", "0.4.0", "0.5.3", "1.0.0", "1.1.0", "1.2.1", "1.3.0", "1.4.0", "1.5.0", "1.5.9", "1.6.0",
        "1.6.9", "1.7.0", "1.8.1", "1.9.0", "1.9.3", "1.9.4", "2.0.0",
    )  # fmt: skip

    def test_every_property_at_every_version(self):
        for name, changes in self.CHANGES.items():
            for text in self.VERSIONS:
                version = OperatorVersion.parse(text)
                since = max(v for v in map(OperatorVersion.parse, changes) if v <= version)
                self.assertEqual(getattr(version, name), changes[str(since)], f"{name}, {text}")

    def test_no_property_is_left_out(self):
        properties = {name for name, value in vars(OperatorVersion).items() if isinstance(value, property)}
        self.assertEqual(properties, set(self.CHANGES))
