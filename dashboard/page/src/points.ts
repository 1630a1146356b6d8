import type {SeriesPoints, Value} from "./api_types";

// Points of a curve in ascending order of steps, each step once; the columns are equally long.
export interface Points {
  step: number[];
  time: number[];
  value: Value[];
}

export const NO_POINTS: Points = {step: [], time: [], value: []};

// Merges both; where they have the same step, `newer` counts. Neither is changed.
export function mergePoints(older: Points, newer: Points): Points {
  const last = older.step.at(-1);
  const first = newer.step[0];
  if (first === undefined) return older;
  if (last === undefined || first > last) {
    return {
      step: [...older.step, ...newer.step], time: [...older.time, ...newer.time], value: [...older.value, ...newer.value]};
  }
  const merged: Points = {step: [], time: [], value: []};
  let i = 0;
  let k = 0;
  while (i < older.step.length || k < newer.step.length) {
    const left = older.step[i] ?? Infinity;
    const right = newer.step[k] ?? Infinity;
    take(merged, right <= left ? newer : older, right <= left ? k : i);
    i += left <= right ? 1 : 0;
    k += right <= left ? 1 : 0;
  }
  return merged;
}

// In the order of steps even where a server restarted at an earlier one in between.
export function pointsOf(series: SeriesPoints): Points {
  const {step, time, value} = series;
  if (step.every((at, i) => i === 0 || at > step[i - 1]!)) return {step, time, value};
  const points: Points = {step: [], time: [], value: []};
  const order = step.map((_, i) => i).sort((left, right) => step[left]! - step[right]! || left - right);
  for (const [k, i] of order.entries()) {
    const next = order[k + 1];
    if (next === undefined || step[next] !== step[i]) take(points, series, i);
  }
  return points;
}

function take(to: Points, from: Points, i: number): void {
  to.step.push(from.step[i]!);
  to.time.push(from.time[i]!);
  to.value.push(from.value[i]!);
}
