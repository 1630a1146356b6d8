"""Reports the addresses of the evaluators' pages once they answer."""

import http.client
import json
from typing import Callable, Dict, Iterable, List, Mapping

from .addresses import HOST

_RETRY_SECONDS = 0.5
# How long the calling loop may wait for a page that accepts a connection but does not answer.
_ANSWER_SECONDS = 0.25


class DashboardLinks:
    """Call update() often; each page is reported once, and not again when its evaluator comes back."""

    def __init__(
        self,
        ports: Mapping[str, int],
        running: Callable[[], Iterable[str]],
        tell: Callable[[str], None],
        clock: Callable[[], float],
        answers: Callable[[int], bool],
    ):
        """`ports`: replica name -> port; may grow. `running`: names of the replicas that run.
        `answers`: does a page answer at this port?"""
        self._ports = ports
        self._running = running
        self._tell = tell
        self._clock = clock
        self._answers = answers
        # Replica name -> URL.
        self._told: Dict[str, str] = {}
        self._asked_at = float("-inf")

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
