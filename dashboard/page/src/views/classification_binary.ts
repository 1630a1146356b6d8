// What a report says of the probabilities of a binary model beyond its curves.

import type {CalibrationBin, GroupAuc, Report} from "../api";
import {h} from "../dom";
import {formatCount, formatFixed, formatNumber, formatPercent} from "../format";
import {SortableTable} from "../sortable_table";
import {className, probabilityOf, rangeOf, scoreShares} from "./classification_model";
import {plot, type NamedLine, type Point} from "./classification_plot";

// The points of a calibration plot: what was promised, and what came true.
export function calibrationPoints(bins: readonly CalibrationBin[], promised: string, cameTrue: string): Point[] {
  return bins.flatMap(({from, to, count, confidence, accuracy}) => {
    if (count === 0 || confidence === null || accuracy === null) return [];
    const text = `${promised} ${formatNumber(from, 2)} to ${formatNumber(to, 2)}, on average ${formatNumber(confidence, 3)}: ` +
      `${formatPercent(accuracy)} of ${formatCount(count)} ${cameTrue}`;
    return [{x: confidence, y: accuracy, text}];
  });
}

// Null without a probability.
export function decilesPlot(report: Report): HTMLElement | null {
  const positive = className(report.classes, 1);
  const points = calibrationPoints(report.calibration_deciles ?? [], `probability of ${positive}`, `were ${positive}`);
  if (points.length === 0) return null;
  const [, high] = rangeOf([0, ...points.flatMap(({x, y}) => [x, y])]);
  const range: [number, number] = [0, Math.min(1, high)];
  return plot({
    testid: "calibration-deciles", title: "Calibration by decile", note: `${points.length} parts`, xLabel: `probability of ${positive}`,
    yLabel: `share of ${positive}`, x: range, y: range, line: true, dots: true, diagonal: true, points,
  });
}

// Null without a finite score.
export function scoresPlot(report: Report): HTMLElement | null {
  const bins = report.scores ?? [];
  const lines: NamedLine[] = ([0, 1] as const).map((label) => {
    const name = className(report.classes, label);
    return {name, points: scoreShares(bins, label).map(({score, count, share}) => ({
      x: score, y: share, text: `score about ${formatNumber(score, 3)} (${formatPercent(probabilityOf(score))}): ` +
        `${formatPercent(share)} of ${name}, ${formatCount(count)} examples`,
    }))};
  });
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) return null;
  return plot({
    testid: "scores", title: "Scores", note: "by label", xLabel: "score (0: a probability of a half)", yLabel: "share of the label",
    x: rangeOf(points.map(({x}) => x)), y: [0, rangeOf([0, ...points.map(({y}) => y)])[1]],
    line: true, dots: false, diagonal: false, points: [], lines,
  });
}

// Null where no metric has groups.
export function groupTable(report: Report): HTMLElement | null {
  const rows = report.group_auc ?? [];
  if (rows.length === 0) return null;
  const count = (id: "groups" | "examples" | "one_label_groups", title: string) => ({
    id, title, number: true, sort: (row: GroupAuc) => row[id], cell: (row: GroupAuc) => formatCount(row[id]),
  });
  const area = (id: "auc" | "mean_auc", title: string) => ({
    id, title, number: true, sort: (row: GroupAuc) => row[id], cell: (row: GroupAuc) => formatFixed(row[id], 4),
  });
  const table = new SortableTable<GroupAuc>({
    testid: "group-auc", caption: "AUC within the groups of examples that have the same id", key: (row) => row.feature,
    columns: [
      {id: "feature", title: "Groups by", sort: (row) => row.feature, cell: (row) => row.feature},
      area("auc", "AUC, by examples"), area("mean_auc", "AUC, mean of the groups"), count("groups", "Groups"), count("examples", "Examples"),
      count("one_label_groups", "Left out: one label"),
      {id: "sampled", title: "Sampled", number: true, sort: (row) => row.sampled,
        cell: (row) => row.sampled === 1 ? "all" : formatPercent(row.sampled, 2)},
    ],
  });
  table.setRows([...rows]);
  return h("section", {class: "card", "aria-labelledby": "groups-title"},
    h("header", null, h("h3", {id: "groups-title"}, "Ranking within groups")), table.element);
}
