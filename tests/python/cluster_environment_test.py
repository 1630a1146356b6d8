"""What a script reads of its cluster; the rest is the agent's to read, and to refuse."""

import json
import os
import unittest
from unittest import mock

import support  # noqa: F401

from keelson import Async
from keelson.cluster_environment import CLUSTER_VARIABLES, holds_shard, in_cluster, processes, task_index
from keelson.settings import SyncOfCluster, default_consistency


def tf_config(role, index, **cluster):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


class ClusterEnvironmentTest(unittest.TestCase):
    def within(self, **variables):
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)
        for name in {*CLUSTER_VARIABLES, "HOSTNAME"} - variables.keys():
            os.environ.pop(name, None)

    def check(self, variables, index, of):
        with self.subTest(variables=variables):
            self.within(**variables)
            self.assertTrue(in_cluster() and holds_shard())
            self.assertEqual((task_index(), processes()), (index, of))
            self.assertEqual(default_consistency(), SyncOfCluster(of))

    def test_without_servers_the_scripts_hold_the_model(self):
        self.check(tf_config("worker", 1, worker=["a:1", "b:1"]), 1, 2)
        self.check(tf_config("chief", 0, chief=["a:1"], worker=["b:1", "c:1"]), 0, 3)
        self.check(tf_config("worker", 1, chief=["a:1"], worker=["b:1", "c:1"], evaluator=["d:1"]), 2, 3)
        self.check(tf_config("master", 0, master=["a:1"], worker=["b:1"]), 0, 2)

    def test_launchers_number_them(self):
        self.check({"RANK": "1", "WORLD_SIZE": "3", "PET_NNODES": "3", "PET_NODE_RANK": "1"}, 1, 3)
        self.check({"PET_NODE_RANK": "2", "PET_NNODES": "2:4"}, 2, 4)
        self.check({"PET_RDZV_ENDPOINT": "a-0:1", "PET_NNODES": "1:4", "HOSTNAME": "a-worker-3.a"}, 3, 4)
        self.check({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 1, 2)

    def test_servers_hold_the_model(self):
        for variables in (
            tf_config("worker", 1, chief=["c:1"], ps=["p:1"], worker=["a:1", "b:1"]),
            {"TF_CONFIG": json.dumps({"sparseCluster": {"ps": ["p:1"], "worker": {"1": "b:1"}},
                                      "task": {"type": "worker", "index": 1}})},
        ):  # fmt: skip
            with self.subTest(variables=variables):
                self.within(**variables)
                self.assertFalse(holds_shard())
                self.assertEqual(task_index(), 1)
                self.assertEqual(default_consistency(), Async())

    def test_one_process_is_no_cluster(self):
        for variables in ({}, {"RANK": "0", "WORLD_SIZE": "1"}, {"PET_NODE_RANK": "0", "PET_NNODES": "1:1"}):
            with self.subTest(variables=variables):
                self.within(**variables)
                self.assertFalse(in_cluster() or holds_shard())

    def test_what_makes_no_sense_is_the_agents_to_refuse(self):
        for text in ("{", "[]", '{"cluster": []}'):
            with self.subTest(text=text):
                self.within(TF_CONFIG=text)
                self.assertTrue(in_cluster())
                self.assertFalse(holds_shard())


if __name__ == "__main__":
    unittest.main()
