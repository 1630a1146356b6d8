"""deploy/install_deps.sh, with apt and dpkg that only say how they were called."""

import os
import shutil
import subprocess

import support


class InstallDepsTest(support.TemporaryDirectoryTest):
    """Missing packages are installed; files of other packages are not changed."""

    def setUp(self):
        super().setUp()
        # The PATH is this folder alone: what the script calls, and nothing else that this machine has.
        for name in ("bash", "env", "grep", "mktemp", "rm", "sed", "tail"):
            os.symlink(shutil.which(name), self.path(name))
        self.write_script("apt-get", 'echo "$DEBIAN_FRONTEND $*" >> "$LOG"')
        self.write_script("sudo", 'exec "$@"')
        self.dpkg_query()
        self.system("ID=debian\nVERSION_ID=\"13\"")

    def system(self, os_release: str) -> None:
        """Which one it is."""
        self.write("os-release", os_release + "\n")

    def dpkg_query(self, missing: str = "") -> None:
        """All packages but `missing` are installed."""
        self.write_script("dpkg-query",
                  f'shift 2; for name; do [ "$name" = "{missing}" ] || echo "installed $name"; done')

    def install(self, *flags: str) -> subprocess.CompletedProcess:
        environment = {"PATH": self.directory, "LOG": self.path("log"), "TMPDIR": self.directory,
                       "OS_RELEASE": self.path("os-release")}
        return self.run_program("/bin/bash", os.path.join(support.REPOSITORY, "deploy", "install_deps.sh"), *flags,
                                env=environment)

    def test_installs_nothing_where_nothing_is_missing(self):
        run = self.install("--dev")
        self.assertEqual((run.returncode, run.stdout, self.logged()), (0, "", []))

    def test_installs_what_is_missing_and_no_more(self):
        self.dpkg_query(missing="cmake")
        run = self.install()
        self.assertEqual((run.returncode, run.stdout), (0, "installing cmake\n"), run.stderr)
        self.assertEqual([call.split()[:2] for call in self.logged()],
                         [["noninteractive", "update"], ["noninteractive", "install"]])
        self.assertTrue(self.logged()[1].split()[2:4] == ["--no-install-recommends", "cmake"], self.logged())

    def test_node_is_installed_where_it_is_missing_or_too_old(self):
        self.dpkg_query(missing="nodejs")
        self.assertEqual(self.install().stdout, "installing nodejs\n")
        self.write_script("node", "echo v16.20.0")
        self.assertEqual(self.install().stdout, "installing nodejs\n")
        self.dpkg_query(missing="npm")
        self.assertEqual(self.install().stdout, "installing npm\n")

    def test_node_and_npm_of_another_origin_stay(self):
        self.dpkg_query(missing="nodejs")
        self.write_script("node", "echo v20.20.2")
        self.assertEqual(self.install().stdout, "")
        self.dpkg_query(missing="npm")
        self.write_script("npm", "true")
        self.assertEqual(self.install().stdout, "")

    def test_kubectl_is_for_developers_that_have_none(self):
        self.dpkg_query(missing="kubernetes-client")
        self.assertEqual(self.install().stdout, "")
        self.assertEqual(self.install("--dev").stdout, "installing kubernetes-client\n")

    def test_a_kubectl_of_another_package_stays(self):
        self.dpkg_query(missing="kubernetes-client")
        self.write_script("kubectl", "true")
        run = self.install("--dev")
        self.assertEqual((run.returncode, run.stdout, self.logged()), (0, "", []))

    def test_a_failure_of_apt_is_shown_with_what_is_missing(self):
        self.dpkg_query(missing="cmake")
        self.write_script("apt-get", 'echo "E: no network"; exit 100')
        run = self.install()
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, "E: no network\ninstall_deps: apt-get update failed; missing: cmake\n")

    def test_debian_12_and_13_have_the_packages(self):
        self.dpkg_query(missing="cmake")
        for version in ("12", "13"):
            self.system(f'ID=debian\nVERSION_ID="{version}"')
            self.assertEqual(self.install().returncode, 0, version)

    def test_another_system_gets_one_line_that_says_what_is_needed(self):
        self.dpkg_query(missing="cmake")
        for os_release, found in (('ID=debian\nVERSION_ID="11"', "debian 11"), ("ID=debian", "debian without a version"),
                                  ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"', "ubuntu 24.04"), ("", "unknown")):
            self.system(os_release)
            run = self.install()
            self.assertEqual((run.returncode, run.stdout, run.stderr), (
                1, "", f"install_deps: expected Debian 12 or 13, found {found}: "
                "install by hand what Debian has as cmake\n"))
        os.remove(self.path("dpkg-query"))
        os.remove(self.path("os-release"))
        run = self.install()
        self.assertRegex(run.stderr, r"\Ainstall_deps: .* found unknown: .* as g\+\+ cmake .*\n\Z")
        self.assertEqual((run.returncode, self.logged()), (1, []))

    def test_another_system_that_has_everything_is_served(self):
        self.system('ID=ubuntu\nVERSION_ID="24.04"')
        self.assertEqual(self.install("--dev").returncode, 0)

    def cuda(self, pip: str) -> subprocess.CompletedProcess:
        """With an nvcc, so that nothing is fetched."""
        os.symlink(shutil.which("dirname"), self.path("dirname"))
        self.write_script("cmp", "exit 1")
        self.write_script("nvcc", "true")
        self.write_script("python3", pip)
        return self.install("--cuda")

    def test_cuda_is_looked_for_when_it_is_asked_for(self):
        run = self.cuda(pip="true")
        self.assertEqual((run.returncode, run.stdout), (0, f"install_cuda: {self.directory}/nvcc is there already\n"),
                         run.stderr)

    def test_cuda_comes_after_the_packages_that_it_needs(self):
        self.dpkg_query(missing="python3-pip")
        run = self.cuda(pip='exit 1')
        self.assertEqual((run.returncode, run.stdout.splitlines()),
                         (0, ["installing python3-pip", f"install_cuda: {self.directory}/nvcc is there already"]), run.stderr)

    def test_an_unknown_flag(self):
        run = self.install("--all")
        self.assertEqual(run.returncode, 2)
        self.assertIn("usage: deploy/install_deps.sh [--dev]", run.stderr)
