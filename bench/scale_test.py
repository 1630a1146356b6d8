"""Tests the calculator of scale.py by hand-made measurements."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import scale


def result(workers, servers=100, answered=1.0, cores=1.0):
    calls = workers * (scale.heartbeat_rate(workers) + 1)
    return {
        "workers": workers,
        "servers": servers,
        "asynchronous": {
            "idle_cores": {"median": 0.001 * servers},
            "cores": {"median": cores},
            "wanted_per_second": calls,
            "answered_per_second": calls * answered,
            "memory": {"resident_bytes": 50e6 + 10e3 * workers, "threads": 20 + 2 * servers},
            "job_state_bytes": 80 * workers,
        },
        "synchronous": {"rounds": 10, "round_ms": {"median": 0.05 * workers}},
    }


class FitTest(unittest.TestCase):
    def test_finds_the_line_through_what_was_measured(self):
        cost = scale.fit([(100, 100, 51e6), (1000, 100, 60e6), (3000, 100, 80e6)])
        self.assertAlmostEqual(cost.fixed, 50e6, delta=1)
        self.assertAlmostEqual(cost.worker, 10e3, delta=0.01)
        self.assertEqual((cost.server, cost.worker_server), (0, 0))

    def test_tells_workers_from_servers_and_from_both_together(self):
        true = scale.Linear(5, 0.01, 2, 0.0001)
        sizes = [(100, 10), (100, 100), (100, 1000), (1000, 100), (1000, 1000)]
        cost = scale.fit([(w, s, true.at(w, s)) for w, s in sizes])
        for found, expected in zip(cost, true):
            self.assertAlmostEqual(found, expected, delta=1e-6 * max(1, expected))

    def test_no_cost_falls_with_size(self):
        cost = scale.fit([(100, 100, 300.0), (1000, 100, 200.0)])
        self.assertEqual(cost.worker, 0)
        self.assertTrue(200 <= cost.fixed <= 300, cost)

    def test_one_point_is_a_constant(self):
        self.assertEqual(scale.fit([(100, 100, 7.0)]), scale.Linear(fixed=7))


class NeedsTest(unittest.TestCase):
    def test_adds_up_the_calls_of_all_workers(self):
        costs = scale.Costs(
            call_us=scale.Linear(fixed=120),
            idle_cores=scale.Linear(server=0.001),
        )
        few = scale.needs_of(scale.Job(100, 100), costs)
        self.assertAlmostEqual(few.chief_cores, 0.1 + 100 * (4 + 1) * 120 / 1e6)
        # Many send heartbeats less often.
        many = scale.needs_of(scale.Job(1000, 100, step_rate=0.5), costs)
        self.assertAlmostEqual(many.chief_cores, 0.1 + 1000 * (1 + 0.5) * 120 / 1e6)

    def test_servers_share_the_model_and_its_traffic(self):
        needs = scale.needs_of(scale.Job(10, 4, model_gb=8, slots=2, step_rate=0.5, wire_factor=0.5), scale.Costs())
        self.assertAlmostEqual(needs.server_gb_per_s, 10 * 0.5 * 8 * 0.5 / 4)
        self.assertAlmostEqual(needs.snapshot_gb, 24)
        self.assertAlmostEqual(needs.snapshot_seconds, 6 / scale.Costs().snapshot_gb_per_s)

    def test_names_what_breaks_first(self):
        small = scale.Costs(chief_bytes=scale.Linear(fixed=1e6))
        for job, limit in (
            (scale.Job(5000, 1000, model_gb=0.001), "server: connections"),
            (scale.Job(100, 1, model_gb=1), "server: network"),
            (scale.Job(1, 1000, model_gb=100), "worker: network"),
            (scale.Job(1, 100, model_gb=100, step_rate=0.001), "worker: memory"),
        ):
            name, load = scale.first_limit(scale.needs_of(job, small), scale.Limits())
            self.assertEqual(name, limit)
            self.assertGreater(load, 1)


class RoundTest(unittest.TestCase):
    def round_ms(self, *measured):
        return scale.changes_of(
            [{"results": [dict(result(w), synchronous={"round_ms": {"median": ms}}) for w, ms in measured]}]
        )["round_ms"]

    def test_is_what_was_measured_where_it_was(self):
        measured = [(3000, 1753.0), (100, 13.0), (1000, 76.7)]
        found = self.round_ms(*measured)
        for workers, ms in measured:
            self.assertAlmostEqual(found.at(workers, 100), ms)

    def test_is_a_power_of_the_workers_between_the_sizes_and_beyond(self):
        found = self.round_ms((100, 10.0), (1000, 100.0), (2000, 400.0))
        for workers, ms in ((10, 1.0), (500, 50.0), (1500, 225.0), (10000, 10000.0)):
            self.assertAlmostEqual(found.at(workers, 100), ms)

    def test_one_size_is_in_proportion_and_several_values_of_one_have_a_mean(self):
        self.assertAlmostEqual(self.round_ms((1000, 76.0)).at(100, 100), 7.6)
        self.assertAlmostEqual(self.round_ms((1000, 50.0), (1000, 200.0)).at(1000, 100), 100)


class CheckTest(unittest.TestCase):
    def test_a_report_predicts_itself(self):
        report = {"results": [result(100, cores=0.16), result(1000, cores=0.4)]}
        checks = scale.checks_of(report, scale.Costs(**scale.changes_of([report])))
        self.assertEqual(len(checks), 10)
        for check in checks:
            self.assertAlmostEqual(check.error(), 0, places=6, msg=str(check))

    def test_a_chief_that_does_not_keep_up_says_nothing_of_its_cores(self):
        checks = scale.checks_of({"results": [result(3000, answered=0.1)]}, scale.Costs())
        self.assertNotIn("cores of the chief", [check.what for check in checks])

    def test_says_how_wrong_the_prediction_is(self):
        self.assertAlmostEqual(scale.Check(1, 1, "cores", 1.5, 2.0).error(), -0.25)
        self.assertIn("-25%", scale.check_table([scale.Check(1, 1, "cores", 1.5, 2.0)], markdown=False))


class ProgramTest(unittest.TestCase):
    def run_program(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = scale.main(arguments)
        return code, out.getvalue()

    def test_prints_a_line_for_each_size(self):
        code, text = self.run_program("--workers", "10,10000", "--servers", "1000", "--markdown")
        self.assertEqual(code, 0)
        self.assertIn("| 10,000 x 1,000 ", text)
        self.assertEqual(len(text.splitlines()), 4)

    def test_takes_costs_from_both_benchmarks(self):
        changes = scale.changes_of([{"results": [result(100)]}, [{"model": "1GB", "write_gbytes_per_s": 0.5}]])
        self.assertEqual(changes["snapshot_gb_per_s"], 0.5)
        self.assertAlmostEqual(changes["call_us"].fixed, 1800)

    def test_checks_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chief.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"results": [result(100, cores=0.16)]}, file)
            code, text = self.run_program("--check", path, "--costs", path)
            self.assertEqual(code, 0)
            self.assertIn("+0%", text)

    def test_a_file_without_measurements_is_one_line_and_exit_code_2(self):
        one_worker = json.dumps({"results": [{"workers": 5, "asynchronous": {}}]})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            for content in ("", "x", "[]", "{}", '{"results": 3}', '{"results": [1]}', one_worker, "\udcff"):
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(content)
                for flag in ("--costs", "--check"):
                    with self.subTest(content=content, flag=flag):
                        code, text = self.run_program(flag, path)
                        self.assertEqual(code, 2)
                        self.assertRegex(text, rf"^scale.py: {path}: expected [^\n]*, found [^\n]*\n$")
            os.remove(path)
            code, text = self.run_program("--costs", path)
        self.assertEqual((code, text), (2, f"scale.py: {path}: No such file or directory\n"))

    def test_refuses_numbers_that_make_no_sense(self):
        for flag in ("--workers=0", "--workers=1,", "--servers=-1", "--model_gb=-1", "--model_gb=nan", "--step_rate=inf"):
            with self.subTest(flag), self.assertRaises(SystemExit) as exit, contextlib.redirect_stderr(io.StringIO()) as text:
                scale.main([flag])
            self.assertEqual(exit.exception.code, 2)
            self.assertRegex(text.getvalue(), "expected .*, found ")


if __name__ == "__main__":
    unittest.main()
