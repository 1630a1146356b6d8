"""The flags of Keelson's programs, as the programs themselves list them."""

import json
import subprocess
from functools import lru_cache
from typing import Dict, Mapping, NamedTuple

from tfjob_api import model

from .plan import PlanError

PROGRAMS = frozenset(model.PROGRAMS)
_SECONDS = 60


class Flag(NamedTuple):
    takes_value: bool
    # The heading that it stands under in --help.
    group: str
    # As --help names it: "INT", "TEXT:{servers,chief}".
    type: str = ""


@lru_cache(maxsize=None)
def read_flags(path: str) -> Mapping[str, Flag]:
    """By name, without dashes; none of a program that cannot be started, as its replica will say.
    PlanError: it runs, and lists none."""
    try:
        answer = subprocess.run(
            [path, "--help=json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=False,
        )
        return parse_flags(answer.stdout)
    except OSError:
        return {}
    except (subprocess.TimeoutExpired, ValueError, LookupError, TypeError) as error:
        raise PlanError(
            f"{path}: --help=json: expected a list of flags, found none; deploy/run_local.sh builds it anew"
        ) from error


def parse_flags(text: str) -> Dict[str, Flag]:
    """What stands in the answer to --help=json. ValueError, LookupError, TypeError: it is none."""
    rows = json.loads(text)["flags"]
    return {row["name"]: Flag(row["kind"] == "option", row["group"], row["type"]) for row in rows}
