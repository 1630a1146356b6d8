"""Scripts as the processes of a cluster without parameter servers: their agents hold the model, the first one leads."""

import contextlib
import fcntl
import os
import signal
import unittest
from collections import Counter

from real_job import RealJobTest
from script_cluster import ScriptCluster, await_true

from keelson import load_state_dict

RECORDS, BATCH, EPOCHS = 48, 4, 50
# Prints the records of each step that counts. A step moves "w" by the mean of its records' numbers, so that the sum over
# whole epochs does not depend on who computes what. "b" is there for a second shard.
SCRIPT = """
import os, time
import keelson

def told(what):
    return os.path.exists(os.path.join("DIRECTORY", what))

with keelson.join("line", variables={"w": [0.0], "b": [0.0] * 4}, optimizer=keelson.Sgd(lr=0.001), records=48,
                  batch_size=int(os.environ.get("BATCH", "4")), epochs=50, model_dir="MODEL", seed=5) as job:
    print("joined", job.global_step, flush=True)
    for step in job.steps():
        mean = sum(step.records) / len(step.records)
        gradients = {"w": [mean], "b": [1.0] * 4}
        if told("diverge"):
            gradients["w"] = [float("inf")]
        if step.push(gradients, loss=float("nan") if told("diverge") else 1.0):
            print("counts", step.number, *step.records, flush=True)
        if told("leave-%s" % os.getpid()):
            break
        time.sleep(0.05 if told("slow") else 0.001)
print("left at", job.global_step, flush=True)
"""


