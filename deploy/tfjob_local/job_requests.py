"""The requests that other terminals may make of a running job."""

from typing import Any, Callable, Dict, Mapping

from tfjob_api.model import TrainingJob

from .addresses import AddressesError
from .control import Reply
from .job_operator import JobOperator
from .kubelet.kubelet import Kubelet
from .kubelet.plan import PlanError


class RequestError(Exception):
    """The request is refused; the text is one line."""


class JobRequests:
    """handle() answers one request; it never raises."""

    def __init__(
        self,
        operator: JobOperator,
        kubelet: Kubelet,
        check: Callable[[TrainingJob], None],
        servers_are_keelsons: Callable[[], bool],
        view: Callable[[], Mapping[str, Any]],
        stop: Callable[[], None],
    ):
        """`check`: raises PlanError or AddressesError when a replica of that job could not be started."""
        self._operator = operator
        self._kubelet = kubelet
        self._check = check
        self._servers_are_keelsons = servers_are_keelsons
        self._view = view
        self._stop = stop
        self._commands: Dict[str, Callable[[Mapping[str, Any]], Reply]] = {
            "status": lambda request: {"view": dict(self._view())},
            "scale": self._scale,
            "kill": self._kill,
            "delete": self._delete,
            "suspend": lambda request: self._suspend(),
            "resume": lambda request: self._resume(),
            "stop": lambda request: self._end(),
        }

    def handle(self, request: Mapping[str, Any]) -> Reply:
        command = self._commands.get(str(request.get("command")))
        try:
            if command is None:
                expected = ", ".join(self._commands)
                raise RequestError(f"command: expected one of {expected}; found {request.get('command')!r}")
            return {"ok": True, **command(request)}
        except (RequestError, ValueError, PlanError, AddressesError) as error:
            return {"ok": False, "error": str(error)}

    def _scale(self, request: Mapping[str, Any]) -> Reply:
        wanted = request.get("replicas")
        if not isinstance(wanted, dict) or not wanted:
            raise RequestError('replicas: expected numbers by role, such as {"worker": 4}')
        numbers = {self._replica_type(role): _count(role, number) for role, number in wanted.items()}
        self._check_servers(numbers)
        self._check(self._operator.job.with_replicas(numbers))
        self._operator.scale(numbers)
        counts = [f"{t.lower()} {self._operator.job.replicas(t)}" for t in numbers]
        return {"text": f"job {self._operator.job.name} scaled: {', '.join(counts)}"}

    def _check_servers(self, numbers: Mapping[str, int]) -> None:
        job = self._operator.job
        wanted = numbers.get("PS", job.replicas("PS"))
        if wanted == job.replicas("PS") or job.run_policy.suspend or not self._servers_are_keelsons():
            return
        raise RequestError(
            f"ps: expected {job.replicas('PS')}, as each server holds its part of the model while the job runs, "
            f"found {wanted}; suspend the job, scale, and resume"
        )

    def _kill(self, request: Mapping[str, Any]) -> Reply:
        name = self._replica(request)
        self._kubelet.kill(name)
        return {"text": f"{name} killed"}

    def _delete(self, request: Mapping[str, Any]) -> Reply:
        name = self._replica(request)
        self._kubelet.evict(name)
        return {"text": f"{name} is being deleted, as by the drain of its node"}

    def _suspend(self) -> Reply:
        self._operator.suspend()
        return {"text": f"job {self._operator.job.name} suspended"}

    def _resume(self) -> Reply:
        self._operator.resume()
        return {"text": f"job {self._operator.job.name} resumed"}

    def _end(self) -> Reply:
        self._stop()
        return {"text": f"job {self._operator.job.name} is being stopped"}

    def _replica_type(self, role: str) -> str:
        for replica_type in self._operator.job.replica_specs:
            if replica_type.lower() == role.lower():
                return replica_type
        known = ", ".join(t.lower() for t in self._operator.job.replica_specs)
        raise RequestError(f'no replica type "{role}"; expected one of {known}')

    def _replica(self, request: Mapping[str, Any]) -> str:
        name = str(request.get("replica"))
        names = [pod.replica_name for pod in self._kubelet.pods()]
        if name not in names:
            known = f"expected one of {', '.join(names)}" if names else "there are none now"
            raise RequestError(f'no replica "{name}"; {known}')
        return name


def _count(role: str, number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise RequestError(f"{role}: expected a whole number >= 0, found {number!r}")
    return number
