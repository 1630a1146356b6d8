"""deploy/monitoring/prometheus_rules.yaml: its shape, its metrics, and with promtool when it alerts."""

import re
import shutil
import unittest
from pathlib import Path

import yaml
from support import FOLDER, REPOSITORY, documented_metrics, problems_of, promtool, selectors

PATH = FOLDER / "prometheus_rules.yaml"
SCENARIOS = Path(__file__).with_name("prometheus_rules_scenarios.yaml")
RULES = [rule for group in yaml.safe_load(PATH.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = frozenset(rule["record"] for rule in RULES if "record" in rule)


class PrometheusRulesTest(unittest.TestCase):
    def test_metrics_are_exported(self):
        for rule in RULES:
            self.assertEqual(problems_of(rule["expr"], RECORDED), [], rule)

    def test_alerts_are_described(self):
        self.assertEqual(len(ALERTS) + len(RECORDED), len(RULES))
        for name, rule in ALERTS.items():
            self.assertRegex(name, r"^Keelson[A-Z]\w+$")
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"), name)
            self.assertEqual(set(rule["annotations"]), {"summary", "description"}, name)
            self.assertRegex(rule.get("for", "0s"), r"^\d+[smh]$", name)

    def test_annotations_name_labels_that_the_alert_has(self):
        for name, rule in ALERTS.items():
            labels = {"job", "instance"}
            for selector in selectors(rule["expr"]):
                metric = documented_metrics().get(selector.name)
                labels |= metric.labels if metric else {"task"}  # the recorded ones have it
            used = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
            self.assertLessEqual(set(used), labels, name)

    def test_has_the_alerts_that_matter_most(self):
        self.assertLessEqual(
            {
                "KeelsonNoStep",
                "KeelsonStalenessBeyondBound",
                "KeelsonSnapshotOverdue",
                "KeelsonNonFiniteLoss",
                "KeelsonTaskDown",
            },
            set(ALERTS),
        )

    def test_each_alert_fires_in_a_scenario(self):
        firing = re.findall(r'alertname="(\w+)"', SCENARIOS.read_text(encoding="utf-8"))
        self.assertEqual(set(firing), set(ALERTS))

    def test_the_document_has_all_alerts(self):
        text = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"`(Keelson\w+)`", text)), set(ALERTS))


@unittest.skipUnless(shutil.which("promtool"), "no promtool; the package prometheus has it")
class PromtoolTest(unittest.TestCase):
    def test_rules_are_valid(self):
        result = promtool("check", "rules", PATH)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_alerts_fire_when_they_should(self):
        result = promtool("test", "rules", SCENARIOS)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
