"""deploy/monitoring/grafana_dashboard.json: the structure that Grafana expects, and its metrics."""

import json
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from support import FOLDER, problems_of, promtool

DASHBOARD = json.loads((FOLDER / "grafana_dashboard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Grafana's own.
PANEL_TYPES = {"timeseries", "stat", "heatmap", "table"}
UNITS = {"none", "short", "s", "ops", "Bps", "bytes", "percentunit"}
GLOBAL_VARIABLES = {"__rate_interval", "__all"}
COLUMNS = 24


def cells(panel):
    place = panel["gridPos"]
    return {
        (x, y)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    }


class GrafanaDashboardTest(unittest.TestCase):
    def test_can_be_imported_anywhere(self):
        self.assertRegex(DASHBOARD["uid"], r"^[a-z0-9-]{1,40}$")
        self.assertTrue(DASHBOARD["title"])
        self.assertIsInstance(DASHBOARD["schemaVersion"], int)
        self.assertNotIn("id", DASHBOARD)  # Grafana gives it.
        self.assertEqual(set(DASHBOARD["time"]), {"from", "to"})
        self.assertEqual(VARIABLES["datasource"]["type"], "datasource")
        self.assertEqual(VARIABLES["datasource"]["query"], "prometheus")
        for part in [*PANELS, *DASHBOARD["annotations"]["list"]]:
            self.assertEqual(part["datasource"], DATA_SOURCE, part.get("title"))

    def test_panels_have_what_they_need(self):
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in PANELS:
            title = panel["title"]
            self.assertIn(panel["type"], PANEL_TYPES, title)
            self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS, title)
            self.assertEqual(panel["fieldConfig"]["overrides"], [], title)
            references = [target["refId"] for target in panel["targets"]]
            self.assertTrue(references, title)
            self.assertEqual(len(references), len(set(references)), title)

    def test_panels_lie_side_by_side(self):
        taken = set()
        for panel in DASHBOARD["panels"]:
            self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], COLUMNS, panel["title"])
            self.assertEqual(cells(panel) & taken, set(), panel["title"])
            taken |= cells(panel)

    def test_metrics_are_exported(self):
        for query in [*QUERIES, *(note["expr"] for note in DASHBOARD["annotations"]["list"])]:
            self.assertEqual(problems_of(query), [], query)

    def test_variables_take_their_values_from_exported_metrics(self):
        asked = [variable for variable in VARIABLES.values() if variable["type"] == "query"]
        self.assertEqual({variable["name"] for variable in asked}, {"job", "task"})
        for variable in asked:
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            self.assertIsNotNone(match, variable["definition"])
            self.assertEqual(variable["query"]["query"], variable["definition"])
            self.assertEqual(problems_of(f'{match[1].split("{")[0]}{{{match[2]}=""}}'), [])

    def test_queries_are_of_the_chosen_job(self):
        for query in QUERIES:
            for selector in re.findall(r"\b(?:keelson|process)_\w+(\{[^}]*\})?", query):
                self.assertIn('job=~"$job"', selector, query)

    def test_variables_are_defined(self):
        text = json.dumps(DASHBOARD)
        used = set(re.findall(r"\$\{?(\w+)", text))
        self.assertLessEqual(used, set(VARIABLES) | GLOBAL_VARIABLES)

    def test_legends_name_labels_that_the_query_keeps(self):
        for panel in PANELS:
            for target in panel["targets"]:
                kept = re.match(r"sum by \(([\w, ]+)\)", target["expr"])
                used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                if kept is not None:
                    self.assertEqual(used, set(kept[1].split(", ")), panel["title"])

    @unittest.skipUnless(shutil.which("promtool"), "no promtool; the package prometheus has it")
    def test_queries_are_valid(self):
        texts = set()
        for query in QUERIES:
            texts.add(query.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$task", ".*"))
        rules = [{"record": f"query:{i}", "expr": text} for i, text in enumerate(sorted(texts))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rules.yaml")
            path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
            result = promtool("check", "rules", path)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
