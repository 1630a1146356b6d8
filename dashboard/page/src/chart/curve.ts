import type {Value} from "../api_types";

// A curve of a chart. `x` ascends and is as long as `y`; null is a gap.
export interface Curve {
  // Stays the same over updates; the chart's data-testids have it.
  id: string;
  label: string;
  // 0 to 7: which of the series' colours of the style sheet.
  colour: number;
  // 0 to 2: solid, dashed, dotted.
  dash: number;
  x: number[];
  y: Value[];
  // Drawn instead of y, which is then drawn faintly: y smoothed.
  smoothed?: Value[];
}

export const COLOURS = 8;
export const DASHES = 3;

// The style by which the nth of many curves differs from the others.
export function curveStyle(n: number): {colour: number; dash: number} {
  return {colour: n % COLOURS, dash: Math.floor(n / COLOURS) % DASHES};
}

// The exponential moving average with `weight` (0: none, below 1) for what was, without the bias of its start at 0.
// A gap stays one and changes nothing.
export function smooth(values: readonly Value[], weight: number): Value[] {
  let sum = 0;
  let known = 1;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    known *= weight;
    return sum / (1 - known);
  });
}

// The index of the point that is nearest to `x` and is no gap; undefined where there is none.
export function nearestPoint(curve: Pick<Curve, "x" | "y">, x: number): number | undefined {
  let end = lowerBound(curve.x, x);
  let begin = end - 1;
  while (end < curve.x.length && curve.y[end] === null) ++end;
  while (begin >= 0 && curve.y[begin] === null) --begin;
  const before = curve.x[begin];
  const after = curve.x[end];
  if (before === undefined || after === undefined) {
    return before !== undefined ? begin : after !== undefined ? end : undefined;
  }
  return x - before <= after - x ? begin : end;
}

// How many of `sorted` are below `x`.
export function lowerBound(sorted: readonly number[], x: number): number {
  let begin = 0;
  let end = sorted.length;
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (sorted[middle]! < x) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// The curve in words, for screen readers.
export function describe(curve: Curve, formatX: (x: number) => string, formatY: (y: Value) => string): string {
  const known = curve.y.flatMap((y, i) => y === null ? [] : [i]);
  const first = known[0];
  const last = known.at(-1);
  if (first === undefined || last === undefined) return `${curve.label}: no points.`;
  let low = first;
  let high = first;
  for (const i of known) {
    low = curve.y[i]! < curve.y[low]! ? i : low;
    high = curve.y[i]! > curve.y[high]! ? i : high;
  }
  const at = (i: number) => `${formatY(curve.y[i]!)} at ${formatX(curve.x[i]!)}`;
  return `${curve.label}: from ${at(first)} to ${at(last)}; lowest ${at(low)}, highest ${at(high)}.`;
}
