"""The JobSet of a runtime: its rules and the Job's, and what of it is refused."""

import unittest

from support import ManifestTest
from tfjob_api.job_set import JobFailureRule, JobSetRules, PodFailureRule
from trainjob_text import documents, runtime, train_job

JOB_SET = "ClusterTrainingRuntime torch: spec.template.spec"
REPLICATED = f"{JOB_SET}.replicatedJobs[0]"
JOB = f"{REPLICATED}.template.spec"
NEVER = "restartPolicy: Never"
NODE = "- name: node\n          template"
POD_RULES = """\
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes: {containerName: node, operator: In, values: [1, 2]}
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget, status: "True"}]
"""


def manifest(**parts):
    return documents(runtime(**parts), train_job())


class RulesTest(ManifestTest):
    def rules(self, **parts):
        return self.read(manifest(**parts)).job.job_set

    def test_defaults(self):
        self.assertEqual(self.rules(), JobSetRules(backoff_limit=6))
        self.assertEqual(self.read(manifest()).job.replica_specs["Node"].restart_policy, "OnFailure")

    def test_of_the_job(self):
        rules = self.rules(job=f"backoffLimit: 3\nactiveDeadlineSeconds: 60\n{POD_RULES}", pod=NEVER)
        self.assertEqual((rules.backoff_limit, rules.active_deadline_seconds), (3, 60))
        expected = (PodFailureRule("FailJob", frozenset({1, 2})), PodFailureRule("Ignore", of_disruptions=True))
        self.assertEqual(rules.pod_failure_rules, expected)

    def test_of_the_job_set(self):
        policy = "failurePolicy:\n  maxRestarts: 2\n  restartStrategy: BlockingRecreate\n  rules:\n"
        policy += "    - {action: FailJobSet, onJobFailureReasons: [PodFailurePolicy], targetReplicatedJobs: [node]}"
        rules = self.rules(job_set=policy)
        self.assertEqual(rules.max_restarts, 2)
        self.assertEqual(rules.job_failure_rules, (JobFailureRule("FailJobSet", ("PodFailurePolicy",)),))
        self.assertEqual(self.rules(job_set="failurePolicy: {}").max_restarts, 0)

    def test_the_first_rule_that_matches_decides(self):
        rules = JobSetRules(
            pod_failure_rules=(
                PodFailureRule("FailJob", frozenset({1, 2})),
                PodFailureRule("Ignore", frozenset({42, 1}), negated=True),
                PodFailureRule("Ignore", of_disruptions=True),
            )
        )
        for exit_code, disrupted, expected in (
            (2, False, "FailJob"),
            (3, False, "Ignore"),
            (42, False, "Count"),
            (None, True, "Ignore"),
            (None, False, "Count"),
        ):
            self.assertEqual(rules.pod_failure(exit_code, disrupted), expected, (exit_code, disrupted))

    def test_what_the_failure_of_the_job_does(self):
        self.assertEqual(JobSetRules().job_failure("BackoffLimitExceeded"), "FailJobSet")
        rules = JobSetRules(max_restarts=1, job_failure_rules=(JobFailureRule("FailJobSet", ("PodFailurePolicy",)),))
        self.assertEqual(rules.job_failure("PodFailurePolicy"), "FailJobSet")
        self.assertEqual(rules.job_failure("BackoffLimitExceeded"), "RestartJobSet")


