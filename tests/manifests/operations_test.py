"""docs/operations.md says nothing that is not there: files, links, flags, log lines."""

import copy
import re
import subprocess
import sys
import unittest
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import yaml
from kubernetes_kinds import kinds
from strict_schema import errors
from support import REPOSITORY, documents, flags_of, manifest_paths, needs_programs

from tfjob_api.reader import ReadOptions, read_documents

PAGE = REPOSITORY / "docs" / "operations.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Folders of C++ sources that log.
SOURCES = ("chief", "core", "dashboard", "evaluator", "programs", "ps_server", "worker")


@lru_cache(maxsize=None)
def logged_texts() -> str:
    """All string literals of the programs; literals side by side are one."""
    literals: List[str] = []
    for folder in SOURCES:
        for path in sorted((REPOSITORY / folder).rglob("*.cc")):
            if not path.name.endswith("_test.cc"):
                source = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
                literals += re.findall(r'"((?:[^"\\\n]|\\.)*)"', source)
    return "\n".join(literals)


def log_lines() -> List[str]:
    """The first column of the table of log lines, and the sentences that quote one."""
    section = TEXT.split("### Waiting for a peer")[1].split("### Restarts")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    lines = [code for row in rows for code in re.findall(r"`([^`]+)`", row.split("|")[1])]
    lines += re.findall(r"(?:logs|says) `([^`]+)`", TEXT)
    return lines


def code_lines() -> Iterator[str]:
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL):
        yield from (line.split(" #")[0].strip() for line in block.replace("\\\n", " ").splitlines())


def own_commands() -> List[Tuple[str, List[str], List[str]]]:
    """(script, the command's words before its first flag, its flags) of our own Python programs."""
    found = []
    for line in code_lines():
        words = line.split()
        if words and words[0] in ("deploy/tfjob_local.py", "deploy/keelson.py"):
            flags = [word.split("=")[0] for word in words if word.startswith("-") and word != "--"]
            found.append((words[0], words[1:2], flags))
    return found


@lru_cache(maxsize=None)
def help_of(*command: str) -> str:
    result = subprocess.run(
        [sys.executable, REPOSITORY / command[0], *command[1:], "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return result.stdout


class Operations(unittest.TestCase):
    def test_files_that_it_names_are_there(self) -> None:
        paths = set(re.findall(r"\b(?:deploy|configs|docs)/[\w./-]*\w", TEXT))
        self.assertGreaterEqual(len(paths), 12)
        for path in sorted(paths):
            with self.subTest(path):
                self.assertTrue((REPOSITORY / path).exists())

    def test_every_manifest_is_named(self) -> None:
        for path in manifest_paths():
            with self.subTest(path):
                self.assertIn(Path(path).name, TEXT)

    def test_links_lead_somewhere(self) -> None:
        headings = {
            re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
        }
        targets = re.findall(r"\]\(([^)]+)\)", TEXT)
        self.assertGreaterEqual(len(targets), 8)
        for target in targets:
            with self.subTest(target):
                file, _, anchor = target.partition("#")
                if file:
                    self.assertTrue((PAGE.parent / file).exists())
                else:
                    self.assertIn(anchor, headings)

    def test_log_lines_are_the_programs(self) -> None:
        lines = log_lines()
        self.assertGreaterEqual(len(lines), 10)
        for line in lines:
            pieces = re.split(r" for …|…|ps-\d+|/model\S*|\d+|: $|: …", line)
            pieces = [piece.strip(" ,:") for piece in pieces]
            for piece in [piece for piece in pieces if len(piece) > 3]:
                with self.subTest(line, piece=piece):
                    self.assertTrue(piece in logged_texts(), piece)

    def test_flags_of_our_commands_exist(self) -> None:
        commands = own_commands()
        self.assertGreaterEqual(len(commands), 12)
        for script, words, flags in commands:
            is_command = bool(words) and re.fullmatch(r"[a-z]+", words[0]) is not None
            text = help_of(script, *(words if is_command else []))
            for flag in flags:
                with self.subTest(script, words=words, flag=flag):
                    self.assertRegex(text, rf"(?<![\w-]){re.escape(flag)}(?![\w-])")


class Token(unittest.TestCase):
    """The part of a pod with the job's token: what a manifest becomes with it."""

    def setUp(self) -> None:
        (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
        self.part = yaml.safe_load(block)

    def job_with_token(self) -> Dict[str, Any]:
        (document,) = [d for d in documents("deploy/tfjob/mnist.yaml") if d.kind == "TFJob"]
        job = copy.deepcopy(dict(document.content))
        for replica_type in ("Chief", "Evaluator"):
            pod = job["spec"]["tfReplicaSpecs"][replica_type]["template"]["spec"]
            pod["volumes"] += self.part["volumes"]
            (own,), (added,) = pod["containers"], self.part["containers"]
            self.assertEqual(added["name"], own["name"])
            own["args"] += added["args"]
            own["volumeMounts"] += added["volumeMounts"]
        return job

    @needs_programs
    def test_programs_take_the_flag(self) -> None:
        (argument,) = self.part["containers"][0]["args"]
        for program in ("chief", "evaluator"):
            self.assertIn(argument.removeprefix("--").partition("=")[0], flags_of(program))

    def test_programs_find_the_file(self) -> None:
        (container,), (volume,) = self.part["containers"], self.part["volumes"]
        (argument,), (mount,) = container["args"], container["volumeMounts"]
        _, _, path = argument.partition("=")
        self.assertEqual(mount["name"], volume["name"])
        (created,) = re.findall(r"kubectl create secret generic (\S+) --from-literal=(\w+)=", TEXT)
        self.assertEqual(volume["secret"]["secretName"], created[0])
        self.assertEqual(path, f"{mount['mountPath']}/{created[1]}")
        # The pod's group may read it, others may not.
        self.assertEqual(volume["secret"]["defaultMode"], 0o440)

    def test_reader_takes_the_job(self) -> None:
        others = [dict(d.content) for d in documents("deploy/tfjob/mnist.yaml") if d.kind != "TFJob"]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mnist-token"}}
        secret["stringData"] = {"token": "0123456789abcdef"}
        manifest = read_documents([*others, secret, self.job_with_token()], "page", ReadOptions())
        self.assertEqual(manifest.warnings, ())

    def test_job_fits_the_schema(self) -> None:
        self.assertEqual(errors(kinds()["kubeflow.org/v1", "TFJob"], self.job_with_token()), [])
