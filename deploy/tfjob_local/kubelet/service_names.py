"""The replicas' service names in arguments and values -> their local addresses.

On a cluster "mnist-ps-0.default.svc:2222" is a Service; here nothing resolves that name. A pattern,
"mnist-ps-{0..3}.default.svc:2222", becomes a list with commas, as the programs read it.
"""

import re
from typing import Callable

from tfjob_api.model import TFJob
from tfjob_api.naming import TYPE_PATTERN, Addresses

from .plan import PlanError


class ServiceNames:
    def __init__(self, job: TFJob, addresses: Addresses, warn: Callable[[str], None]):
        self._job = job
        self._addresses = addresses
        self._warn = warn
        self._types = {replica_type.lower(): replica_type for replica_type in job.replica_specs}
        # With or without .NAMESPACE[.svc[.DOMAIN]]; a name of another job may end like ours.
        self._pattern = re.compile(
            rf"(?<![\w.-]){re.escape(job.name)}-({TYPE_PATTERN})-"
            r"(?:(\d+)|\{(\d+)\.\.(\d+)\})(?:\.[a-z0-9-]+(?:\.svc(?:\.[a-z0-9.-]+)?)?)?:(\d+)(?!\d)"
        )

    def translate(self, text: str, where: str) -> str:
        """PlanError: a replica that the job has not; `where` ("Worker: args") begins the text."""

        def replace(match: "re.Match[str]") -> str:
            name, single, first, last, port = match.groups()
            if single is not None:
                first = last = single
            return self._find(match.group(0), name, int(first), int(last), int(port), where)

        return self._pattern.sub(replace, text)

    def _find(self, text: str, name: str, first: int, last: int, port: int, where: str) -> str:
        replica_type = self._types.get(name, "")
        count = self._job.replicas(replica_type)
        if last < first:
            raise PlanError(f"{where}: {text}: expected a range that rises, found {first}..{last}")
        if last >= count:
            found = "none" if count == 0 else f"{name}-0" if count == 1 else f"{name}-0 to {name}-{count - 1}"
            raise PlanError(f'{where}: {text}: no replica "{name}-{last}", the job has {found}')
        if port != self._job.replica_specs[replica_type].port:
            self._warn(f"{where}: {text}: only the port named tfjob-port has a local address, left as it is")
            return text
        return ",".join(self._addresses[replica_type][first : last + 1])
