"""Tests the parts of the scripts that need no job."""

import os
import tempfile
import unittest
from unittest import mock

import check_results
import compare_ctr
import compare_torch
import plot_scaling
import python_ctr
import train_rate


class TrainRateTest(unittest.TestCase):
    def test_leaves_out_warm_up_and_the_last_step(self):
        samples = [train_rate.Sample(*s) for s in ((0, 0), (9, 10), (10, 30), (11, 50), (12, 70), (90, 100))]
        self.assertAlmostEqual(train_rate.rate_of(samples, steps=100), 20)

    def test_too_short_a_job_is_an_error(self):
        samples = [train_rate.Sample(0, 0), train_rate.Sample(1, 50), train_rate.Sample(2, 100)]
        with self.assertRaisesRegex(RuntimeError, "too soon"):
            train_rate.rate_of(samples, steps=100)

    def test_a_status_that_is_not_there_yet_has_no_step(self):
        self.assertIsNone(train_rate.read_step("/nonexistent/status.json"))

    def test_what_is_not_computing_is_the_exchange(self):
        metrics = "".join(
            f'keelson_chief_worker_{name} {value}\n'
            for name, value in (
                ('steps_total{task="worker-0"}', 30),
                ('steps_total{task="worker-1"}', 10),
                ('step_seconds_total{task="worker-0",kind="compute"}', 3),
                ('step_seconds_total{task="worker-0",kind="pull"}', 0.5),
                ('step_seconds_total{task="worker-1",kind="push"}', 1.5),
            )
        )
        times = train_rate.read_step_times("# HELP some text\n" + metrics)
        self.assertEqual(times, train_rate.StepTimes(steps=40, compute=3, exchange=2))
        self.assertEqual(times.exchanges(workers=2), 40)
        self.assertIsNone(train_rate.read_step_times("# HELP some text\n"))

    def test_the_launcher_is_started_by_its_own_interpreter(self):
        """A script may run in a virtual environment without PyYAML."""
        self.assertTrue(os.access(train_rate.LAUNCHER, os.X_OK))
        with open(train_rate.LAUNCHER, encoding="utf-8") as file:
            self.assertEqual(file.readline(), "#!/usr/bin/python3\n")
        started = []
        with mock.patch("subprocess.Popen", side_effect=lambda command, **_: started.append(command) or 1 / 0):
            with self.assertRaises(ZeroDivisionError):
                train_rate.measure("f32", 10, "/bin", None)
        self.assertEqual(started[0][0], train_rate.LAUNCHER)


class ScriptWorkersTest(unittest.TestCase):
    def test_the_job_has_two_scripts_beside_keelsons_own_programs(self):
        specs = compare_torch.manifest_of({"image": "torch", "command": ["train"]})["spec"]["tfReplicaSpecs"]
        found = {kind: (spec["replicas"], spec["template"]["spec"]["containers"][0]) for kind, spec in specs.items()}
        self.assertEqual({kind: count for kind, (count, _) in found.items()}, {"Chief": 1, "PS": 1, "Worker": 2})
        self.assertEqual(found["PS"][1]["command"] + found["PS"][1]["args"], ["ps_server", "--config=script"])
        self.assertEqual(found["Worker"][1]["command"], ["train"])


class CompareCtrTest(unittest.TestCase):
    def test_the_dense_network_has_the_same_layers_but_for_the_lookups(self):
        for model in compare_ctr.NETWORKS:
            tables, dense = (compare_ctr.config_of(model, kind, "/d", 100) for kind in (True, False))
            self.assertEqual(tables.count("embedding {"), compare_ctr.FIELDS)
            self.assertEqual(dense.count("embedding {"), 0)
            self.assertEqual(dense.count("slice {"), compare_ctr.FIELDS)
            network = compare_ctr.NETWORKS[model]()
            self.assertIn(network, tables)
            self.assertIn(network, dense)

    def test_the_report_has_ratios_of_medians(self):
        with mock.patch("builtins.print") as printed:
            compare_ctr.report({"dlrm tables": [60.0, 50.0, 70.0], "dlrm torch": [30.0, 20.0, 40.0]})
        lines = [call.args[0] for call in printed.call_args_list]
        self.assertEqual(lines[1], "dlrm torch            30 examples/s (20-40), tables have 2.00")


class PythonCtrTest(unittest.TestCase):
    def test_the_area_is_the_share_of_pairs_in_order(self):
        self.assertEqual(python_ctr.area_of([0.1, 0.4, 0.3, 0.9], [0, 1, 0, 1]), 1)
        self.assertEqual(python_ctr.area_of([0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0]), 0.25)


class ExecutableTest(unittest.TestCase):
    def test_what_names_its_interpreter_can_be_run(self):
        folder = os.path.dirname(os.path.abspath(__file__))
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                if file.read(2) == b"#!":
                    self.assertTrue(os.access(path, os.X_OK), name)


class CompareTorchTest(unittest.TestCase):
    def test_names_torch_and_its_blas(self):
        maps = "7f r-xp 0 /usr/lib/libopenblas-r0.3.so\n7f r--p 0 /usr/lib/libopenblas-r0.3.so\n7f /usr/libc.so.6\n"
        for build, found, expected in (
            ("Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release", "", "PyTorch 2.0, BLAS mkl"),
            ("BLAS_INFO=generic, X=1", maps, "PyTorch 2.0, BLAS generic (libopenblas-r0.3.so)"),
            ("nothing", "", "PyTorch 2.0, BLAS unknown"),
        ):
            self.assertEqual(compare_torch.describe_torch("2.0", build, found), expected)


class PlotScalingTest(unittest.TestCase):
    def test_reads_what_ps_bench_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scaling.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    "servers,workers,direction,gbytes_per_s,min,max,cpu_s_per_gbyte,raw_socket_gbytes_per_s\n"
                    "2,4,push,3.5,3,4,0.5,5\n"
                    "2,1,push,2.5,2,3,0.5,5\n"
                    "1,1,pull,1.5,1,2,0.5,5\n"
                )
            points = plot_scaling.read_points(path)
        lines = plot_scaling.lines_of(points, "push")
        self.assertEqual([(p.workers, p.goodput) for p in lines[2]], [(1, 2.5), (4, 3.5)])
        self.assertNotIn(1, lines)


class CheckResultsTest(unittest.TestCase):
    def result(self, **changes):
        result = {key: "x" for key in check_results.TEXTS}
        result.update({key: 1.5 for key in check_results.NUMBERS})
        result.update(changes)
        return result

    def test_complete_results_have_no_problems(self):
        self.assertEqual(list(check_results.problems([self.result()])), [])

    def test_names_what_is_wrong(self):
        for changes, problem in (({"p50_us": 0}, "p50_us"), ({"wire": ""}, "wire"), ({"more": 1}, "more")):
            (found,) = check_results.problems([self.result(**changes)])
            self.assertIn(problem, found)
        self.assertEqual(len(list(check_results.problems([]))), 1)
