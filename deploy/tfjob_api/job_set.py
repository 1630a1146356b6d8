"""The rules of a JobSet with one Job: which ends of pods fail the Job, and what that means for the JobSet.

Source: pkg/controllers/failure_policy.go of kubernetes-sigs/jobset; of Jobs pkg/controller/job of kubernetes.
"""

from dataclasses import dataclass
from typing import FrozenSet, Optional, Tuple

# What a pod failure rule does.
FAIL_JOB, IGNORE, COUNT = "FailJob", "Ignore", "Count"
POD_FAILURE_ACTIONS = (FAIL_JOB, IGNORE, COUNT)
# Why a Job fails.
POD_FAILURE_POLICY, BACKOFF_LIMIT_EXCEEDED, DEADLINE_EXCEEDED = (
    "PodFailurePolicy",
    "BackoffLimitExceeded",
    "DeadlineExceeded",
)
# What the failure of a Job does.
FAIL_JOB_SET, RESTART_JOB_SET, RESTART_UNCOUNTED = (
    "FailJobSet",
    "RestartJobSet",
    "RestartJobSetAndIgnoreMaxRestarts",
)
JOB_FAILURE_ACTIONS = (FAIL_JOB_SET, RESTART_JOB_SET, RESTART_UNCOUNTED)
# Kubernetes' default.
BACKOFF_LIMIT = 6


@dataclass(frozen=True)
class PodFailureRule:
    """A rule of podFailurePolicy: for exit codes, or for pods that were evicted, preempted or drained."""

    action: str
    exit_codes: FrozenSet[int] = frozenset()
    # All codes but these, and but 0.
    negated: bool = False
    of_disruptions: bool = False

    def matches(self, exit_code: Optional[int], disrupted: bool) -> bool:
        """`exit_code`: None where it is not known."""
        if self.of_disruptions:
            return disrupted
        return bool(exit_code) and (exit_code in self.exit_codes) != self.negated


@dataclass(frozen=True)
class JobFailureRule:
    """A rule of a JobSet's failurePolicy."""

    action: str
    # Empty: any.
    reasons: Tuple[str, ...] = ()


@dataclass(frozen=True)
class JobSetRules:
    # The Job's.
    backoff_limit: int = BACKOFF_LIMIT
    active_deadline_seconds: Optional[int] = None
    pod_failure_rules: Tuple[PodFailureRule, ...] = ()
    # The JobSet's: how often it starts anew; None: the first failure of the Job is its own.
    max_restarts: Optional[int] = None
    job_failure_rules: Tuple[JobFailureRule, ...] = ()

    def pod_failure(self, exit_code: Optional[int], disrupted: bool) -> str:
        """What the failure of a pod does; the first rule that matches decides."""
        for rule in self.pod_failure_rules:
            if rule.matches(exit_code, disrupted):
                return rule.action
        return COUNT

    def job_failure(self, reason: str) -> str:
        """What the failure of the Job does."""
        if self.max_restarts is None:
            return FAIL_JOB_SET
        for rule in self.job_failure_rules:
            if not rule.reasons or reason in rule.reasons:
                return rule.action
        return RESTART_JOB_SET