class LineTest(RealJobTest):
    """Of jobs of SCRIPT, which say how it is started."""

    def setUp(self):
        super().setUp()
        self.write_script(SCRIPT)

    def write_script(self, text):
        self.script = self.write("line.py", text.replace("DIRECTORY", self.directory).replace("MODEL", self.model_dir))

    def cluster_of(self, scripts, servers=False, **more):
        return ScriptCluster(self, self.script, scripts, servers=servers, **more)

    def tell(self, what):
        self.path_of(what, "")

    def untell(self, what):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.directory, what))

    def steps_of(self, cluster, index):
        return [line.split()[1:] for line in cluster.lines(index) if line.startswith("counts")]

    def start_again(self, cluster, index):
        """Lets the job go on at its speed once the script is in it again."""
        cluster.start("worker", index)
        await_true(lambda: sum(line.startswith("joined") for line in cluster.lines(index)) == 2, cluster.logs)
        self.untell("slow")

    def await_steps(self, cluster, index, count):
        await_true(lambda: len(self.steps_of(cluster, index)) >= count, cluster.logs)

    def await_end(self, cluster, scripts):
        codes = [cluster.wait("worker", index) for index in range(scripts)]
        self.assertEqual(codes, [0] * scripts, cluster.logs())

    def kill_a_script_and_an_agent(self, cluster):
        """Of three, one after the other."""
        self.tell("slow")
        self.await_steps(cluster, 1, 20)
        cluster.kill("worker", 1)
        self.start_again(cluster, 1)
        self.tell("slow")
        os.kill(cluster.agent(2), signal.SIGKILL)
        self.assertEqual(cluster.wait("worker", 2), 138, cluster.logs())
        self.start_again(cluster, 2)

    def check_model(self, steps, scripts):
        state = load_state_dict(self.model_dir)
        self.assertEqual(state.step, steps)
        self.assertEqual(steps, EPOCHS * RECORDS // (BATCH * scripts))
        self.assertAlmostEqual(state["w"].data.cast("f")[0] / (-0.001 * steps * (RECORDS - 1) / 2), 1.0, delta=1e-5)
        for value in state["b"].data.cast("f"):
            self.assertAlmostEqual(value / (-0.001 * steps), 1.0, delta=1e-5)

    def check_records(self, cluster, scripts):
        """Those of processes that have printed all of their steps."""
        used = Counter(record for index in range(scripts) for step in self.steps_of(cluster, index) for record in step[1:])
        self.assertEqual(used, Counter({str(record): EPOCHS for record in range(RECORDS)}))


class CollectiveScriptsTest(LineTest):
    def lose_both_holders(self, cluster):
        """Of a shard, of a job of three."""
        self.tell("slow")
        self.await_steps(cluster, 1, 40)
        for agent in [cluster.agent(1), cluster.agent(2)]:
            os.kill(agent, signal.SIGKILL)
        self.assertEqual([cluster.wait("worker", index) for index in (1, 2)], [138, 138], cluster.logs())
        for index in (1, 2):
            cluster.start("worker", index)
        self.untell("slow")
        self.await_end(cluster, 3)
        self.assertEqual(load_state_dict(self.model_dir).step, 200)
        self.assertRegex(cluster.log(0), "restored from .*: lost steps 0 to [0-9]+ of its shard")

    def test_a_step_is_the_mean_of_a_batch_of_each(self):
        with self.cluster_of(3) as cluster:
            self.await_end(cluster, 3)
            self.check_model(200, 3)
            self.check_records(cluster, 3)
            # One that comes late leaves its first batches to the others.
            self.assertGreater(len(self.steps_of(cluster, 1)), 100)
            self.assertIn("left at 200", cluster.lines(0))

    def check_ranks(self, *variables):
        with self.cluster_of(2, ranks=variables) as cluster:
            self.await_end(cluster, 2)
            self.check_model(300, 2)
            self.check_records(cluster, 2)

    def test_processes_with_ranks_find_the_first_one(self):
        self.check_ranks("RANK", "WORLD_SIZE")

    def test_processes_of_mpirun_find_the_first_one(self):
        self.check_ranks("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")

    def test_scripts_and_agents_that_are_killed_lose_nothing(self):
        with self.cluster_of(3) as cluster:
            self.kill_a_script_and_an_agent(cluster)
            self.await_end(cluster, 3)
            self.check_model(200, 3)
            self.assertNotIn("from the snapshot", "".join(map(cluster.log, range(3))))

    def test_two_agents_that_die_at_once_cost_what_came_after_the_snapshot(self):
        with self.cluster_of(3) as cluster:
            self.lose_both_holders(cluster)

    def test_the_first_script_alone_may_have_the_model_directory(self):
        own = """model_dir="MODEL" if '"index": 0' in os.environ["TF_CONFIG"] else None, checkpoint_writer="chief\""""
        text = SCRIPT.replace('model_dir="MODEL"', own)
        self.write_script(text)
        with self.cluster_of(3) as cluster:
            self.lose_both_holders(cluster)
        self.write_script(text.replace("epochs=50", "epochs=60"))
        with self.cluster_of(3) as longer:
            self.await_end(longer, 3)
            self.assertIn("joined 200", longer.lines(0))
            self.assertEqual(load_state_dict(self.model_dir).step, 240)

    def test_another_job_is_refused_a_model_directory_that_is_in_use(self):
        with self.cluster_of(2) as first:
            self.tell("slow")
            self.await_steps(first, 1, 5)
            with self.cluster_of(2) as second:
                self.assertEqual(second.wait("worker", 0), 2, second.logs())
                self.assertIn("expected a directory that no other job trains in", second.log(0))
            self.untell("slow")
            self.await_end(first, 2)
            self.check_model(300, 2)

    def test_a_script_that_leaves_hands_its_shard_over(self):
        with self.cluster_of(2) as cluster:
            self.tell("slow")
            self.await_steps(cluster, 1, 20)
            self.tell(f"leave-{cluster.pid('worker', 1)}")
            self.assertEqual(cluster.wait("worker", 1), 0, cluster.logs())
            self.assertRegex(cluster.log(0), "shard 1 of 2 ready: .* a copy")
            self.start_again(cluster, 1)
            self.await_end(cluster, 2)
            self.check_model(300, 2)
            self.assertNotIn("from the snapshot", cluster.log(0) + cluster.log(1))

    def test_a_script_that_is_asked_to_stop_hands_its_shard_over(self):
        with self.cluster_of(2) as cluster:
            self.tell("slow")
            self.await_steps(cluster, 1, 20)
            os.kill(cluster.pid("worker", 1), signal.SIGTERM)
            self.assertEqual(cluster.wait("worker", 1), 143, cluster.logs())
            self.start_again(cluster, 1)
            self.await_end(cluster, 2)
            self.check_model(300, 2)

    def test_the_job_goes_on_when_the_script_that_leads_is_started_again(self):
        with self.cluster_of(2) as cluster:
            self.await_steps(cluster, 0, 20)
            cluster.kill("worker", 0)
            cluster.start("worker", 0)
            self.await_end(cluster, 2)
            self.check_model(300, 2)

    def test_the_first_script_waits_for_the_end_of_the_one_before_it(self):
        """Whose agent has closed its address, and still has the model directory."""
        os.makedirs(self.model_dir)
        with open(os.path.join(self.model_dir, "JOB.lock"), "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with self.cluster_of(2) as cluster:
                await_true(lambda: "waiting for the end of another process" in cluster.log(0), cluster.logs)
                fcntl.flock(held, fcntl.LOCK_UN)
                self.await_end(cluster, 2)

    def test_another_script_is_refused_with_the_first_difference(self):
        with self.cluster_of(2, ranks=("RANK", "WORLD_SIZE")) as cluster:
            self.tell("slow")
            self.await_steps(cluster, 1, 20)
            cluster.kill("worker", 1)
            with cluster.with_environment(BATCH="5"):
                cluster.start("worker", 1)
            self.assertEqual(cluster.wait("worker", 1), 2, cluster.logs())
            self.assertIn("train.batch_size: expected 4, found 5", cluster.log(1))

    def test_a_place_that_makes_no_sense_is_the_scripts_error_too(self):
        with self.cluster_of(1, ranks=("PMI_RANK", "PMI_SIZE"), workers=1) as cluster:
            cluster.kill("worker")
            with cluster.with_environment(RANK="0"):
                cluster.start("worker")
            self.assertEqual(cluster.wait("worker"), 2, cluster.logs())
            expected = "JoinError: keelson_agent ended with 2: WORLD_SIZE: expected the number of processes beside RANK, found none"
            self.assertIn(expected, cluster.log())

    def test_all_learn_that_training_has_diverged(self):
        with self.cluster_of(2) as cluster:
            self.await_steps(cluster, 1, 20)
            self.tell("diverge")
            codes = [cluster.wait("worker", index) for index in range(2)]
            self.assertEqual(codes, [2, 2], cluster.logs())
            for index in range(2):
                self.assertIn("Diverged", cluster.log(index))


if __name__ == "__main__":
    unittest.main()
