"""Nothing that a launcher has started outlives it, whatever happens to it or to its keeper."""

import fcntl
import os
import signal
import subprocess
import sys

import support
from support import process_exists, wait_until
from tfjob_local.kubelet.keeper import Keeper

# A launcher as small as can be: looks after one container, which runs the script argv[2].
LAUNCHER = """
import sys, time
sys.path.insert(0, {deploy!r})
from tfjob_local.kubelet.keeper import Keeper
from tfjob_local.kubelet.plan import ProcessPlan
from tfjob_local.kubelet.process import ContainerProcess
directory, script, grace = sys.argv[1:]
keeper = Keeper(directory, float(grace), on_event=lambda text: print(text, file=sys.stderr, flush=True))
plan = ProcessPlan("tensorflow", ("/bin/sh", "-c", script), {{}}, directory)
process = ContainerProcess(plan, directory + "/log", keeper.run_id + "/x/1",
                           on_end=lambda process: keeper.group_ended(process.pid))
keeper.group_started(process.pid)
print(keeper.pid, process.pid, flush=True)
while process.poll() is None:
    keeper.check()
    time.sleep(0.01)
keeper.close()
"""
# Runs until it is killed; its pid is in the file $1.
CHILD = """echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; while :; do sleep 0.05; done"""


class KeeperTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.write("child.sh", CHILD)
        self.write("stubborn.sh", f"trap '' TERM; {CHILD}")

    def launch(self, script, *pids, grace=0.3):
        """Starts the launcher; waits until its container has written the files `pids`."""
        program = LAUNCHER.format(deploy=os.path.join(support.REPOSITORY, "deploy"))
        self.launcher = subprocess.Popen(
            [sys.executable, "-c", program, self.directory, script, str(grace)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(self._close_launcher)
        self.keeper, *self.pids = (int(word) for word in self.launcher.stdout.readline().split())
        for name in pids:
            wait_until(lambda name=name: os.path.exists(self.path(name)), name)
            self.pids.append(int(self.read(name)))

    def _close_launcher(self):
        self.launcher.kill()
        self.launcher.wait()
        self.launcher.stdout.close()
        self.launcher.stderr.close()

    def kill_launcher(self):
        self.assertTrue(all(process_exists(pid) for pid in [self.keeper, *self.pids]))
        self.launcher.kill()
        self.launcher.wait()

    def assert_all_gone(self):
        for pid in [*self.pids, self.keeper]:
            wait_until(lambda pid=pid: not process_exists(pid), f"{pid} has ended")

    def keeper_log(self):
        return self.read("keeper.log") if os.path.exists(self.path("keeper.log")) else ""

    def test_killed_launcher_with_a_shell_and_its_child(self):
        self.launch("sh child.sh child & sh child.sh other & wait", "child", "other")
        self.kill_launcher()
        self.assert_all_gone()
        self.assertIn("all have ended", self.keeper_log())
        self.assertNotIn("killing", self.keeper_log())

    def test_child_that_ignores_sigterm(self):
        self.launch("exec sh stubborn.sh child", "child")
        self.kill_launcher()
        self.assert_all_gone()
        self.assertRegex(self.keeper_log(), r"still there after 0.3 s, killing .*\n.* all have ended\n$")

    def test_child_in_a_session_of_its_own(self):
        self.launch("setsid sh stubborn.sh child & wait", "child")
        self.assertEqual(os.getsid(self.pids[1]), self.pids[1])
        self.kill_launcher()
        self.assert_all_gone()

    def test_child_without_the_mark(self):
        """One that has emptied its environment is still of its group."""
        self.launch('env -i PATH="$PATH" sh stubborn.sh child & wait', "child")
        self.kill_launcher()
        self.assert_all_gone()

    def test_sigterm_comes_once(self):
        """Keelson's programs take a second one for "at once", without a snapshot."""
        # It ends half a second after the first one, so that there is time for another.
        script = """
            trap 'echo TERM >> terms; ending=1' TERM
            echo $$ > pid.tmp; mv pid.tmp pid
            n=0
            while [ $n -lt 10 ]; do sleep 0.05; [ -z "$ending" ] || n=$((n + 1)); done
            echo end >> terms
        """
        self.launch(script, "pid", grace=30)
        self.kill_launcher()
        self.assert_all_gone()
        self.assertEqual(self.read("terms"), "TERM\nend\n")

    def test_the_whole_grace_is_given_at_once(self):
        """Every process has it all: one that needs the others is not asked before them."""
        # Each ends when it sees that the other was asked, too.
        child = """
            trap 'echo > "asked-$1"' TERM
            echo $$ > "$1.tmp"; mv "$1.tmp" "$1"
            while [ ! -e "asked-$1" ] || [ ! -e "asked-$2" ]; do sleep 0.05; done
        """
        self.write("mutual.sh", child)
        self.launch("setsid sh mutual.sh b a & exec sh mutual.sh a b", "a", "b", grace=30)
        self.kill_launcher()
        self.assert_all_gone()
        self.assertNotIn("killing", self.keeper_log())

    def test_killed_keeper_is_replaced(self):
        self.launch("exec sh stubborn.sh child", "child")
        os.kill(self.keeper, signal.SIGKILL)
        self.assertEqual(
            self.launcher.stderr.readline(),
            f"the keeper (process {self.keeper}) was killed, another one has taken its place\n",
        )
        self.launcher.kill()
        self.launcher.wait()
        self.assert_all_gone()

    def test_stop_signals_do_not_end_the_keeper(self):
        # One that the kernel's signal does not end: it is left to the keeper.
        self.launch("exec sh stubborn.sh child", "child")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(self.keeper, number)
        self.kill_launcher()
        self.assert_all_gone()
        self.assertIn("all have ended", self.keeper_log())

    def test_keeper_ends_with_its_job(self):
        self.launch("exit 0")
        _, errors = self.launcher.communicate(timeout=support.DEADLINE_SECONDS)
        self.assertEqual((self.launcher.returncode, errors), (0, ""))
        self.assertFalse(process_exists(self.keeper))
        self.assertEqual(self.keeper_log(), "")


class CloseTest(support.TemporaryDirectoryTest):
    def test_close_ends_what_is_left(self):
        with Keeper(self.directory, grace_seconds=0.1) as keeper:
            environment = {**os.environ, "KEELSON_RUN": f"{keeper.run_id}/x/1"}
            stray = subprocess.Popen(["sleep", "60"], env=environment, start_new_session=True)
            self.addCleanup(stray.wait)
            # A process of another run, whose id has the same beginning.
            environment = {**os.environ, "KEELSON_RUN": f"{keeper.run_id}0/x/1"}
            other = subprocess.Popen(["sleep", "60"], env=environment)
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        self.assertFalse(process_exists(stray.pid))
        self.assertTrue(process_exists(other.pid))

    def test_close_with_a_killed_keeper(self):
        events = []
        keeper = Keeper(self.directory, grace_seconds=0.1, on_event=events.append)
        stray = subprocess.Popen(
            ["sleep", "60"], env={**os.environ, "KEELSON_RUN": f"{keeper.run_id}/x/1"}, start_new_session=True
        )
        self.addCleanup(stray.wait)
        pid = keeper.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not process_exists(pid), "the keeper has ended")
        keeper.close()
        self.assertFalse(process_exists(stray.pid))
        self.assertEqual(len(events), 1)
        keeper.close()

    def test_telling_a_killed_keeper(self):
        events = []
        keeper = Keeper(self.directory, on_event=events.append)
        self.addCleanup(keeper.close)
        pid = keeper.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not process_exists(pid), "the keeper has ended")
        keeper.group_started(2**22 + 1)
        keeper.check()
        self.assertEqual(events, [f"the keeper (process {pid}) was killed, another one has taken its place"])
        self.assertNotEqual(keeper.pid, pid)

    def test_it_leaves_the_launchers_descriptors_alone(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        with Keeper(self.directory) as keeper:
            os.close(write_end)
            self.assertEqual(os.read(read_end, 1), b"")
            names = {os.readlink(f"/proc/{keeper.pid}/fd/{fd}") for fd in (1, 2)}
            self.assertEqual(names, {"/dev/null"})
            self.assertEqual(os.getsid(keeper.pid), keeper.pid)
            self.assertEqual(os.readlink(f"/proc/{keeper.pid}/cwd"), "/")

    def test_it_holds_a_lock_until_nothing_is_left(self):
        """When the launcher is gone, what it has started may still write."""
        lock = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Keeper(self.directory, keep_open=(lock,)):
            os.close(lock)
            other = os.open(self.path("lock"), os.O_RDWR)
            self.addCleanup(os.close, other)
            with self.assertRaises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_its_log_is_no_link(self):
        os.symlink(self.path("elsewhere"), self.path("keeper.log"))
        with Keeper(self.directory, grace_seconds=0.1) as keeper:
            environment = {**os.environ, "KEELSON_RUN": f"{keeper.run_id}/x/1"}
            stray = subprocess.Popen(["sleep", "60"], env=environment, start_new_session=True)
            self.addCleanup(stray.wait)
        self.assertFalse(process_exists(stray.pid))
        self.assertFalse(os.path.exists(self.path("elsewhere")))
