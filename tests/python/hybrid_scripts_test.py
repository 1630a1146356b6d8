"""Scripts whose agents hold variables beside a parameter server."""

import json
import os
import signal
import unittest

from collective_scripts_test import SCRIPT, LineTest

import keelson


class HybridScriptsTest(LineTest):
    def write_hybrid(self, scripts, text=SCRIPT):
        """A step is the mean over a batch of each."""
        given = f'seed=5, placement={{"*": "workers"}}, consistency=keelson.Sync({scripts})'
        self.write_script(text.replace("seed=5", given))

    def cluster_of(self, scripts, **more):
        return super().cluster_of(scripts, servers=True, **more)

    def await_all(self, cluster, scripts):
        self.await_end(cluster, scripts)
        self.assertEqual([cluster.wait(role) for role in ("chief", "ps")], [0, 0], cluster.logs())

    def shards(self):
        with open(os.path.join(self.model_dir, "placement.json"), encoding="utf-8") as file:
            shards = json.load(file)["shards"]
        return [(shard.get("host", "a server"), shard["bytes"]) for shard in shards]

    def test_the_agents_hold_what_is_placed_on_workers(self):
        self.write_hybrid(2)
        with self.cluster_of(2) as cluster:
            self.await_all(cluster, 2)
            self.check_model(300, 2)
            self.check_records(cluster, 2)
        self.assertEqual(self.shards(), [("a server", 0), ("worker-0", 16), ("worker-1", 4)])

    def test_scripts_and_agents_that_are_killed_lose_nothing(self):
        self.write_hybrid(3)
        with self.cluster_of(3) as cluster:
            self.kill_a_script_and_an_agent(cluster)
            self.await_all(cluster, 3)
            self.check_model(200, 3)
            self.assertNotIn("restored from", cluster.log(role="chief"))

    def test_the_chief_may_write_and_read_every_part(self):
        self.write_hybrid(2, SCRIPT.replace(', model_dir="MODEL"', ""))
        with self.cluster_of(2, chief_flags=["--checkpoint_writer=chief"]) as cluster:
            self.tell("slow")
            self.await_steps(cluster, 1, 20)
            os.kill(cluster.agent(1), signal.SIGKILL)
            self.assertEqual(cluster.wait("worker", 1), 138, cluster.logs())
            self.start_again(cluster, 1)
            self.await_all(cluster, 2)
            self.assertEqual(keelson.load_state_dict(self.model_dir).step, 300)
            self.assertIn("of worker-1 has been restarted and restored from", cluster.log(role="chief"))


class HybridScriptTest(LineTest):
    """One that starts its chief and server."""

    given = {"records": 16, "batch_size": 4, "optimizer": keelson.Sgd(lr=0.5), "placement": {"*": "workers"}}

    def test_tables_are_on_the_server(self):
        rows = dict.fromkeys(range(5), 1.0)
        with keelson.join("rows", tables={"ids": keelson.Table(1, init=1.0)}, variables={"w": [1.0]}, max_steps=32,
                          model_dir=self.model_dir, **self.given) as job:  # fmt: skip
            for step in job.steps():
                ids = [record % 5 for record in step.records]
                found = step.rows("ids", ids)
                for one, position in zip(ids, found.positions):
                    self.assertAlmostEqual(found.values[position, 0], rows[one], delta=1e-5)
                for one in set(ids):
                    rows[one] -= 0.5 * 0.01
                self.assertTrue(step.push({"w": [0.25], "ids": [[0.01] for _ in set(ids)]}, 0.5))
        state = keelson.load_state_dict(self.model_dir)
        self.assertEqual(state["w"].elements().tolist(), [1 - 32 * 0.125])
        keys, values = state.tables["ids"]
        for one, value in zip(keys.data.cast("q"), values.elements().tolist()):
            self.assertAlmostEqual(value[0], rows[one], delta=1e-5)
        with open(os.path.join(self.model_dir, "placement.json"), encoding="utf-8") as file:
            placed = json.load(file)
        self.assertEqual([shard.get("host") for shard in placed["shards"]], [None, "worker-0"])
        self.assert_nothing_runs()

    def test_one_that_leaves_early_is_gone_on_with(self):
        for steps, leaves in ((5, True), (10, False)):
            with keelson.join("line", variables={"w": [0.0]}, max_steps=10, model_dir=self.model_dir, **self.given) as job:
                for step in job.steps():
                    self.assertTrue(step.push({"w": [1.0]}, 1.0))
                    if leaves and step.number == 4:
                        break
            state = keelson.load_state_dict(self.model_dir)
            self.assertEqual((state.step, state["w"].elements().tolist()), (steps, [-0.5 * steps]))
            self.assert_nothing_runs()

    def test_places_that_make_no_sense(self):
        for placement, expected in (
            ({"*": "gpu"}, "^placement of '\\*': expected 'servers' or 'workers', found 'gpu'$"),
            ({"*": ["workers"]}, r"^placement of '\*': expected 'servers' or 'workers', found \['workers'\]$"),
            ({3: "workers"}, "^placement: expected patterns of names, found 3$"),
            ("workers", "^placement: expected places by patterns, as in {\"\\*\": \"workers\"}, found 'workers'$"),
            ({"x": "workers"}, r'placement\.groups\[0\]\.variables: expected '),
        ):
            with self.assertRaisesRegex(keelson.JoinError, expected):
                keelson.join("line", variables={"w": [0.0]}, max_steps=10, model_dir=self.model_dir,
                             **{**self.given, "placement": placement}).__enter__()  # fmt: skip
        self.assert_nothing_runs()


if __name__ == "__main__":
    unittest.main()
