"""Divides the tests of a build into batches for ctest, one line each: how many programs, and a regular expression of
their names.

usage: test_batches.py BUILD_DIR SIZE [CTEST_FLAG...]    SIZE: programs of a batch; 0: all in one

The last batch has those with the highest cost (their time limit), each batch its most expensive ones first: if the time
is over before all of them ran, few are missing.
"""

import json
import re
import subprocess
import sys
from typing import Any, Dict, List, Sequence, Tuple


def costs_of(listing: Dict[str, Any]) -> List[Tuple[float, str]]:
    """(cost, name) of the tests in what ctest --show-only=json-v1 prints, the highest cost first."""
    costs = []
    for test in listing["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        costs.append((float(properties.get("COST", 0)), str(test["name"])))
    return sorted(costs, key=lambda cost: -cost[0])


def batches_of(names: Sequence[str], size: int) -> List[str]:
    """`names`: the most expensive ones first."""
    size = size or max(1, len(names))
    parts = [names[i : i + size] for i in range(0, len(names), size)]
    return [f"{len(part)} ^({'|'.join(re.escape(name) for name in part)})$" for part in reversed(parts)]


def main(argv: Sequence[str]) -> int:
    if len(argv) < 2 or not argv[1].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    command = ["ctest", "--test-dir", argv[0], "--show-only=json-v1", *argv[2:]]
    listing = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    for batch in batches_of([name for _, name in costs_of(listing)], int(argv[1])):
        print(batch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
