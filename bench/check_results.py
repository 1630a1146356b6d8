#!/usr/bin/python3
"""Checks what `ps_bench --json` wrote: every result complete, every number positive.

usage: bench/check_results.py FILE

Says nothing about how fast anything was: machines differ. Exit code 1 with a line per problem.
"""

import json
import math
import sys
from typing import Iterator

TEXTS = {"scenario", "direction", "handler", "wire"}
NUMBERS = {
    "message_bytes",
    "servers",
    "workers",
    "gbytes_per_s",
    "rpcs_per_s",
    "p50_us",
    "p99_us",
    "cpu_s_per_gbyte",
    "raw_socket_gbytes_per_s",
    "naive_gbytes_per_s",
    "empty_rpc_p50_us",
}


def problems(results: object) -> Iterator[str]:
    if not isinstance(results, list) or not results:
        yield "expected an array of results"
        return
    for position, result in enumerate(results):
        if set(result) != TEXTS | NUMBERS:
            yield f"result {position}: keys {sorted(set(result) ^ (TEXTS | NUMBERS))} are missing or too many"
            continue
        name = f"result {position} ({result['scenario']} {result['direction']})"
        for key in sorted(TEXTS):
            if not isinstance(result[key], str) or not result[key]:
                yield f"{name}: {key}: expected a text, found {result[key]!r}"
        for key in sorted(NUMBERS):
            value = result[key]
            if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
                yield f"{name}: {key}: expected a positive number, found {value!r}"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    found = list(problems(results))
    for problem in found:
        print(problem)
    print(f"{len(results)} results, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
