"""The replicas' service names in arguments and values -> their local addresses.

On a cluster "mnist-ps-0.default.svc:2222" is a Service; here nothing resolves that name. A pattern,
"mnist-ps-{0..3}.default.svc:2222", becomes a list with commas, as the programs read it. Where each replica has a host
of its own, a name without a port and one with any port are translated, too.
"""

import re
from typing import Callable, List, Optional

from tfjob_api.model import TrainingJob
from tfjob_api.naming import Addresses, host_patterns

from .plan import PlanError


class ServiceNames:
    def __init__(self, job: TrainingJob, addresses: Addresses, warn: Callable[[str], None]):
        self._job = job
        self._addresses = addresses
        self._warn = warn
        self._types = {replica_type.lower(): replica_type for replica_type in job.replica_specs}
        host, service = host_patterns(job)
        name = rf"{host}(?:(\d+)|\{{(\d+)\.\.(\d+)\}}){service}"
        # With or without .NAMESPACE[.svc[.DOMAIN]]; a name of another job may end like ours.
        self._with_port = re.compile(
            rf"(?<![\w.-]){name}(?:\.[a-z0-9-]+(?:\.svc(?:\.[a-z0-9.-]+)?)?)?:(\d+)(?!\d)"
        )
        # A word of its own: in a path it is a file's or a directory's name.
        domain = rf"(?:\.{re.escape(job.namespace)}(?:\.svc(?:\.[a-z0-9.-]+)?)?)?"
        self._alone = re.compile(rf"(?<![\w./-]){name}{domain}(?![\w./:-])")

    def translate(self, text: str, where: str) -> str:
        """PlanError: a replica that the job has not; `where` ("Worker: args") begins the text."""

        def replace(match: "re.Match[str]") -> str:
            name, single, first, last, *port = match.groups()
            if single is not None:
                first = last = single
            number = int(port[0]) if port else None
            return self._find(match.group(0), name, int(first), int(last), number, where)

        text = self._with_port.sub(replace, text)
        return self._alone.sub(replace, text) if self._job.kind.wants_own_hosts else text

    def _find(self, text: str, name: str, first: int, last: int, port: Optional[int], where: str) -> str:
        replica_type = self._types.get(name, "")
        count = self._job.replicas(replica_type)
        if last < first:
            raise PlanError(f"{where}: {text}: expected a range that rises, found {first}..{last}")
        if last >= count:
            found = "none" if count == 0 else f"{name}-0" if count == 1 else f"{name}-0 to {name}-{count - 1}"
            raise PlanError(f'{where}: {text}: no replica "{name}-{last}", the job has {found}')
        addresses: List[str] = list(self._addresses[replica_type][first : last + 1])
        if port != self._job.replica_specs[replica_type].port:
            if not self._job.kind.wants_own_hosts:
                own = self._job.kind.port_name
                self._warn(f"{where}: {text}: only the port named {own} has a local address, left as it is")
                return text
            end = "" if port is None else f":{port}"
            addresses = [address.rpartition(":")[0] + end for address in addresses]
        return ",".join(addresses)