class RefusedTest(ManifestTest):
    def test_other_jobs(self):
        text = manifest().replace(NODE, f"- {{name: ps}}\n        {NODE}")
        what = "expected one job, node, as a TrainJob's nodes are all that runs here, found ps, node"
        self.assert_refused(text, f"{JOB_SET}.replicatedJobs: {what}")
        text = manifest().replace(NODE, "- name: node\n          dependsOn: [{name: x}]\n          template")
        what = "expected it to be left out, found a list: there is no other job"
        self.assert_refused(text, f"{REPLICATED}.dependsOn: {what}")

    def test_a_job_that_is_not_the_trainers(self):
        label = "trainer.kubeflow.org/trainjob-ancestor-step: trainer"
        what = f"expected {label}, without which nothing of a TrainJob counts, found"
        where = f"{REPLICATED}.template.metadata.labels"
        self.assert_refused(manifest().replace(label, "a: b"), f"{where}: {what} nothing")
        self.assert_refused(manifest().replace(label, label.replace(": trainer", ": node")), f'{where}: {what} "node"')

    def test_numbers(self):
        text = manifest().replace(NODE, "- name: node\n          replicas: 2\n          template")
        self.assert_refused(text, f"{REPLICATED}.replicas: expected 1, as Trainer does, found 2")

    def test_the_job(self):
        for job, pod, expected in (
            ("completionMode: NonIndexed", "", f'{JOB}.completionMode: expected one of Indexed, found "NonIndexed"'),
            ("", "restartPolicy: Always",
             f'{JOB}.template.spec.restartPolicy: expected one of Never, OnFailure, found "Always"'),
            ("backoffLimitPerIndex: 1", "", f"{JOB}.backoffLimitPerIndex: expected it to be left out, found 1: the launcher "
             "does not do what it says"),
            ("successPolicy: {rules: [{succeededCount: 1}]}", "", f"{JOB}.successPolicy: expected it to be left out, found a "
             "mapping: the launcher does not do what it says"),
            ("backoffLimit: -1", "", f"{JOB}.backoffLimit: expected a whole number >= 0, found -1"),
            (POD_RULES, "", f"{JOB}.podFailurePolicy: it needs the pods' restartPolicy Never, found OnFailure"),
        ):  # fmt: skip
            self.assert_refused(manifest(job=job, pod=pod), expected)

    def test_rules_for_pods(self):
        where = f"{JOB}.podFailurePolicy.rules[0]"
        for rule, expected in (
            ("{action: FailIndex, onPodConditions: []}", '.action: expected one of FailJob, Ignore, Count, found "FailIndex"'),
            ("{onPodConditions: []}", ".action: Required value"),
            ("{action: Count}", ": expected one of onExitCodes, onPodConditions, found none"),
            ("{action: Count, onExitCodes: {}, onPodConditions: []}",
             ": expected one of onExitCodes, onPodConditions, found both"),
            ("{action: Count, onExitCodes: {operator: Is, values: [1]}}",
             '.onExitCodes.operator: expected one of In, NotIn, found "Is"'),
            ("{action: Count, onExitCodes: {operator: In, values: [0]}}",
             ".onExitCodes.values: expected exit codes of failures, found a list"),
        ):  # fmt: skip
            self.assert_refused(manifest(job=f"podFailurePolicy: {{rules: [{rule}]}}", pod=NEVER), where + expected)

    def test_rules_for_the_job(self):
        where = f"{JOB_SET}.failurePolicy"
        for policy, expected in (
            ("restartStrategy: InPlace", '.restartStrategy: expected one of Recreate, BlockingRecreate, found "InPlace"'),
            ("rules: [{action: RecreateJob}]", ".rules[0].action: expected one of FailJobSet, RestartJobSet, "
             'RestartJobSetAndIgnoreMaxRestarts, found "RecreateJob"'),
            ("rules: [{action: FailJobSet, targetReplicatedJobs: [ps]}]",
             '.rules[0].targetReplicatedJobs: expected one of node, found "ps"'),
            ("rules: [{action: FailJobSet, onJobFailureReasons: [Bad]}]", ".rules[0].onJobFailureReasons: expected one of "
             'BackoffLimitExceeded, DeadlineExceeded, PodFailurePolicy, FailedIndexes, MaxFailedIndexesExceeded, found "Bad"'),
        ):  # fmt: skip
            self.assert_refused(manifest(job_set=f"failurePolicy: {{{policy}}}"), where + expected)

    def test_success(self):
        text = manifest(job_set="successPolicy: {operator: All, targetReplicatedJobs: [chief]}")
        where = f"{JOB_SET}.successPolicy.targetReplicatedJobs"
        self.assert_refused(text, f'{where}: expected one of node, found "chief"')


class WarningsTest(ManifestTest):
    def test_what_has_no_meaning_here(self):
        rules = "podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: ConfigIssue}]}, "
        rules += "{action: Ignore, onExitCodes: {containerName: sidecar, operator: In, values: [1]}}]}"
        where = f"{JOB}.podFailurePolicy.rules"
        text = manifest(job=rules, pod=NEVER, job_set="coordinator: {replicatedJob: node}")
        self.assert_warnings(
            text,
            f"{JOB_SET}.coordinator: ignored locally",
            f"{where}[0].onPodConditions[0]: no pod here has the condition ConfigIssue, ignored locally",
            f"{where}[1].onExitCodes.containerName: the container sidecar does not run here, ignored locally",
        )
        self.assertEqual(self.read(text).job.job_set.pod_failure_rules, ())

    def test_unknown_fields(self):
        self.assert_warnings(
            manifest(job="backofflimit: 3", job_set="replicas: 1"),
            f"{JOB_SET}.replicas: unknown field, the API server drops it",
            f"{JOB}.backofflimit: unknown field, the API server drops it (it knows backoffLimit)",
        )


if __name__ == "__main__":
    unittest.main()
