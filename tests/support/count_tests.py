"""Counts test results, for tests/run.sh. Prints "PASSED FAILED SKIPPED".

usage: count_tests.py unittest REPORT       the output of python3 -m unittest
       count_tests.py ctest JUNIT XML_DIR   ctest's JUnit file, and GoogleTest's XML files in XML_DIR
       count_tests.py slowest N XML_DIR...  instead: the N slowest cases of GoogleTest's XML files there
       count_tests.py failed XML_DIR...     instead: the cases that failed there, with what they expected, and
                                            the programs that did not get to their end, with their last lines
"""

import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple


class Counts(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(a + b for a, b in zip(self, other)))


def count_unittest(report: str) -> Counts:
    """A report without its closing lines is one failure: the run did not get to its end."""
    ran = re.search(r"^Ran (\d+) tests? in ", report, re.MULTILINE)
    result = re.search(r"^(OK|FAILED)(?: \((.*)\))?$", report, re.MULTILINE)
    if not ran or not result:
        return Counts(failed=1)
    details = {name: int(n) for name, n in re.findall(r"([a-z ]+)=(\d+)", result.group(2) or "")}
    details = {name.strip(): n for name, n in details.items()}
    failed = sum(details.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
    skipped = details.get("skipped", 0)
    if result.group(1) == "FAILED":
        failed = max(failed, 1)
    return Counts(max(0, int(ran.group(1)) - failed - skipped), failed, skipped)


def count_ctest(junit_path: str, xml_dir: str) -> Counts:
    """The cases of every GoogleTest program; a program that ended badly counts a failure at least."""
    junit = _parse(junit_path)
    if junit is None:
        return Counts(failed=1)
    total = Counts()
    for program in junit.findall("testcase"):
        total = total.plus(_count_program(program, xml_dir))
    return total


def _count_program(program: ElementTree.Element, xml_dir: str) -> Counts:
    status = program.get("status")
    cases = _count_cases(os.path.join(xml_dir, f"{program.get('name')}.xml"))
    if status == "disabled":
        return Counts(skipped=1)
    if status == "run":
        return cases or Counts(passed=1)
    if cases is None or cases.failed == 0:
        # It crashed, ran out of time, could not be built, or a sanitizer found something at its end.
        return (cases or Counts()).plus(Counts(failed=1))
    return cases


def _parse(path: str) -> Optional[ElementTree.Element]:
    """None: there is no such file, or it is not whole. What a message quotes may be no text."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return ElementTree.fromstring(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", file.read()))
    except (OSError, ElementTree.ParseError):
        return None


def _count_cases(path: str) -> Optional[Counts]:
    root = _parse(path)
    if root is None:
        return None
    total = Counts()
    for case in root.iter("testcase"):
        if case.find("failure") is not None:
            total = total.plus(Counts(failed=1))
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            total = total.plus(Counts(skipped=1))
        elif case.get("status") == "run":
            total = total.plus(Counts(passed=1))
    return total


def slowest_cases(count: int, xml_dirs: Sequence[str]) -> List[Tuple[float, str]]:
    """(seconds, "build: program: Suite.Case") of the slowest cases, those of half a second at least."""
    cases = [(float(case.get("time", "0")), name) for name, case in _all_cases(xml_dirs)]
    return sorted((case for case in cases if case[0] >= 0.5), reverse=True)[:count]


def failed_cases(xml_dirs: Sequence[str]) -> List[Tuple[str, str]]:
    """("build: program: Suite.Case", message) of the cases that failed, by name; a message has at most 40 lines."""
    failed = []
    for name, case in _all_cases(xml_dirs):
        messages = [failure.get("message", "") for failure in case.findall("failure")]
        if messages:
            failed.append((name, "\n".join("\n".join(messages).splitlines()[:40])))
    return sorted(failed)


def unended_programs(xml_dirs: Sequence[str]) -> List[Tuple[str, str]]:
    """("build: program", words) of the programs that failed without a case that did: they crashed or ran out of time.

    GoogleTest writes its file at its end, so that the last lines of the program's output, in ctest's JUnit files
    (*.junit), are all that tells which case it was.
    """
    unended = []
    for xml_dir, path in ((d, p) for d in xml_dirs for p in sorted(glob.glob(os.path.join(d, "*.junit")))):
        junit = _parse(path)
        for program in junit.findall("testcase") if junit is not None else ():
            cases = _count_cases(os.path.join(xml_dir, f"{program.get('name')}.xml"))
            if program.get("status") in ("run", "disabled") or (cases and cases.failed):
                continue
            output = (program.findtext("system-out") or "").rstrip().splitlines()
            begun = re.findall(r"^\[ RUN      \] (\S+)", "\n".join(output), re.MULTILINE)
            words = f"{_failure_message(program)} after {float(program.get('time', '0')):.0f} s"
            words += f"; the last case begun was {begun[-1]}" if begun else ""
            failed = re.findall(r"^\[  FAILED  \] (\S+) \(\d+ ms\)", "\n".join(output), re.MULTILINE)
            words += f"; failed were {', '.join(failed)}" if failed else ""
            unended.append((f"{_build_of(xml_dir)}: {program.get('name')}", "\n".join([words] + output[-40:])))
    return sorted(unended)


def _failure_message(program: ElementTree.Element) -> str:
    failure = program.find("failure")
    return (failure.get("message") if failure is not None else None) or "failed"


def _build_of(xml_dir: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(xml_dir)))


def _all_cases(xml_dirs: Sequence[str]) -> Iterator[Tuple[str, ElementTree.Element]]:
    """("build: program: Suite.Case", case) of all files that can be read; count_ctest counts the others as failures."""
    for xml_dir in xml_dirs:
        for path in glob.glob(os.path.join(xml_dir, "*.xml")):
            program = os.path.splitext(os.path.basename(path))[0]
            root = _parse(path)
            for case in root.iter("testcase") if root is not None else ():
                yield f"{_build_of(xml_dir)}: {program}: {case.get('classname')}.{case.get('name')}", case


def main(argv: Sequence[str]) -> int:
    if len(argv) == 2 and argv[0] == "unittest":
        with open(argv[1], encoding="utf-8", errors="replace") as file:
            print(*count_unittest(file.read()))
        return 0
    if len(argv) == 3 and argv[0] == "ctest":
        print(*count_ctest(argv[1], argv[2]))
        return 0
    if len(argv) >= 2 and argv[0] == "slowest" and argv[1].isdigit():
        for seconds, name in slowest_cases(int(argv[1]), argv[2:]):
            print(f"{seconds:6.1f} s  {name}")
        return 0
    if len(argv) >= 2 and argv[0] == "failed":
        for name, message in failed_cases(argv[1:]) + unended_programs(argv[1:]):
            print(f"failed: {name}\n{message}")
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
