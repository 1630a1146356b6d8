"""Reports the addresses of the evaluators' pages once they answer."""

import http.client
import json
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Mapping

from .addresses import HOST

_RETRY_SECONDS = 0.5
# How long the calling loop may wait for a page that accepts a connection but does not answer.
_ANSWER_SECONDS = 0.25


@dataclass(eq=False)
class DashboardLinks:
    """Call update() often; each page is reported once, and not again when its evaluator comes back."""

    # Replica name -> port; may grow.
    _ports: Mapping[str, int]
    # The names of the replicas that run.
    _running: Callable[[], Iterable[str]]
    _tell: Callable[[str], None]
    _clock: Callable[[], float]
    # Whether a page answers at this port.
    _answers: Callable[[int], bool]
    # Replica name -> URL.
    _told: Dict[str, str] = field(init=False, default_factory=dict)
    _asked_at: float = field(init=False, default=float("-inf"))

    def urls(self) -> List[str]:
        """The URLs of the pages that have answered and whose evaluators run."""
        return [self._told[name] for name in self._running() if name in self._told]

    def update(self) -> None:
        if len(self._told) == len(self._ports) or self._clock() - self._asked_at < _RETRY_SECONDS:
            return
        for name in self._running():
            port = self._ports.get(name)
            if port is not None and name not in self._told and self._answers(port):
                self._told[name] = f"http://{HOST}:{port}/"
                whose = f" ({name})" if len(self._ports) > 1 else ""
                self._tell(f"dashboard: {self._told[name]}{whose}")
        self._asked_at = self._clock()


def page_answers(port: int) -> bool:
    """Whether a Keelson dashboard, and not another program, answers there."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/api/v1/runs")
        response = connection.getresponse()
        if response.status != 200:
            return False
        answer = json.loads(response.read())
        return isinstance(answer, dict) and "runs" in answer
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()
