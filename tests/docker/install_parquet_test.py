"""deploy/install_parquet.sh, with a pip that only says how it was called and makes what it would install."""

import os
import re
import shutil
import subprocess

import support

REQUIREMENTS = os.path.join(support.REPOSITORY, "deploy", "parquet_requirements.txt")

# What the wheel has, as pip leaves it.
INSTALLS = '''while [ "$1" != --target ]; do shift; done
mkdir -p "$2/pyarrow/include/parquet" "$2/pyarrow-1.dist-info"
for name in arrow parquet arrow_python; do : > "$2/pyarrow/lib$name.so.2600"; done
: > "$2/pyarrow/lib.cpython-311-x86_64-linux-gnu.so"'''


class InstallParquetTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.folder = self.path("cache", "keelson", "parquet")
        os.makedirs(self.path("bin"))
        for name in ("bash", "cmp", "cp", "dirname", "grep", "ln", "mkdir", "mktemp", "mv", "rm", "tail"):
            os.symlink(shutil.which(name), self.path("bin", name))
        self.write_script("bin/uname", "echo x86_64")
        self.pip(INSTALLS)

    def pip(self, install: str) -> None:
        self.write_script("bin/python3", f'[ "$3" = --version ] && exit 0; echo "$*" >> "$LOG"\n{install}')

    def install(self, *arguments: str) -> subprocess.CompletedProcess:
        environment = {"PATH": self.path("bin"), "LOG": self.path("log"), "XDG_CACHE_HOME": self.path("cache")}
        return self.run_program("/bin/bash", os.path.join(support.REPOSITORY, "deploy", "install_parquet.sh"),
                                *arguments, env=environment)

    def expect_failure(self, line: str) -> None:
        """One line, and nothing is left behind."""
        run = self.install()
        self.assertEqual((run.returncode, run.stderr), (1, line + "\n"))
        parent = os.path.dirname(self.folder)
        self.assertEqual(os.listdir(parent) if os.path.isdir(parent) else [], [])

    def test_libraries_and_headers_without_what_is_pythons(self):
        run = self.install()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn(f"installing Arrow's libraries into {self.folder} ", run.stdout)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "lib"))),
                         ["libarrow.so", "libarrow.so.2600", "libparquet.so", "libparquet.so.2600"])
        for path in ("include/parquet", "lib/libarrow.so", "lib/libparquet.so", "pyarrow-1.dist-info"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, path)), path)
        self.assertEqual(os.listdir(os.path.dirname(self.folder)), ["parquet"])

    def test_pip_takes_the_pinned_file_alone(self):
        self.install()
        self.assertEqual(len(self.logged()), 1)
        for flag in ("--require-hashes", "--no-deps", "--only-binary :all:", f"--requirement {REQUIREMENTS}"):
            self.assertIn(flag, self.logged()[0])
        with open(REQUIREMENTS, encoding="utf-8") as file:
            text = re.sub(r"^#.*\n", "", file.read(), flags=re.MULTILINE).replace("\\\n", "")
        self.assertRegex(text, r"^pyarrow==[0-9.]+ +--hash=sha256:[0-9a-f]{64}\n$")

    def test_a_second_time_does_nothing(self):
        self.install()
        run = self.install()
        self.assertEqual((run.returncode, run.stdout, run.stderr, len(self.logged())), (0, "", "", 1))

    def test_other_versions_replace_it(self):
        self.install()
        with open(os.path.join(self.folder, "requirements.txt"), "a", encoding="utf-8") as file:
            file.write("# older\n")
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(len(self.logged()), 2)

    def test_a_folder_of_somebody_else_is_left_alone(self):
        mine = self.path("mine")
        os.mkdir(mine)
        run = self.install(mine)
        self.assertEqual((run.returncode, run.stderr),
                         (1, f"install_parquet: {mine} is there already and was not made by this script\n"))
        self.assertEqual((os.listdir(mine), self.logged()), ([], []))

    def test_another_architecture(self):
        self.write_script("bin/uname", "echo aarch64")
        self.expect_failure("install_parquet: expected x86_64, found aarch64: install Arrow and Parquet for C++ by hand")

    def test_no_pip(self):
        self.write_script("bin/python3", 'echo "No module named pip" >&2; exit 1')
        self.expect_failure("install_parquet: python3 has no pip: apt-get install python3-pip")

    def test_no_network(self):
        self.pip('echo "WARNING: Retrying (Retry(total=0)) after connection broken by \'NewConnectionError(: no route)\'"\n'
                 'echo "ERROR: No matching distribution found for pyarrow"; exit 1')
        self.expect_failure("install_parquet: pip cannot reach the package index: NewConnectionError(: no route)'")

    def test_a_wheel_with_another_hash(self):
        self.pip('echo Collecting; echo "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"; echo more; exit 1')
        self.expect_failure("install_parquet: pip failed: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES")
