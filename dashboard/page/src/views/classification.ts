// The model's hits and errors: for one snapshot, or always for the newest.

import {ApiError, errorText, isAbort, isMisshapen, type Report} from "../api";
import {fill, h, keyed, setText} from "../dom";
import {formatCount, formatFixed, formatNumber, formatPercent, formatTime} from "../format";
import {SortableTable} from "../sortable_table";
import type {Context, View} from "../view";
import "./classification.css";
import {calibrationPoints, decilesPlot, groupTable, scoresPlot} from "./classification_binary";
import {wrongExamples} from "./classification_examples";
import {ConfusionMatrix} from "./classification_matrix";
import {className, rangeOf, topConfusions, type PerClass} from "./classification_model";
import {plot} from "./classification_plot";
import {rankingTable} from "./classification_retrieval";
import {sliceTables} from "./classification_slices";

const NEWEST = "newest";
const CONFUSIONS = 8;
const BEHIND_MS = 3000;  // between looking again while the newest report is not there yet

class ClassificationPage {
  private readonly choice: HTMLSelectElement;
  private readonly figures = h("dl", {class: "report-figures", testid: "report-figures"});
  private readonly message = h("p", {class: "message", testid: "report-message", "aria-live": "polite"}, "Loading …");
  private readonly content = h("div", {class: "stack"});
  private readonly head: HTMLElement;
  private readonly ends: (() => void)[] = [];
  private matrix: ConfusionMatrix | undefined;
  private asShares = false;
  private report: Report | undefined;
  private request: AbortController | undefined;
  private asked = 0;  // by performance.now()

  constructor(root: HTMLElement, private readonly context: Context) {
    this.choice = h("select", {testid: "report-step", on: {change: () => void this.fetch()}});
    this.head = h("div", {class: "card report-head", hidden: true},
      h("label", null, h("span", {class: "muted"}, "Snapshot"), this.choice), this.figures);
    root.append(h("div", {class: "classification stack"}, this.head, this.message, this.content));
    this.ends.push(
      context.stream.on("hello", () => this.fetchIfNewest()),
      context.stream.on("snapshots", (snapshots) => {
        if (snapshots.run === context.run) this.fetchIfNewest();
      }),
      context.stream.on("status", (status) => {
        const evaluated = Math.max(-1, ...(status.metrics ?? []).map((metric) => metric.last?.step ?? -1));
        const behind = evaluated > (this.report?.steps.at(-1) ?? -1);
        if (status.run === context.run && behind && performance.now() - this.asked > BEHIND_MS) {
          this.fetchIfNewest();
        }
      }),
      context.onTheme(() => this.matrix?.themeChanged()));
    void this.fetch();
  }

  close(): void {
    this.request?.abort();
    this.matrix?.close();
    for (const end of this.ends) end();
  }

  private fetchIfNewest(): void {
    if (this.choice.value === "" || this.choice.value === NEWEST) void this.fetch();
  }

