#!/usr/bin/python3
"""Takes one mend out of a copy of the sources at a time, and says after how long the search notices.

usage: tests/search/reverts.py [--seconds S] [--seed N] [--work DIRECTORY] [--list] [NAME ...]

Builds the search in DIRECTORY (default: build/reverts), which is about as long as a build of the programs for the
first NAME. Without a NAME all of them. The table of docs/failures.md is what it found; the exit code is 1 when a
search found nothing. As many schedules are played as the machine manages, so leave it alone meanwhile.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time
from typing import Dict, List, NamedTuple, Optional, Sequence

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


class Edit(NamedTuple):
    path: str
    mended: str  # once in the file
    reverted: str


class Mend(NamedTuple):
    what: str
    edits: List[Edit]


UNEQUAL_CUTS = Edit("chief/servers/server_cuts.cc", "    return CheckEqual(cuts);", "    return absl::OkStatus();")

MENDS: Dict[str, Mend] = {
    "A": Mend(
        "a file that a directory names is not taken for absent",
        [
            Edit(
                "core/checkpoint/presence.cc",
                "  if (exists) return true;\n  // Opening",
                "  return exists;\n  // Opening",
            )
        ],
    ),
    "B": Mend(
        "a server obeys the chief of the highest term",
        [
            Edit(
                "ps_server/service/chief_admission.cc",
                "  const bool same = chief.incarnation() == incarnation_;\n  if (!any_",
                "  const bool same = true;\n  if (term_ != ~uint64_t{0} || !any_",
            )
        ],
    ),
    "C": Mend("cuts of unequal rounds are no snapshot", [UNEQUAL_CUTS]),
    "D": Mend(
        "as C, and no round is committed during a cut",
        [
            UNEQUAL_CUTS,
            Edit("chief/servers/round_commits.cc", "  const RoundGate::Round turn(&gate_);\n", ""),
        ],
    ),
    "E": Mend(
        "work is handed on when every server refuses its former worker",
        [
            Edit(
                "chief/lifecycle/membership_announcer.cc",
                "  HandOnTold(servers_->known_epoch());",
                "  HandOnTold(~uint64_t{0});",
            )
        ],
    ),
    "F": Mend(
        "a new chief's first call waits for a commit of the one before",
        [
            Edit(
                "ps_server/service/parameter_handler.cc",
                "  if (attended_by_.load() == chief) return;",
                "  if (attended_by_.load() == chief || chief != 0) return;",
            )
        ],
    ),
    "G": Mend(
        "a refused push is reported to the chief",
        [
            Edit(
                "worker/training_loop.cc",
                "return progress_->Refuse(step.ticket);",
                "return progress_->Drop(step.ticket);",
            )
        ],
    ),
    "H": Mend(
        "nothing is handed out while a predecessor's workers are away",
        [
            Edit(
                "chief/coordination/member_requests.cc",
                "if (!state_->training.has_value() || state_->WorkersAway() || LacksWorkers()) return",
                "if (!state_->training.has_value() || LacksWorkers()) return",
            )
        ],
    ),
    "I": Mend(
        "a restored server is told which round is in the values",
        [
            Edit(
                "ps_server/service/served_shard.cc",
                "  if (request.has_committed_round()) (*store)->SkipRounds({request.committed_round(), 0});\n",
                "",
            )
        ],
    ),
    "J": Mend(
        "a server that leaves says so while it holds pushes of a round",
        [
            Edit(
                "ps_server/units/shard_store.cc",
                "  return ended_ || open_round_.round <= committed_.round;",
                "  return true;",
            )
        ],
    ),
    "K": Mend(
        "a snapshot is committed by the word of all servers and the owner's",
        [
            Edit(
                "chief/lifecycle/job_snapshots.cc",
                "  absl::Status status;\n  if (coordinator_->control()",
                "  if (cleaned_) return absl::OkStatus();\n  absl::Status status;\n  if (coordinator_->control()",
            )
        ],
    ),
    "L": Mend(
        "servers that may lack pushes of a step commit it before the others",
        [
            Edit(
                "chief/servers/round_commits.cc",
                "(calls_->contacts().MayLackPushes(s) ? servers.first : servers.second).push_back(s);",
                "servers.second.push_back(s);",
            )
        ],
    ),
    "M": Mend(
        "a partition of a table's rows takes each push once",
        [
            Edit(
                "ps_server/units/table_partition.cc",
                "  if (!TakeSequence(push)) {\n    SkipGradients(updates);\n    return false;",
                "  if (!TakeSequence(push) && updates.empty()) {\n    SkipGradients(updates);\n    return false;",
            )
        ],
    ),
    "N": Mend(
        "a partition of a table's rows is restored with what it had applied",
        [
            Edit(
                "ps_server/units/table_partition.h",
                "    sequences_->Restore(unit_, incarnation, sequence);",
                "    if (sequence == 0) sequences_->Restore(unit_, incarnation, sequence);",
            )
        ],
    ),
    "O": Mend(
        "a request that waits is answered when its time is over",
        [
            Edit(
                "chief/coordination/parked_requests.cc",
                "/*last=*/tried.overtaken || now >= tried.until",
                "/*last=*/tried.overtaken",
            ),
            Edit(
                "chief/coordination/parked_requests.cc",
                "SetDue(request->first, &tried, std::min(tried.until, now + renewal_));",
                "SetDue(request->first, &tried, now + renewal_);",
            ),
        ],
    ),
}


def reverted(text: str, edit: Edit) -> str:
    """ValueError: the edit does not fit the text."""
    found = text.count(edit.mended)
    if found != 1:
        raise ValueError(f"{edit.path}: expected once, found {found} times: {edit.mended!r}")
    return text.replace(edit.mended, edit.reverted)


def edited_sources(mend: Mend, source: pathlib.Path) -> Dict[str, str]:
    """The text of each file that the mend's reversal changes."""
    texts: Dict[str, str] = {}
    for edit in mend.edits:
        text = texts.get(edit.path)
        if text is None:
            text = (source / edit.path).read_text(encoding="utf-8")
        texts[edit.path] = reverted(text, edit)
    return texts


