"""GPU limits deal the machine's GPUs out."""

import kubelet_support
from kubelet_support import job, spec
from tfjob_local.kubelet.gpu_dealer import GpuDealer


def gpu_spec(replica_type, replicas, limit):
    return spec(replica_type, replicas, limits={"nvidia.com/gpu": limit})


class GpusTest(kubelet_support.WarningsTest):
    def deal(self, gpus, tfjob, *replicas):
        dealer = GpuDealer(gpus, self.warn)
        return [dealer.visible_devices(tfjob, *replica) for replica in replicas]

    def test_in_pod_order(self):
        tfjob = job(gpu_spec("Worker", 2, "2"), spec("PS"))
        dealt = self.deal(("0", "1", "2", "3"), tfjob, ("Worker", 0), ("Worker", 1), ("PS", 0))
        self.assertEqual(dealt, ["0,1", "2,3", ""])
        self.assertEqual(self.warnings, [])

    def test_a_new_pod_gets_the_same_ones_again(self):
        tfjob = job(gpu_spec("Worker", 2, "1"))
        dealt = self.deal(("0", "1"), tfjob, ("Worker", 0), ("Worker", 1), ("Worker", 0), ("Worker", 1))
        self.assertEqual(dealt, ["0", "1", "0", "1"])

    def test_shared_evenly_where_there_are_not_enough(self):
        tfjob = job(gpu_spec("Worker", 4, "1"))
        dealt = self.deal(("0", "1"), tfjob, *(("Worker", i) for i in range(4)))
        self.assertEqual(dealt, ["0", "1", "0", "1"])
        self.assertEqual(
            self.warnings, ["nvidia.com/gpu: more are wanted than this machine has, replicas share them"]
        )

    def test_more_than_there_are(self):
        self.assertEqual(self.deal(("5",), job(gpu_spec("Worker", 1, "4")), ("Worker", 0)), ["5"])
        self.assertEqual(self.warnings, ["Worker: nvidia.com/gpu: 4 wanted by each, this machine has 1 GPU"])

    def test_machine_without_gpu(self):
        self.assertEqual(self.deal((), job(gpu_spec("Worker", 1, "1")), ("Worker", 0)), [""])
        self.assertEqual(self.warnings, ["Worker: nvidia.com/gpu: 1 wanted by each, this machine has no GPU"])

    def test_left_alone_without_any_limit(self):
        self.assertEqual(self.deal(("0",), job(spec("Worker")), ("Worker", 0)), [None])
        self.assertEqual(self.deal(None, job(gpu_spec("Worker", 1, "1")), ("Worker", 0)), [None])

    def test_replicas_scaled_away_give_theirs_back(self):
        dealer = GpuDealer(("0", "1"), self.warn)
        two = job(gpu_spec("Worker", 2, "1"), gpu_spec("Evaluator", 1, "1"))
        self.assertEqual(dealer.visible_devices(two, "Worker", 0), "0")
        self.assertEqual(dealer.visible_devices(two, "Worker", 1), "1")
        one = job(gpu_spec("Worker", 1, "1"), gpu_spec("Evaluator", 1, "1"))
        self.assertEqual(dealer.visible_devices(one, "Evaluator", 0), "1")
        self.assertEqual(self.warnings, [])
