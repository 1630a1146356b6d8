"""All pods of one job, as processes of this machine."""

import os
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from tfjob_api.naming import pod_name

from ..own_files import make_directory, write_new_file
from ..pods import Phase, Pod, PodControl
from .backoff import Backoff
from .history import ReplicaHistory, ReplicaRecord
from .keeper import Keeper
from .plan import LocalDirectory, PodPlan
from .pod_run import PodRun, PodTools

__all__ = ["Kubelet", "ReplicaRecord"]


class Kubelet(PodControl):
    """Single-threaded: pods change in poll(), create() and delete() alone. Use it in the main thread."""

    def __init__(
        self,
        plan: Callable[[str, int], PodPlan],
        job_name: str,
        log_dir: str,
        clock: Callable[[], float],
        backoff: Backoff,
        unblocked_signals: Iterable[int],
        keeper: Keeper,
        on_event: Callable[[str], None],
        on_init_failure: Callable[[str, str], None] = lambda replica_name, container: None,
    ):
        """`clock`: as time.monotonic. `plan`: replica type and index -> what its next pod runs.
        `on_init_failure` is called with replica and container when the container's log is complete.

        `unblocked_signals`: what the launcher blocks for itself and a child must not inherit.
        """
        self._plan = plan
        self._job_name = job_name
        self._log_dir = log_dir
        self._clock = clock
        self._backoff = backoff
        self._unblocked_signals = frozenset(unblocked_signals)
        self._keeper = keeper
        self._on_event = on_event
        self._tools = PodTools(clock, backoff, on_event, on_init_failure, self._main_runs)
        self._last_uid = 0
        # In the order in which they were created.
        self._runs: List[PodRun] = []
        # The histories of all replicas that ever existed, by type and index.
        self._histories: Dict[Tuple[str, int], ReplicaHistory] = {}
        # By the replica's name.
        self._failures_in_a_row: Dict[str, int] = {}

    # For the operator.

    def pods(self) -> Sequence[Pod]:
        return sorted((run.pod for run in self._runs), key=lambda pod: (pod.replica_type, pod.index))

    def create(self, replica_type: str, index: int) -> None:
        """Its processes start with the next poll(). PlanError: it cannot be run here. OSError: a
        directory of its volumes cannot be made."""
        self._last_uid += 1
        pod = Pod(pod_name(self._job_name, replica_type, index), replica_type, index, self._last_uid)
        plan = self._plan(replica_type, index)
        for directory in plan.directories:
            _make_directory(directory)
        history = self._history_of(pod)
        history.begin_pod()
        start_at = self._clock() + self._delay_of_new_pod(pod)
        self._runs.append(PodRun(pod, plan, history.start, self._tools, start_at))

    def delete(self, pod: Pod) -> None:
        for run in self._runs:
            if run.pod is pod:
                run.delete()
        self._drop_gone()

    # For the launcher.

    def poll(self) -> bool:
        """Polls the processes, starts those that are due, kills those beyond their grace period.

        True: a pod has changed."""
        self._keeper.check()
        changed = False
        for run in list(self._runs):
            was_ended = run.pod.phase.ended
            changed = run.step() or changed
            if run.pod.phase.ended and not was_ended and not run.pod.deleting:
                self._count_failures(run)
        return self._drop_gone() or changed

    def next_due(self) -> Optional[float]:
        """The clock's time at which poll() has something to do, beside ended processes."""
        return min((due for due in (run.next_due() for run in self._runs) if due is not None), default=None)

    def kill(self, replica_name: str) -> None:
        """SIGKILL to its processes. ValueError: none of them runs."""
        run = self._find(replica_name)
        if not run.running:
            raise ValueError(f"{replica_name} does not run at the moment")
        run.kill()

    def evict(self, replica_name: str) -> None:
        """Its pod is deleted, as by the drain of its node: it terminates, and is gone. ValueError: there is no such
        pod."""
        self._find(replica_name).delete()
        self._drop_gone()

    def records(self) -> Sequence[ReplicaRecord]:
        """Returns the record of every replica that ever existed, in the order of pods()."""
        return [history.record() for _, history in sorted(self._histories.items(), key=lambda item: item[0])]

    def end_all(self) -> None:
        """Every pod is deleted, each with its grace period. Returns at once."""
        for run in self._runs:
            run.delete()
        self._drop_gone()

    def kill_all(self) -> None:
        """Sends SIGKILL to all processes and starts no others. Returns at once."""
        self.end_all()
        for run in self._runs:
            run.kill()

    def _history_of(self, pod: Pod) -> ReplicaHistory:
        key = (pod.replica_type, pod.index)
        if key not in self._histories:
            self._histories[key] = ReplicaHistory(
                pod.replica_name, self._log_dir, self._clock, self._keeper, self._unblocked_signals
            )
        return self._histories[key]

    def _main_runs(self, replica_name: str) -> bool:
        return any(
            run.running and run.pod.replica_name == replica_name and run.pod.phase is Phase.RUNNING
            for run in self._runs
        )

    def _find(self, replica_name: str) -> PodRun:
        for run in self._runs:
            if run.pod.replica_name == replica_name:
                return run
        raise ValueError(f'there is no pod of "{replica_name}"')

    def _drop_gone(self) -> bool:
        left = [run for run in self._runs if not run.gone]
        dropped = len(left) != len(self._runs)
        self._runs = left
        return dropped

    def _count_failures(self, run: PodRun) -> None:
        name = run.pod.replica_name
        if run.pod.phase is Phase.SUCCEEDED:
            self._failures_in_a_row[name] = 0
            return
        healthy = run.seconds >= self._backoff.healthy_seconds
        self._failures_in_a_row[name] = 1 if healthy else self._failures_in_a_row.get(name, 0) + 1

    def _delay_of_new_pod(self, pod: Pod) -> float:
        """The delay after a failure; 0 without one, and if the operator's new pods start at once."""
        failures = self._failures_in_a_row.get(pod.replica_name, 0)
        if not failures or not self._backoff.delays_new_pods:
            return 0.0
        delay = self._backoff.delay(failures)
        self._on_event(f"{pod.replica_name}: new pod, back-off {delay:g} s")
        return delay


def _make_directory(directory: LocalDirectory) -> None:
    if not directory.fresh and os.path.isdir(directory.path):
        return
    root = directory.root or directory.path
    make_directory(root, directory.path, directory.fresh, 0o700 if directory.private else 0o777)
    for name, content in directory.files.items():
        mode = 0o600 if directory.private else 0o666
        write_new_file(root, os.path.join(directory.path, name), content, mode)
