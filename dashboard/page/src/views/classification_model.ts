// The figures of a report, independent of the page: shares, order, the scale of a plot.

import type {ExampleFeature, Report, ScoreBin, Slice, SliceTotals, Value} from "../api";
import {formatCount, formatNumber} from "../format";

export type PerClass = NonNullable<Report["per_class"]>[number];

// A class's name, or its number where the run has no names.
export function className(classes: readonly string[] | undefined, index: number | undefined): string {
  return index === undefined ? "–" : classes?.[index] ?? String(index);
}

// Each row as shares of its sum; the row of a label that no example has is zeros.
export function rowShares(confusion: readonly (readonly number[])[]): number[][] {
  return confusion.map((row) => {
    const sum = row.reduce((total, count) => total + count, 0);
    return row.map((count) => (sum > 0 ? count / sum : 0));
  });
}

export interface Confused {
  label: number;
  predicted: number;
  count: number;
  share: number;  // of the label's examples
}

// The most frequent mistakes first.
export function topConfusions(confusion: readonly (readonly number[])[], most: number): Confused[] {
  const shares = rowShares(confusion);
  const found: Confused[] = [];
  confusion.forEach((row, label) => row.forEach((count, predicted) => {
    if (label !== predicted && count > 0) {
      found.push({label, predicted, count, share: shares[label]![predicted]!});
    }
  }));
  return found.sort((a, b) => b.count - a.count || b.share - a.share).slice(0, most);
}

export interface ScoreShare {
  score: number;  // the middle of the bin
  count: number;
  share: number;  // of the label's examples
}

// The distribution of the scores of one label; empty where no example has it.
export function scoreShares(bins: readonly ScoreBin[], label: 0 | 1): ScoreShare[] {
  const all = bins.reduce((sum, bin) => sum + bin.counts[label], 0);
  if (all === 0) return [];
  return bins.map(({from, to, counts}) => ({score: (from + to) / 2, count: counts[label], share: counts[label] / all}));
}

// The probability of label 1 that a score stands for.
export function probabilityOf(score: number): number {
  return 1 / (1 + Math.exp(-score));
}

// The first values of a feature as text: numbers, or ids with their weights.
export function featureText({count, numbers, ids, weights, texts}: ExampleFeature, most: number): string {
  if (count === 0) return texts === undefined ? "none" : "missing";
  const values = texts ?? (ids === undefined ? (numbers ?? []).map((value) => formatNumber(value))
    : ids.map((id, i) => weights === undefined ? id : `${id} × ${formatNumber(weights[i])}`));
  const shown = values.slice(0, most);
  return shown.join(", ") + (count > shown.length ? ` and ${count - shown.length} more` : "");
}

// Round numbers within [low, high], about `count` of them.
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * (1 - 1e-9)) ?? raw;
  const result: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    result.push(Number((i * step).toPrecision(12)));
  }
  return result;
}

// A range that has all values and a little room; never empty.
export function rangeOf(values: readonly Value[]): [number, number] {
  const finite = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (finite.length === 0) return [0, 1];
  const low = finite.reduce((a, b) => Math.min(a, b));
  const high = finite.reduce((a, b) => Math.max(a, b));
  const margin = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

export interface SliceRow extends SliceTotals {
  name: string;
  order: number;
}

// The rows of a feature: its most frequent ids, and the ids by the number of their examples.
export function sliceRows(slice: Slice): {values: SliceRow[]; frequencies: SliceRow[]} {
  const values = slice.values.map((value, order) => ({...value, name: value.id, order}));
  const frequencies = slice.frequencies.map((each, order) => {
    const range = each.from === each.to ? formatCount(each.from) : `${formatCount(each.from)} to ${formatCount(each.to)}`;
    return {...each, name: `${range} (${formatCount(each.ids)} ids)`, order};
  });
  const others = slice.others === undefined ? [] : [{...slice.others, name: "ids that were not kept", order: frequencies.length}];
  return {values, frequencies: [...frequencies, ...others]};
}
