"""A job, pods without processes and a clock that only moves when told to, for the operator's tests."""

import support  # Puts deploy/ on sys.path.
from tfjob_api.job_kind import TF_JOB
from tfjob_api.model import Container, ReplicaSpec, RunPolicy, TrainingJob
from tfjob_api.operator_version import NEWEST, OperatorVersion
from tfjob_local.tfjob_operator import Operator
from tfjob_local.operator_rules import Rules
from tfjob_local.pods import Phase, Pod

assert support.REPOSITORY

START = 1_795_000_000.0


def make_job(policy="Never", policies=None, run_policy=None, kind=TF_JOB, **fields):
    """make_job(Chief=1, Worker=2, policies={"Worker": "ExitCode"}); `run_policy`: of RunPolicy. What is no replica type
    is a field of the job."""
    of_type = policies or {}
    replicas = {t: fields.pop(t) for t in list(fields) if t in kind.replica_types}
    specs = {t: ReplicaSpec(t, n, of_type.get(t, policy), Container(), kind=kind) for t, n in replicas.items()}
    return TrainingJob("mnist", "default", specs, run_policy=RunPolicy(**(run_policy or {})), kind=kind, **fields)


class FakePods:
    """PodControl, with the kubelet's part played by the test."""

    def __init__(self):
        self._pods = []
        self._next_uid = 1
        # The operator's job, whose restart policies the kubelet's part follows.
        self.operator = None

    # Calls of the operator.

    def pods(self):
        return sorted(self._pods, key=lambda pod: (pod.replica_type, pod.index))

    def create(self, replica_type, index):
        name = f"mnist-{replica_type.lower()}-{index}"
        if any(pod.name == name for pod in self._pods):
            raise AssertionError(f"pod {name} exists already")
        self._pods.append(Pod(name, replica_type, index, self._next_uid))
        self._next_uid += 1

    def delete(self, pod):
        if pod.deleting:
            raise AssertionError(f"pod {pod.name} is being deleted already")
        pod.deleting = True

    # Events that the test triggers.

    def __getitem__(self, replica_name):
        found = [pod for pod in self._pods if pod.replica_name == replica_name]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} pods for {replica_name}")
        return found[0]

    def names(self):
        return [pod.replica_name for pod in self.pods()]

    def alive(self):
        """The pods that run or will run, and whose end was not requested."""
        return [p.replica_name for p in self.pods() if not p.phase.ended and not p.deleting]

    def deleting(self):
        return [pod.replica_name for pod in self.pods() if pod.deleting]

    def run(self, *names):
        for name in names or [pod.replica_name for pod in self._pods if pod.phase is Phase.PENDING]:
            self[name].phase = Phase.RUNNING

    def exit(self, name, code):
        """The container ends; the kubelet does what the pod's own restart policy says."""
        pod = self[name]
        pod.exit_code = code
        policy = self.operator.job.replica_specs[pod.replica_type].restart_policy
        if policy == "Always" or (policy == "OnFailure" and code != 0):
            pod.restart_count += 1
        else:
            pod.phase = Phase.SUCCEEDED if code == 0 else Phase.FAILED

    def lose(self, name):
        """As when its node is drained."""
        self[name].phase = Phase.FAILED
        self[name].exit_code = None

    def vanish(self, *names):
        """Nothing is left of the pods; without names: of those being deleted."""
        gone = names or self.deleting()
        self._pods = [pod for pod in self._pods if pod.replica_name not in gone]


class World:
    """One operator with its pods, clock and events."""

    def __init__(self, job, rules=None, version=NEWEST):
        self.now = START
        self.events = []
        self.pods = FakePods()
        self.operator = self.make_operator(job, rules, version)
        self.pods.operator = self.operator

    def make_operator(self, job, rules, version):
        parsed = OperatorVersion.parse(version)
        return Operator(job, self.pods, lambda: self.now, parsed, rules or Rules.strict(), self.events.append)

    @property
    def status(self):
        return self.operator.status

    def reconcile(self):
        self.operator.reconcile()

    def start(self):
        """All pods are made, and run; nothing is left to do."""
        self.reconcile()
        self.pods.run()
        self.reconcile()
        self.reconcile()
        self.events.clear()
        return self

    def exit(self, name, code):
        """The container ends, the operator sees it, and what it deletes is gone."""
        self.pods.exit(name, code)
        self.settle()

    def settle(self):
        self.reconcile()
        self.pods.vanish()

    def after(self, seconds):
        self.now += seconds
        self.reconcile()

    def conditions(self):
        """"Running", "!Running": one that is no longer true."""
        return [("" if c.status else "!") + c.type for c in self.status.conditions]

    def message(self, condition_type):
        return self.status.condition(condition_type).message

    def counts(self, replica_type):
        counts = self.status.replica_statuses[replica_type]
        return (counts.active, counts.succeeded, counts.failed)
