"""docs/metrics.md has what the programs export, and nothing else; and how queries are read here."""

import unittest

from support import Selector, documented_metrics, exported_names, figure_names, problems_of, selectors


class MetricsDocumentTest(unittest.TestCase):
    def test_has_what_the_programs_export(self):
        self.assertEqual(sorted(exported_names() - set(documented_metrics())), [])
        self.assertEqual(sorted(set(documented_metrics()) - exported_names()), [])
        self.assertGreater(len(exported_names()), 60)

    def test_has_the_figures_of_workers(self):
        self.assertLessEqual(figure_names(), set(documented_metrics()))
        self.assertIn("keelson_worker_push_retries_total", figure_names())
        self.assertIn("keelson_chief_worker_push_retries_total", figure_names())
        self.assertNotIn("keelson_worker_staleness_max", figure_names())

    def test_counters_are_called_total(self):
        for name, metric in documented_metrics().items():
            self.assertEqual(metric.type == "counter", name.endswith("_total"), name)


class SelectorsTest(unittest.TestCase):
    def assert_selects(self, query, **expected):
        self.assertEqual(selectors(query), [Selector(n, frozenset(labels)) for n, labels in expected.items()])

    def test_finds_names_with_their_labels(self):
        self.assert_selects("up", up=())
        self.assert_selects('sum by (task) (rate(a_total{task=~"x{1}", kind!="y"}[5m])) > 0', a_total=("task", "kind"))
        self.assert_selects("a > ignoring (task) group_left (b) c offset 5m", a=(), c=())
        self.assert_selects('time() - 1e3 * last_over_time(a{x="b or c"}[1h]) and on () d != Inf', a=("x",), d=())
        self.assert_selects("histogram_quantile(0.9, sum without(job) (a_bucket[$__rate_interval]))", a_bucket=())

    def test_says_what_is_wrong(self):
        self.assertEqual(problems_of('keelson_chief_members{role="ps", state="lost", job="a"} > 0'), [])
        self.assertEqual(problems_of("rate(keelson_worker_staleness_bucket[5m])"), [])
        self.assertEqual(problems_of("a:b", own=frozenset({"a:b"})), [])
        for query, problem in (
            ("keelson_chief_lost > 0", "docs/metrics.md has no keelson_chief_lost"),
            ('keelson_chief_loss{task="a"}', "keelson_chief_loss has no label task"),
            ("keelson_worker_staleness", "keelson_worker_staleness is a histogram"),
            ("rate(keelson_chief_loss[5m])", "rate of keelson_chief_loss, which is no counter"),
            ("time()", "no metric in: time()"),
        ):
            self.assertIn(problem, "\n".join(problems_of(query)))
