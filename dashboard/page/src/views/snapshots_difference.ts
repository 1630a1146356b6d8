import {errorText, isAbort, type SnapshotComparison} from "../api";
import {fill, h} from "../dom";
import {formatCount, formatFixed, formatName, formatNumber, formatPercent, formatShape} from "../format";
import {SortableTable, type Column} from "../sortable_table";
import type {Context} from "../view";

type Metric = SnapshotComparison["metrics"][number];
type Variable = NonNullable<SnapshotComparison["variables"]>[number];

// What differs between two snapshots of the run.
export class SnapshotDifference {
  readonly element = h("section", {class: "card", hidden: true, testid: "difference", "aria-live": "polite"});
  private request: AbortController | undefined;
  private shown = "";

  constructor(private readonly context: Context) {}

  // One of them undefined: nothing is compared.
  show(a: number | undefined, b: number | undefined): void {
    const wanted = `${a} ${b}`;
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.request?.abort();
    this.element.hidden = a === undefined || b === undefined;
    if (a !== undefined && b !== undefined) void this.load(a, b);
  }

  close(): void {
    this.request?.abort();
  }

  private async load(a: number, b: number): Promise<void> {
    const request = new AbortController();
    this.request = request;
    const title = h("header", null, h("h2", null, `Step ${formatCount(a)} to step ${formatCount(b)}`));
    fill(this.element, title, h("p", {class: "message"}, "Comparing…"));
    try {
      const comparison = await this.context.api.compareSnapshots(this.context.run, a, b, request.signal);
      fill(this.element, title, h("div", {class: "difference"}, metricTable(comparison), variableTable(comparison)));
    } catch (error) {
      if (!isAbort(error)) {
        // The next choice asks again.
        this.shown = "";
        fill(this.element, title, h("p", {class: "message bad"}, errorText(error)));
      }
    }
  }
}

function metricTable(comparison: SnapshotComparison): HTMLElement {
  const number = (id: keyof Metric & ("a" | "b" | "change"), title: string): Column<Metric> => ({
    id, title, number: true, sort: (metric) => metric[id],
    cell: (metric) => `${id === "change" && (metric.change ?? 0) > 0 ? "+" : ""}${formatFixed(metric[id], 5)}`,
  });
  const table = new SortableTable<Metric>({
    testid: "difference-metrics", caption: "Metrics of both snapshots", key: (metric) => metric.name,
    columns: [
      {id: "name", title: "Metric", sort: (metric) => metric.name, cell: (metric) => formatName(metric.name)},
      number("a", `Step ${formatCount(comparison.a)}`), number("b", `Step ${formatCount(comparison.b)}`), number("change", "Change"),
    ],
  });
  table.setRows(comparison.metrics);
  return comparison.metrics.length === 0 ? h("p", {class: "muted"}, "Not both of them have been evaluated.") : table.element;
}

export function whyNoVariables(comparison: Pick<SnapshotComparison, "error">): string {
  return `Variables cannot be compared${comparison.error === undefined ? ", for one of the snapshots is deleted." : `: ${comparison.error}`}`;
}

function variableTable(comparison: SnapshotComparison): HTMLElement {
  if (comparison.variables === undefined) {
    return h("p", {class: comparison.error === undefined ? "muted" : "message bad", testid: "difference-message"}, whyNoVariables(comparison));
  }
  const largest = Math.max(...comparison.variables.map((variable) => variable.relative_change ?? 0), Number.MIN_VALUE);
  const number = (id: "norm_a" | "norm_b" | "norm_change" | "max_change", title: string): Column<Variable> => ({
    id, title, number: true, sort: (variable) => variable[id], cell: (variable) => formatNumber(variable[id]),
  });
  const table = new SortableTable<Variable>({
    testid: "difference-variables", caption: "Variables of both snapshots", key: (variable) => variable.name,
    sortBy: {column: "relative_change", descending: true},
    columns: [
      {id: "name", title: "Variable", sort: (variable) => variable.name, cell: (variable) => h("code", null, variable.name)},
      {id: "shape", title: "Shape", cell: (variable) => h("span", {class: "shape"}, formatShape(variable.shape))},
      number("norm_a", "Norm before"), number("norm_b", "Norm after"), number("norm_change", "Norm of the change"),
      number("max_change", "Largest change"),
      {id: "relative_change", title: "Relative change", number: true, sort: (variable) => variable.relative_change,
       cell: (variable) => h("span", {class: "relative"}, formatPercent(variable.relative_change, 2),
         h("meter", {min: 0, max: largest, value: variable.relative_change ?? 0, "aria-hidden": "true"}))},
    ],
  });
  table.setRows(comparison.variables);
  return table.element;
}
