"""How conditions take each other's place, and the status as a document."""

import unittest

import support  # Puts deploy/ on sys.path.
from tfjob_api.status import (
    CREATED,
    FAILED,
    RESTARTING,
    RESUMED,
    RUNNING,
    SUCCEEDED,
    SUSPENDED,
    JobStatus,
    ReplicaStatus,
    reason,
)

assert support.REPOSITORY

NOON = 1_795_348_800.0  # 2026-11-22T12:00:00Z


def status_after(*types):
    status = JobStatus()
    for number, condition_type in enumerate(types):
        status.update(condition_type, f"message {number}", NOON + number)
    return status


def listed(status):
    return [("" if c.status else "!") + c.type for c in status.conditions]


class UpdateTest(unittest.TestCase):
    """The operator's rules for a new condition beside the old ones."""

    def test_first(self):
        status = status_after(CREATED)
        condition = status.condition(CREATED)
        self.assertEqual((condition.reason, condition.message), ("TFJobCreated", "message 0"))
        self.assertEqual((condition.last_update_time, condition.last_transition_time), (NOON, NOON))
        self.assertEqual(status.conditions[-1].type, "Created")

    def test_running_and_restarting_replace_each_other(self):
        self.assertEqual(listed(status_after(CREATED, RUNNING)), ["Created", "Running"])
        self.assertEqual(listed(status_after(CREATED, RUNNING, RESTARTING)), ["Created", "Restarting"])
        self.assertEqual(listed(status_after(CREATED, RUNNING, RESTARTING, RUNNING)), ["Created", "Running"])

    def test_the_end_keeps_running_as_no_longer_true(self):
        for end in (SUCCEEDED, FAILED):
            self.assertEqual(listed(status_after(CREATED, RUNNING, end)), ["Created", "!Running", end])

    def test_the_end_keeps_restarting(self):
        status = status_after(CREATED, RESTARTING, FAILED)
        self.assertEqual(listed(status), ["Created", "Restarting", "Failed"])

    def test_nothing_is_written_after_failed(self):
        status = status_after(CREATED, FAILED)
        for condition_type in (RUNNING, RESTARTING, SUCCEEDED, SUSPENDED, FAILED):
            self.assertFalse(status.update(condition_type, "late", NOON))
        self.assertEqual(listed(status), ["Created", "Failed"])
        self.assertEqual(status.condition(FAILED).message, "message 1")

    def test_failed_after_succeeded_is_written(self):
        status = status_after(CREATED, RUNNING, SUCCEEDED, FAILED)
        self.assertEqual(listed(status), ["Created", "!Running", "Succeeded", "Failed"])
        self.assertEqual(status.conditions[-1].type, "Failed")
        self.assertTrue(status.succeeded and status.failed)

    def test_same_status_and_reason_change_nothing(self):
        status = status_after(CREATED, RUNNING)
        self.assertFalse(status.update(RUNNING, "other", NOON + 60))
        self.assertEqual(status.condition(RUNNING).message, "message 1")
        self.assertEqual(status.condition(RUNNING).last_update_time, NOON + 1)

    def test_change_of_status_is_a_transition(self):
        status = status_after(CREATED, SUSPENDED)
        self.assertTrue(status.update(SUSPENDED, "on", NOON + 60, status=False, reason_name=RESUMED))
        condition = status.condition(SUSPENDED)
        self.assertEqual((condition.reason, condition.message), ("TFJobResumed", "on"))
        self.assertEqual((condition.last_update_time, condition.last_transition_time), (NOON + 60, NOON + 60))
        self.assertFalse(status.is_true(SUSPENDED))

    def test_change_of_reason_alone_is_none(self):
        status = status_after(CREATED, RUNNING)
        self.assertTrue(status.update(RUNNING, "held", NOON + 60, reason_name=SUSPENDED))
        condition = status.condition(RUNNING)
        self.assertEqual(condition.reason, "TFJobSuspended")
        self.assertEqual((condition.last_update_time, condition.last_transition_time), (NOON + 60, NOON + 1))

    def test_an_updated_condition_becomes_the_last(self):
        status = status_after(CREATED, SUSPENDED, RUNNING)
        status.update(SUSPENDED, "on", NOON + 60, status=False, reason_name=RESUMED)
        self.assertEqual(listed(status), ["Created", "Running", "!Suspended"])

    def test_reasons(self):
        names = (CREATED, RUNNING, RESTARTING, SUCCEEDED, FAILED, SUSPENDED, RESUMED)
        self.assertEqual(
            [reason(name) for name in names],
            [
                "TFJobCreated", "TFJobRunning", "TFJobRestarting", "TFJobSucceeded", "TFJobFailed",
                "TFJobSuspended", "TFJobResumed",
            ],
        )  # fmt: skip


class FinishedTest(unittest.TestCase):
    def test_only_by_its_end(self):
        for types in ((), (CREATED,), (CREATED, RUNNING), (CREATED, SUSPENDED), (CREATED, RESTARTING)):
            self.assertFalse(status_after(*types).finished, types)
        for end in (SUCCEEDED, FAILED):
            self.assertTrue(status_after(CREATED, end).finished)

    def test_an_empty_status(self):
        self.assertIsNone(JobStatus().condition(CREATED))


class DocumentTest(unittest.TestCase):
    def test_running_job(self):
        status = status_after(CREATED, RUNNING)
        status.start_time = NOON + 0.75
        status.replica_statuses = {
            "Worker": ReplicaStatus(active=2, succeeded=1, failed=1),
            "Chief": ReplicaStatus(active=1),
            "PS": ReplicaStatus(),
        }
        self.assertEqual(
            status.to_document(),
            {
                "conditions": [
                    {
                        "type": "Created",
                        "status": "True",
                        "reason": "TFJobCreated",
                        "message": "message 0",
                        "lastUpdateTime": "2026-11-22T12:00:00Z",
                        "lastTransitionTime": "2026-11-22T12:00:00Z",
                    },
                    {
                        "type": "Running",
                        "status": "True",
                        "reason": "TFJobRunning",
                        "message": "message 1",
                        "lastUpdateTime": "2026-11-22T12:00:01Z",
                        "lastTransitionTime": "2026-11-22T12:00:01Z",
                    },
                ],
                "replicaStatuses": {
                    "Chief": {"active": 1},
                    "PS": {},
                    "Worker": {"active": 2, "failed": 1, "succeeded": 1},
                },
                "startTime": "2026-11-22T12:00:00Z",
            },
        )

    def test_finished_job(self):
        status = status_after(CREATED, RUNNING, SUCCEEDED)
        status.completion_time = NOON + 3600
        document = status.to_document()
        self.assertEqual(document["completionTime"], "2026-11-22T13:00:00Z")
        self.assertEqual([c["status"] for c in document["conditions"]], ["True", "False", "True"])

    def test_counts_after_success(self):
        status = status_after(CREATED, SUCCEEDED)
        status.replica_statuses = {"PS": ReplicaStatus(active=2), "Worker": ReplicaStatus(1, 1, 1)}
        status.count_active_as_succeeded()
        expected = {"PS": {"succeeded": 2}, "Worker": {"failed": 1, "succeeded": 2}}
        self.assertEqual(status.to_document()["replicaStatuses"], expected)

    def test_counts_of_a_suspended_job(self):
        status = status_after(CREATED, SUSPENDED)
        status.replica_statuses = {"Worker": ReplicaStatus(1, 1, 1)}
        status.clear_active()
        self.assertEqual(status.to_document()["replicaStatuses"], {"Worker": {"failed": 1, "succeeded": 1}})