def copy_sources(source: pathlib.Path, copy: pathlib.Path) -> None:
    """What git tracks; files that are equal already keep their times, so that they are not built again."""
    listed = subprocess.run(["git", "-C", str(source), "ls-files", "-z"], check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        if not name or not (source / name).is_file():
            continue
        to = copy / name
        content = (source / name).read_bytes()
        if to.is_file() and to.read_bytes() == content:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(content)
        shutil.copymode(source / name, to)


def build(copy: pathlib.Path, log: pathlib.Path) -> bool:
    with log.open("w", encoding="utf-8") as file:
        for command in (["cmake", "--preset", "release", "-DKEELSON_DASHBOARD_PAGE=OFF"], ["ninja", "-C", "build/release", "search"]):
            if subprocess.run(command, cwd=copy, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                return False
    return True


def search(copy: pathlib.Path, seconds: int, seed: int, log: pathlib.Path) -> bool:
    """Whether it found something."""
    with log.open("w", encoding="utf-8") as file:
        command = ["build/release/tests/search", str(seconds), str(seed)]
        return subprocess.run(command, cwd=copy, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0


def first_violation(log: str) -> Optional[str]:
    match = re.search(r"^.*VIOLATION.*$", log, re.MULTILINE)
    return match.group(0).strip() if match else None


def play(name: str, work: pathlib.Path, seconds: int, seed: int) -> bool:
    mend = MENDS[name]
    copy = work / "source"
    copy_sources(SOURCE, copy)
    for path, text in edited_sources(mend, SOURCE).items():
        (copy / path).write_text(text, encoding="utf-8")
    if not build(copy, work / f"{name}.build.log"):
        print(f"{name}: not built, see {work / f'{name}.build.log'}", flush=True)
        return False
    log = work / f"{name}.log"
    began = time.monotonic()
    found = search(copy, seconds, seed, log)
    lines = log.read_text(encoding="utf-8").splitlines()
    said = first_violation("\n".join(lines)) if found else None
    print(
        f"{name} ({mend.what}): {'found' if found else 'not found'} within {time.monotonic() - began:.0f} s;"
        f" {said + '; ' if said else ''}{lines[-1] if lines else ''}",
        flush=True,
    )
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="how long each is searched (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="the first schedule (default 1)")
    parser.add_argument("--work", type=pathlib.Path, default=SOURCE / "build" / "reverts")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("names", nargs="*", metavar="NAME")
    flags = parser.parse_args(arguments)
    unknown = [name for name in flags.names if name not in MENDS]
    if unknown:
        parser.error(f"{unknown[0]}: expected one of {', '.join(MENDS)}")
    if flags.list:
        for name, mend in MENDS.items():
            print(f"{name}  {mend.what}")
        return 0
    flags.work.mkdir(parents=True, exist_ok=True)
    found = [play(name, flags.work.resolve(), flags.seconds, flags.seed) for name in flags.names or MENDS]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
