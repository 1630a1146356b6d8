"""Tests the meaning of a TFJob document's conditions for the job as a whole."""

import unittest

import support
from tfjob_api.conditions import find_end, find_true, read_conditions, state
from tfjob_api.status import FAILED, RUNNING, SUCCEEDED, JobStatus

assert support.REPOSITORY


def job(*conditions):
    return {"status": {"conditions": [{"type": t, "status": s} for t, s in conditions]}}


class ConditionsTest(unittest.TestCase):
    def test_the_status_is_read_as_it_was_written(self):
        status = JobStatus()
        status.update(RUNNING, "It runs.", 1_795_000_000.0)
        (found,) = read_conditions({"status": status.to_document()})
        self.assertEqual(
            (found.type, found.status, found.reason, found.message),
            (RUNNING, "True", "TFJobRunning", "It runs."),
        )
        self.assertEqual((found.last_update_time, found.last_transition_time), ("2026-11-18T11:06:40Z",) * 2)

    def test_a_job_that_nobody_has_seen(self):
        for document in ({}, {"status": None}, {"status": {"conditions": None}}):
            self.assertEqual((read_conditions(document), state(document)), ([], ""))

    def test_state_is_the_last_true_condition(self):
        self.assertEqual(state(job(("Created", "True"), (RUNNING, "True"), ("Suspended", "False"))), RUNNING)
        self.assertEqual(state(job(("Created", "False"))), "")

    def test_failed_wins(self):
        self.assertEqual(state(job((FAILED, "True"), (SUCCEEDED, "True"))), FAILED)
        self.assertEqual(find_end(read_conditions(job((SUCCEEDED, "True")))).type, SUCCEEDED)
        self.assertIsNone(find_end(read_conditions(job((RUNNING, "True"), (FAILED, "False")))))

    def test_only_what_is_true_is_found(self):
        conditions = read_conditions(job((RUNNING, "False"), (SUCCEEDED, "True")))
        self.assertIsNone(find_true(conditions, RUNNING))
        self.assertEqual(find_true(conditions, SUCCEEDED).type, SUCCEEDED)