  private async fetch(): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.asked = performance.now();
    const step = this.choice.value === "" || this.choice.value === NEWEST ? undefined : Number(this.choice.value);
    try {
      const report = await this.context.api.report(this.context.run, step, request.signal);
      this.drawChoice(report);
      if (report.step !== this.report?.step || report.time !== this.report.time) this.show(report);
    } catch (error) {
      if (isAbort(error)) return;
      if (isMisshapen(error)) this.content.replaceChildren();
      const none = error instanceof ApiError && error.status === 404 && this.report === undefined;
      this.message.hidden = false;
      setText(this.message, none ? "There is no report yet; it comes with the first evaluation." : errorText(error));
    }
  }

  private drawChoice(report: Report): void {
    const steps = [...report.steps].reverse();
    keyed(this.choice, [NEWEST, ...steps.map(String)], (value) => value, (value) => h("option", {value}), (option, value) => {
      setText(option, value === NEWEST ? `newest (step ${formatCount(steps[0])})` : `step ${formatCount(Number(value))}`);
    });
  }

  private show(report: Report): void {
    this.report = report;
    this.head.hidden = false;
    this.message.hidden = true;
    this.head.setAttribute("data-step", String(report.step));
    this.drawFigures(report);
    const plots = plotsOf(report);
    const confusion = this.confusion(report, plots.length === 1 ? plots.pop() : undefined);
    fill(this.content, confusion, plots.length === 0 ? null : h("div", {class: "plots"}, ...plots), groupTable(report),
      rankingTable(report), sliceTables(report), wrongExamples(report));
  }

  private drawFigures(report: Report): void {
    const figures: [string, string | undefined][] = [
      ["examples", formatCount(report.examples)],
      ["accuracy", has(report.accuracy, (value) => formatPercent(value, 2))],
      ["AUC", has(report.auc, (value) => formatFixed(value, 4))],
      ["AUC, precision–recall", has(report.auc_pr, (value) => formatFixed(value, 4))],
      ["normalized entropy", has(report.normalized_entropy, (value) => formatFixed(value, 4))],
      ["calibration", has(report.calibration_ratio, (value) => formatFixed(value, 4))],
      ["calibration error", has(report.calibration_error, (value) => formatPercent(value, 2))],
      ["mean squared error", has(report.mean_squared_error, (value) => formatNumber(value))],
      ["mean absolute error", has(report.mean_absolute_error, (value) => formatNumber(value))],
      ["evaluated", formatTime(report.time)],
    ];
    fill(this.figures, ...figures.filter(([, value]) => value !== undefined).map(([name, value]) =>
      h("div", null, h("dt", null, name), h("dd", {testid: `report-${name.replaceAll(" ", "-")}`}, value))));
  }

  // The matrix (absent beyond 200 classes and for a regression), and beside it the classes and a plot that stands alone.
  private confusion(report: Report, plotted: HTMLElement | undefined): HTMLElement | null {
    const classes = report.per_class === undefined ? null : h("section", {class: "card", "aria-labelledby": "classes-title"},
      h("header", null, h("h3", {id: "classes-title"}, "Classes")), perClassTable(report));
    if (report.confusion === undefined || report.confusion.length === 0) {
      this.matrix?.close();
      this.matrix = undefined;
      return h("div", {class: "plots"}, classes, plotted);
    }
    this.matrix ??= new ConfusionMatrix();
    this.matrix.setShares(this.asShares);
    this.matrix.show(report.confusion, report.classes);
    return h("div", {class: "confusion-cards"},
      h("section", {class: "card", "aria-labelledby": "confusion-title"},
        h("header", null, h("h3", {id: "confusion-title"}, "Confusion matrix"), h("span", {class: "spacer"}), this.sharesSwitch()),
        this.matrix.element, mistakes(report)),
      h("div", {class: "stack"}, classes, plotted));
  }

  private sharesSwitch(): HTMLElement {
    const set = (asShares: boolean) => () => {
      this.asShares = asShares;
      this.matrix?.setShares(asShares);
    };
    const radio = (text: string, testid: string, asShares: boolean) => h("label", null,
      h("input", {type: "radio", name: "confusion-numbers", testid, checked: this.asShares === asShares, on: {change: set(asShares)}}),
      text);
    return h("div", {class: "segments", role: "radiogroup", "aria-label": "Numbers in the cells"},
      radio("Counts", "confusion-counts", false), radio("% of the label", "confusion-shares", true));
  }
}

function has<T>(value: T | undefined, text: (value: T) => string): string | undefined {
  return value === undefined ? undefined : text(value);
}

function mistakes(report: Report): HTMLElement | null {
  const top = topConfusions(report.confusion ?? [], CONFUSIONS);
  if (top.length === 0) return null;
  return h("div", {class: "mistakes"}, h("h4", {class: "muted small"}, "Most frequent mistakes"),
    h("ol", {testid: "top-confusions"}, ...top.map((one) => h("li", null,
      h("strong", null, className(report.classes, one.label)), " taken for ",
      h("strong", null, className(report.classes, one.predicted)),
      h("span", {class: "muted"}, ` ${formatCount(one.count)} × (${formatPercent(one.share)})`)))));
}

