"""What a build fetches is held to a hash, and comes from whichever registry the build is told of."""

import json
import os
import re
import unittest

import support

PAGES = ("dashboard/page", "tests/dashboard")


class NpmLockTest(unittest.TestCase):
    """`npm ci` takes what the lock has, and nothing else."""

    def locks(self):
        for page in PAGES:
            yield page, json.loads(support.read(page, "package-lock.json"))["packages"]

    def test_every_folder_with_packages_has_a_lock(self):
        found = [
            os.path.relpath(folder, support.REPOSITORY)
            for top in ("dashboard", "deploy", "tests", "tools")
            for folder, _, files in os.walk(os.path.join(support.REPOSITORY, top))
            if "package.json" in files and "node_modules" not in folder
        ]
        self.assertEqual(sorted(found), sorted(PAGES))

    def test_every_package_has_a_hash_and_no_registry(self):
        for page, packages in self.locks():
            for name, package in packages.items():
                if name:
                    with self.subTest(page, package=name):
                        self.assertRegex(package["integrity"], r"^sha512-[A-Za-z0-9+/]{86}==$")
                        self.assertNotIn("resolved", package)

    def test_locks_have_what_package_json_names(self):
        for page, packages in self.locks():
            named = json.loads(support.read(page, "package.json"))
            for kind in ("dependencies", "devDependencies"):
                with self.subTest(page, kind=kind):
                    self.assertEqual(packages[""].get(kind), named.get(kind))
                    for name, version in named.get(kind, {}).items():
                        self.assertEqual(packages[f"node_modules/{name}"]["version"], version)

    def test_renewing_a_lock_writes_no_registry_and_nothing_runs_at_installation(self):
        for page in PAGES:
            with self.subTest(page):
                options = support.read(page, ".npmrc").splitlines()
                self.assertLessEqual({"omit-lockfile-registry-resolved=true", "ignore-scripts=true"}, set(options))

    def test_nothing_is_installed_but_by_a_lock(self):
        for path in ("dashboard/page/install.mjs", "tests/dashboard/run.sh"):
            with self.subTest(path):
                text = support.read(path)
                self.assertRegex(text, r'"ci"|npm ci ')
                self.assertNotRegex(text, r'"install"|npm install ')


class WheelTest(unittest.TestCase):
    def test_every_wheel_has_an_exact_version_and_a_hash(self):
        text = support.read("deploy", "cuda_requirements.txt").replace("\\\n", " ")
        wheels = [line for line in text.splitlines() if line and not line.startswith("#")]
        self.assertTrue(wheels)
        for wheel in wheels:
            with self.subTest(wheel):
                self.assertIsNotNone(re.fullmatch(r"[a-z0-9-]+==[0-9.]+(\s+--hash=sha256:[0-9a-f]{64})+", wheel))
