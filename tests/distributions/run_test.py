"""tests/distributions/run.sh, with a debootstrap and a chroot that only say how they were called."""

import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))

sys.path.insert(0, os.path.join(FOLDER, "..", "support"))

from temporary_directory import TemporaryDirectoryTest  # noqa: E402  (needs the path above)


class RunTest(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.roots = self.path("roots")
        os.makedirs(self.roots)
        self.write_script("id", "echo 0")
        self.write_script("apt-get", 'echo "http://mirror/debian-security bookworm-security"\n'
                             'echo "http://mirror/debian bookworm-updates"\n'
                             'echo "http://mirror/debian bookworm"\n')
        self.write_script("apt-config", """echo 'Acquire::http::Proxy "http://proxy";'; echo 'Acquire::Languages "";'""")
        self.write_script("debootstrap", 'echo "debootstrap $3 $5" >> "$LOG"\n'
                                 'mkdir -p "$4/etc/apt/apt.conf.d" "$4/srv" "$4/usr/local/share"\n'
                                 'echo "$2" > "$4/packages"')
        self.write_script("git", 'echo "git $*" >> "$LOG"')
        # The last argument is what runs in the root.
        self.write_script("unshare", 'while [ "${1#--}" != "$1" ]; do shift; done\n'
                             'if [ "$1" = debootstrap ]; then exec "$@"; fi\n'
                             'for last; do :; done; echo "root $last" >> "$LOG"; [ "$last" != "$FAILS" ]')

    def run_script(self, *arguments: str, fails: str = "", path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess:
        return self.run_program(
            os.path.join(FOLDER, "run.sh"), *arguments,
            env={"PATH": f"{self.directory}:{path}", "LOG": self.path("log"), "TMPDIR": self.roots, "FAILS": fails})

    def refused(self, code: int, reason: str, *arguments: str) -> None:
        run = self.run_script(*arguments)
        self.assertEqual((run.returncode, run.stdout), (code, ""))
        self.assertIn(reason, run.stderr)
        self.assertFalse(os.path.exists(self.path("log")))
        self.assertEqual(os.listdir(self.roots), [])

    def test_help(self):
        run = self.run_script("--help")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("usage: tests/distributions/run.sh [--tests | --wheel=FILE] [--keep] bookworm|trixie", run.stdout)

    def test_arguments_are_checked(self):
        self.refused(2, "usage: tests/distributions/run.sh")
        self.refused(2, "unknown argument: sid: expected --tests, --wheel=FILE, --keep, bookworm or trixie", "sid")
        self.refused(2, "unknown argument: --all: expected", "trixie", "--all")
        self.refused(2, "expected one release, found trixie and bookworm", "trixie", "bookworm")
        self.refused(2, "expected --tests or --wheel, found both", "trixie", "--tests", "--wheel=x.whl")
        self.refused(2, "--wheel=/nonexistent/x.whl: expected what deploy/make_wheel.py has made, found no file",
                     "--wheel=/nonexistent/x.whl", "trixie")

    def test_what_is_missing_is_named(self):
        self.write_script("apt-get", "true")
        self.refused(1, "apt knows no mirror of Debian: apt-get update", "trixie")
        self.write_script("id", "echo 1000")
        self.refused(1, "expected root", "trixie")

    def test_without_debootstrap(self):
        os.remove(os.path.join(self.directory, "debootstrap"))
        bare = os.path.join(self.directory, "bare")
        os.makedirs(bare)
        for name in ("bash", "cat", "env"):
            os.symlink(f"/bin/{name}", os.path.join(bare, name))
        run = self.run_script("trixie", path=bare)
        self.assertEqual((run.returncode, run.stderr.split(": ", 1)[1]),
                         (1, "debootstrap is missing: apt-get install debootstrap\n"))

    def test_the_two_commands_run_in_a_clone_and_nothing_stays(self):
        run = self.run_script("--tests", "trixie")
        self.assertEqual(run.returncode, 0, run.stderr)
        calls = self.logged()
        self.assertEqual(calls[0], "debootstrap trixie http://mirror/debian")
        self.assertTrue(calls[2].startswith("git clone "), calls)
        self.assertEqual(calls[3:], ["root git clone --quiet /srv/keelson.git /root/keelson",
                                     "root cd /root/keelson && deploy/run_local.sh",
                                     "root cd /root/keelson && tests/run.sh"])
        self.assertEqual(os.listdir(self.roots), [])

    def test_the_tests_run_when_they_are_asked_for_and_the_root_stays_too(self):
        run = self.run_script("--keep", "bookworm")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("root cd /root/keelson && tests/run.sh", self.logged())
        (root,) = os.listdir(self.roots)
        self.assertEqual(run.stdout.splitlines()[-1], f"the root is in {os.path.join(self.roots, root)}")
        etc = os.path.join(self.roots, root, "etc", "apt")
        with open(os.path.join(etc, "sources.list"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "deb http://mirror/debian bookworm main\n"
                                          "deb http://mirror/debian bookworm-updates main\n"
                                          "deb http://mirror/debian-security bookworm-security main\n")
        with open(os.path.join(etc, "apt.conf.d", "90machine"), encoding="utf-8") as file:
            self.assertEqual(file.read(), 'Acquire::http::Proxy "http://proxy";\n')

    def test_a_wheel_is_installed_where_python_is_and_nothing_else(self):
        wheel = self.path("keelson-1.whl")
        with open(wheel, "w", encoding="utf-8") as file:
            file.write("a wheel")
        run = self.run_script(f"--wheel={wheel}", "--keep", "bookworm")
        self.assertEqual(run.returncode, 0, run.stderr)
        install = "python3 -m venv /root/venv && /root/venv/bin/pip install --quiet --no-index /srv/*.whl"
        job = "/root/venv/bin/python /srv/wheel_job.py"
        self.assertEqual(self.logged(), ["debootstrap bookworm http://mirror/debian", f"root {install}", f"root {job}"])
        (root,) = os.listdir(self.roots)
        self.assertEqual(sorted(os.listdir(os.path.join(self.roots, root, "srv"))), ["keelson-1.whl", "wheel_job.py"])
        with open(os.path.join(self.roots, root, "packages"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "--include=python3-venv\n")
        run = self.run_script(f"--wheel={wheel}", "bookworm", fails=job)
        self.assertEqual(run.returncode, 1)
        self.assertIn("run.sh: bookworm: a job of the wheel failed\n", run.stderr)

    def test_a_command_that_fails_ends_it(self):
        run = self.run_script("--tests", "trixie", fails="cd /root/keelson && deploy/run_local.sh")
        self.assertEqual(run.returncode, 1)
        self.assertIn("run.sh: trixie: deploy/run_local.sh failed\n", run.stderr)
        self.assertEqual(self.logged()[-1], "root cd /root/keelson && deploy/run_local.sh")
        self.assertEqual(os.listdir(self.roots), [])

    def test_debootstrap_that_fails_says_why(self):
        self.write_script("debootstrap", "echo 'E: no such release' >&2; exit 1")
        run = self.run_script("trixie")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, "E: no such release\ntests/distributions/run.sh: trixie: debootstrap failed\n")
        self.assertEqual(os.listdir(self.roots), [])
