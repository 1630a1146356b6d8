// The model of the curves' view: names and points, independent of the page.

import type {SeriesQuery, Value} from "../api";
import type {AxisKind} from "../chart/axis";
import {smooth, type Curve} from "../chart/curve";
import type {Range} from "../chart/line_chart";
import {formatByteRate, formatDuration, formatName, formatNumber} from "../format";
import type {Points} from "../points";

export type Group = "train" | "eval" | "task";

export interface SeriesName {
  group: Group;
  // The task, for the group `task`.
  task?: string;
  metric: string;
}

// Undefined: of no group that is known.
export function parseSeriesName(name: string): SeriesName | undefined {
  const [group, ...rest] = name.split("/");
  const metric = rest.join("/");
  if ((group === "train" || group === "eval") && metric !== "") return {group, metric};
  if (group === "task" && rest.length >= 2) return {group, task: rest[0]!, metric: rest.slice(1).join("/")};
  return undefined;
}

// A chart shows what training and evaluation say of one metric, or one figure of all tasks.
export interface ChartSpec {
  id: string;
  title: string;
  metric: string;
  ofTasks: boolean;
  names: string[];
}

// The charts of these series: the loss, then the evaluation's metrics, then what else training tells, then tasks.
export function chartsOf(names: readonly string[]): ChartSpec[] {
  const charts = new Map<string, ChartSpec & {rank: number}>();
  for (const name of [...names].sort((left, right) => groupRank(left) - groupRank(right))) {
    const parsed = parseSeriesName(name);
    if (parsed === undefined) continue;
    const ofTasks = parsed.group === "task";
    const id = ofTasks ? `task-${parsed.metric}` : parsed.metric;
    const chart = charts.get(id) ??
      {id, title: formatName(parsed.metric), metric: parsed.metric, ofTasks, names: [], rank: Infinity};
    chart.names.push(name);
    chart.rank = Math.min(chart.rank, parsed.metric === "loss" && !ofTasks ? 0 : {eval: 1, train: 2, task: 3}[parsed.group]);
    charts.set(id, chart);
  }
  return [...charts.values()].sort((left, right) => left.rank - right.rank).map(({rank: _, ...chart}) => chart);
}

// Training precedes what it is evaluated by.
function groupRank(name: string): number {
  return name.startsWith("eval/") ? 1 : 0;
}

export type Axis = "step" | "epoch" | "elapsed" | "time";

export const AXES: readonly {id: Axis; title: string; kind: AxisKind; name: string}[] = [
  {id: "step", title: "Step", kind: "count", name: "step"},
  {id: "epoch", title: "Epoch", kind: "count", name: "epoch"},
  {id: "elapsed", title: "Elapsed", kind: "duration", name: "after"},
  {id: "time", title: "Wall time", kind: "time", name: "at"},
];

// What places a run's points along x.
export interface RunScale {
  // Seconds since the epoch.
  started: number;
  // Undefined: not known, and the axis of epochs is that of steps.
  stepsPerEpoch: number | undefined;
}

// What series/data is to be asked for, so that `range` of x is there.
export function queryFor(axis: Axis, scale: RunScale, range: Range | undefined): SeriesQuery {
  const x = axis === "time" || axis === "elapsed" ? "time" : "step";
  if (range === undefined) return {x};
  const {from, to} = range;
  switch (axis) {
    case "step": return {x, from: Math.floor(from), to: Math.ceil(to)};
    case "epoch": {
      const steps = scale.stepsPerEpoch ?? 1;
      return {x, from: Math.floor(from * steps), to: Math.ceil(to * steps)};
    }
    case "elapsed": return {x, from: from + scale.started, to: to + scale.started};
    case "time": return {x, from, to};
  }
}

// How many points to ask for per curve, so that a chart of many is drawn as fast as one of few.
export function pointsFor(curves: number, zoomed: boolean): number {
  const [most, together, least] = zoomed ? [2500, 8000, 300] : [1200, 4800, 200];
  return Math.max(least, Math.min(most, Math.floor(together / Math.max(curves, 1))));
}

// The last point of `all` before the range and the first after it, so that lines lead to the chart's edges.
export function beside(all: Points, query: SeriesQuery): Points {
  const at = query.x === "time" ? all.time : all.step;
  const before = at.findLastIndex((x) => x < (query.from ?? -Infinity));
  const after = at.findIndex((x) => x > (query.to ?? Infinity));
  const indices = [before, after].filter((i) => i >= 0);
  return {
    step: indices.map((i) => all.step[i]!), time: indices.map((i) => all.time[i]!), value: indices.map((i) => all.value[i]!)};
}

// The points as x and y, in the order of x: wall time goes back where a restart repeated steps.
export function columns(points: Points, axis: Axis, scale: RunScale): {x: number[]; y: Value[]} {
  const {step, time, value} = points;
  switch (axis) {
    case "step": return {x: step, y: value};
    case "epoch": return {x: step.map((at) => at / (scale.stepsPerEpoch ?? 1)), y: value};
    case "elapsed": return inOrder(time.map((at) => at - scale.started), value);
    case "time": return inOrder(time, value);
  }
}

export function curveOf(
  style: Pick<Curve, "id" | "label" | "colour" | "dash">, points: Points, axis: Axis, scale: RunScale, weight: number): Curve {
  const {x, y} = columns(points, axis, scale);
  return weight > 0 && y.length > 1 ? {...style, x, y, smoothed: smooth(y, weight)} : {...style, x, y};
}

// What values of a metric look like: at a glance, and at the y axis where that is not a plain number.
export function unitOf(metric: string): {format: (y: Value) => string; formatTick?: (y: number) => string} {
  if (/bytes(_per_second|\/sec)$/.test(metric)) return {format: formatByteRate, formatTick: formatByteRate};
  if (metric.endsWith("_seconds")) return {format: formatDuration, formatTick: formatDuration};
  return {format: (y) => formatNumber(y)};
}

function inOrder(x: number[], y: Value[]): {x: number[]; y: Value[]} {
  if (x.every((at, i) => i === 0 || at >= x[i - 1]!)) return {x, y};
  const order = x.map((_, i) => i).sort((left, right) => x[left]! - x[right]!);
  return {x: order.map((i) => x[i]!), y: order.map((i) => y[i]!)};
}
