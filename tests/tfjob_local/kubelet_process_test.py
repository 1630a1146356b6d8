"""One container is one process group: its start, its exit code, its end with all that it started."""

import os
import signal
import stat
import subprocess
import sys
import time
import unittest
import unittest.mock

import support
from support import process_exists, wait_until
from tfjob_local.kubelet.keeper_process import send
from tfjob_local.kubelet.plan import ProcessPlan
from tfjob_local.kubelet.process import ContainerProcess


class ProcessTest(support.TemporaryDirectoryTest):
    def start(self, script, argv=None, environment=None, is_keelsons=False, **arguments):
        argv = argv or ("/bin/sh", "-c", script)
        plan = ProcessPlan("tensorflow", argv, environment or {}, self.directory, is_keelsons)
        process = ContainerProcess(plan, self.path("log"), f"{os.getpid()}-{id(self)}/x/1", **arguments)
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        process.kill()
        wait_until(lambda: process.poll() is not None, "the process has ended")

    def ended(self, process):
        wait_until(lambda: process.poll() is not None, "the process has ended")
        return process.exit_code

    def pid_in(self, name):
        wait_until(lambda: os.path.exists(self.path(name)) and self.read(name).endswith("\n"), name)
        return int(self.read(name))

    def test_exit_codes(self):
        for script, code in (("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -SEGV $$", 139)):
            self.assertEqual(self.ended(self.start(script)), code, script)

    def test_output_and_input(self):
        self.ended(self.start("echo out; echo err >&2; read x || echo no input"))
        self.assertEqual(self.read("log"), "out\nerr\nno input\n")

    def test_log_that_the_program_opens_once_more(self):
        self.ended(self.start("echo 1; echo 2 >> /dev/stdout; echo 3 > /dev/stdout; echo 4"))
        self.assertEqual(self.read("log"), "3\n4\n")

    def test_environment(self):
        foreign = dict.fromkeys(
            (
                "TF_CONFIG", "JOB_COMPLETION_INDEX", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
                "PET_NNODES", "TORCHELASTIC_USE_AGENT_STORE", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
            ),
            "theirs",
        )  # fmt: skip
        with unittest.mock.patch.dict(os.environ, {**foreign, "RANKS": "1"}):
            script = "env | grep -e theirs -e ^A= -e ^RANK | sort"
            self.ended(self.start(script, environment={"A": "b", "RANK": "0"}, is_keelsons=True))
        self.assertEqual(self.read("log"), "A=b\nRANK=0\nRANKS=1\n")

    def test_environment_of_the_manifests_commands(self):
        users = {
            "PATH": "/usr/bin:/bin", "HOME": "/h", "LANG": "C.UTF-8", "TZ": "UTC", "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "3", "AWS_SECRET_ACCESS_KEY": "secret", "LD_PRELOAD": "", "TF_CONFIG": "theirs",
        }
        with unittest.mock.patch.dict(os.environ, users, clear=True):
            self.ended(self.start("", argv=("/usr/bin/env",), environment={"TZ": "CET", "A": "b"}))
        variables = dict(line.split("=", 1) for line in self.read("log").splitlines())
        self.assertTrue(variables.pop("KEELSON_RUN").startswith(f"{os.getpid()}-"))
        kept = ("PATH", "HOME", "LANG", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
        self.assertEqual(variables, {**{name: users[name] for name in kept}, "TZ": "CET", "A": "b"})

    def test_working_directory(self):
        self.ended(self.start("pwd"))
        self.assertEqual(self.read("log"), f"{self.directory}\n")

    def test_program_that_cannot_be_started(self):
        process = self.start("", argv=("/no/such/program",))
        self.assertEqual((process.poll(), process.pid), (127, None))
        self.assertEqual(
            self.read("log"),
            f"E cannot start /no/such/program in {self.directory}: No such file or directory\n",
        )
        self.assertEqual(self.start("", argv=(self.write("data", ""),)).poll(), 126)
        process.terminate()
        process.kill()
        self.assertFalse(process.killed)

    def test_a_child_hears_of_the_launchers_end(self):
        script = f"""if True:
            import os, sys
            sys.path.insert(0, {os.path.join(support.REPOSITORY, "deploy")!r})
            from tfjob_local.kubelet.plan import ProcessPlan
            from tfjob_local.kubelet.process import ContainerProcess
            script = "echo $$ > pid; exec sleep 600"
            plan = ProcessPlan("x", ("/bin/sh", "-c", script), {{}}, {self.directory!r})
            ContainerProcess(plan, {self.path("log")!r}, "x/y/1")
            sys.stdin.read()
            os._exit(0)
        """
        launcher = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.stdin.close)
        child = self.pid_in("pid")
        self.addCleanup(send, child, signal.SIGKILL)
        launcher.stdin.close()
        wait_until(lambda: not process_exists(child), "the child has ended")

    def test_terminate_reaches_the_whole_group(self):
        process = self.start("trap 'echo trapped; exit 5' TERM; sleep 60 & echo $! > child; wait")
        child = self.pid_in("child")
        process.terminate()
        self.assertEqual(self.ended(process), 5)
        self.assertFalse(process.killed)
        wait_until(lambda: not process_exists(child), "the child has ended")

    def test_kill(self):
        process = self.start("trap '' TERM; echo $$ > pid; exec sleep 600")
        self.pid_in("pid")
        process.kill()
        self.assertEqual(self.ended(process), 137)
        self.assertTrue(process.killed)

    def test_descendants_end_with_the_first_process(self):
        """Also one that left the group for a session of its own."""
        for command in ("sleep 60", "setsid sleep 60"):
            process = self.start(f"{command} & echo $! > child; exit 4")
            child = self.pid_in("child")
            self.assertEqual(self.ended(process), 4)
            wait_until(lambda child=child: not process_exists(child), command)
            os.remove(self.path("child"))

    def test_tells_of_its_end_once(self):
        ended = []
        process = self.start("exit 1", on_end=ended.append)
        self.ended(process)
        process.poll()
        self.assertEqual(ended, [process])

    def test_nothing_of_the_launcher_leaks(self):
        """No file descriptor, no blocked signal."""
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        self.addCleanup(os.close, write_end)
        old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, old)
        self.ended(
            self.start(
                "ls /proc/$$/fd; grep SigBlk /proc/self/status",
                unblocked_signals={signal.SIGUSR1, signal.SIGCHLD},
            )
        )
        *descriptors, blocked = self.read("log").splitlines()
        self.assertLessEqual({int(fd) for fd in descriptors}, {0, 1, 2})
        self.assertEqual(int(blocked.split()[1], 16), 0)

    def test_log_is_a_file_of_its_own(self):
        self.ended(self.start("echo 1"))
        self.ended(self.start("echo 2"))
        self.assertEqual(self.read("log"), "2\n")
        self.assertTrue(stat.S_ISREG(os.stat(self.path("log")).st_mode))

    def test_poll_does_not_wait(self):
        process = self.start("exec sleep 600")
        before = time.monotonic()
        self.assertIsNone(process.poll())
        self.assertLess(time.monotonic() - before, 5)
