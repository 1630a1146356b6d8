"""Which exit codes are retried, under each generation of the operator."""

import unittest

import support  # Puts deploy/ on sys.path.
from tfjob_api.operator_version import OperatorVersion
from tfjob_local.operator_rules import Verdict, is_retryable, judge
from tfjob_local.pods import Phase, Pod

assert support.REPOSITORY

OLD, FIRST_NEW, NEWEST = (OperatorVersion.parse(text) for text in ("1.4.0", "1.5.0", "1.9.4"))
CODES = (1, 2, 126, 127, 128, 130, 134, 137, 138, 139, 143, 255)


def failed_pod(exit_code):
    return Pod("mnist-worker-0", "Worker", 0, 1, Phase.FAILED, exit_code)


class RetryableTest(unittest.TestCase):
    """Up to 1.4 four codes, from 1.5 every code >= 128."""

    def retried(self, version):
        return {code for code in CODES if is_retryable(code, version)}

    def test_up_to_1_4(self):
        self.assertEqual(self.retried(OLD), {130, 137, 138, 143})

    def test_since_1_5(self):
        self.assertEqual(self.retried(FIRST_NEW), {128, 130, 134, 137, 138, 139, 143, 255})
        self.assertEqual(self.retried(NEWEST), self.retried(FIRST_NEW))

    def test_unknown_code(self):
        self.assertFalse(is_retryable(None, OLD))
        self.assertTrue(is_retryable(None, FIRST_NEW))


class JudgeTest(unittest.TestCase):
    """Restart policy and generation decide what becomes of a failed pod."""

    def test_exit_code_follows_the_code(self):
        for version in (OLD, NEWEST):
            for code in CODES:
                expected = Verdict.RESTART if is_retryable(code, version) else Verdict.FAIL
                self.assertIs(judge(failed_pod(code), "ExitCode", version), expected, f"{version}, {code}")

    def test_never_fails_whatever_the_code(self):
        for version in (OLD, NEWEST):
            for code in (*CODES, None):
                self.assertIs(judge(failed_pod(code), "Never", version), Verdict.FAIL, f"{version}, {code}")

    def test_lost_pod_of_a_policy_that_restarts_in_place(self):
        verdicts = {"1.5.0": Verdict.FAIL, "1.6.0": Verdict.RESTART, "1.9.4": Verdict.RESTART}
        for policy in ("OnFailure", "Always"):
            for text, expected in verdicts.items():
                version = OperatorVersion.parse(text)
                self.assertIs(judge(failed_pod(None), policy, version), expected, f"{policy}, {text}")

    def test_pod_that_has_not_failed_is_left_alone(self):
        for phase in (Phase.PENDING, Phase.RUNNING, Phase.SUCCEEDED):
            for policy in ("Always", "OnFailure", "Never", "ExitCode"):
                pod = Pod("mnist-worker-0", "Worker", 0, 1, phase, 137)
                self.assertIs(judge(pod, policy, NEWEST), Verdict.NONE, f"{phase}, {policy}")