interface ClassRow extends PerClass {
  number: number;
}

function perClassTable(report: Report): HTMLElement {
  const share = (title: string, key: "precision" | "recall" | "f1") => ({
    id: key, title, number: true, sort: (row: ClassRow) => row[key], cell: (row: ClassRow) => formatFixed(row[key], 4),
  });
  const table = new SortableTable<ClassRow>({
    testid: "per-class", caption: "Precision, recall and F1 of each class", key: (row) => String(row.number),
    columns: [
      {id: "class", title: "Class", sort: (row) => row.number, cell: (row) => className(report.classes, row.number)},
      share("Precision", "precision"), share("Recall", "recall"), share("F1", "f1"),
      {id: "support", title: "Examples", number: true, sort: (row) => row.support, cell: (row) => formatCount(row.support)},
    ],
  });
  table.setRows((report.per_class ?? []).map((row, number) => ({...row, number})));
  return h("div", {class: "per-class"}, table.element);
}

function plotsOf(report: Report): HTMLElement[] {
  const unit: [number, number] = [0, 1];
  const plots: HTMLElement[] = [];
  if (report.roc !== undefined) {
    plots.push(plot({
      testid: "roc", title: "ROC", note: `AUC ${formatFixed(report.auc, 4)}`, xLabel: "false positive rate",
      yLabel: "true positive rate", x: unit, y: unit, line: true, dots: false, diagonal: true,
      points: report.roc.map(([x, y]) => ({x, y, text: `false positives ${formatPercent(x)}, true positives ${formatPercent(y)}`})),
    }));
  }
  if (report.precision_recall !== undefined) {
    plots.push(plot({
      testid: "precision-recall", title: "Precision and recall", note: `AUC ${formatFixed(report.auc_pr, 4)}`, xLabel: "recall",
      yLabel: "precision", x: unit, y: unit, line: true, dots: false, diagonal: false,
      points: report.precision_recall.map(([x, y]) => ({x, y, text: `recall ${formatPercent(x)}, precision ${formatPercent(y)}`})),
    }));
  }
  if ((report.calibration ?? []).some((bin) => bin.count > 0)) plots.push(calibrationPlot(report));
  plots.push(...[decilesPlot(report), scoresPlot(report)].filter((one) => one !== null));
  const pairs = (report.pairs ?? []).filter((pair): pair is [number, number] => pair[0] !== null && pair[1] !== null);
  if (pairs.length > 0) {
    const range = rangeOf(pairs.flat());
    plots.push(plot({
      testid: "pairs", title: "Target and prediction", note: `${formatCount(pairs.length)} examples`, xLabel: "target",
      yLabel: "prediction", x: range, y: range, line: false, dots: true, diagonal: true,
      points: pairs.map(([x, y]) => ({x, y, text: `target ${formatNumber(x)}, prediction ${formatNumber(y)}`})),
    }));
  }
  return plots;
}

// For a binary model the plot shows the probability of the second label, otherwise that of the
// predicted class.
function calibrationPlot(report: Report): HTMLElement {
  const positive = className(report.classes, 1);
  const words = report.kind === "binary"
    ? {x: `probability of ${positive}`, y: `share of ${positive}`, were: `were ${positive}`}
    : {x: "confidence", y: "accuracy", were: "were right"};
  return plot({
    testid: "calibration", title: "Calibration", note: `error ${formatPercent(report.calibration_error, 2)}`, xLabel: words.x,
    yLabel: words.y, x: [0, 1], y: [0, 1], line: true, dots: true, diagonal: true,
    points: calibrationPoints(report.calibration ?? [], words.x, words.were),
  });
}

export const classification: View = {
  id: "classification",
  title: "Classification",
  mount: (root, context) => new ClassificationPage(root, context),
};
