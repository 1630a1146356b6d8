import type {Value} from "../api_types";
import {formatCount, formatDuration, formatNumber, formatTime} from "../format";

// The kind of x: a count, seconds since the epoch, or seconds since the start.
export type AxisKind = "count" | "time" | "duration";

export function formatX(kind: AxisKind, x: number): string {
  switch (kind) {
    case "count": return Number.isInteger(x) ? formatCount(x) : formatNumber(x, 5);
    case "time": return formatTime(x);
    case "duration": return formatDuration(x);
  }
}

// Distances between the marks of an axis of seconds.
export const SECONDS = [
  0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400, 172800, 604800, 1209600, 2592000,
];

// The texts of marks that are `distance` apart.
export function xTicks(kind: AxisKind, marks: readonly number[], distance: number): string[] {
  switch (kind) {
    case "count": return marks.map((mark) => formatTick(mark, distance));
    case "time": return marks.map((mark) => clockTick(mark, distance));
    case "duration": return marks.map((mark) => formatDuration(mark));
  }
}

// Formats a mark with as many decimals as `distance` needs, and k, M, G for thousands.
export function formatTick(mark: number, distance: number): string {
  const size = Math.abs(mark);
  if (size === 0) return "0";
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]] as const) {
    if (size >= unit) {
      const scale = letter === "k" ? 1e3 : unit;
      return `${(mark / scale).toFixed(decimalsFor(distance / scale))}${letter}`;
    }
  }
  return size < 1e-4 ? mark.toExponential().replace("e+", "e") : mark.toFixed(decimalsFor(distance));
}

// The texts of a logarithmic axis: at powers of ten, and if there is only one of them, at marks
// that are far enough from each other.
export function logTicks(marks: readonly Value[]): string[] {
  const wanted = marks.filter((mark) => mark !== null && leadingDigit(mark) === 1).length >= 2 ? [1] : [1, 2, 3, 5];
  return marks.map((mark) => mark === null || !wanted.includes(leadingDigit(mark)) ? ""
    : mark >= 1e4 || mark < 1e-3 ? mark.toExponential(0).replace("e+", "e") : String(Number(mark.toPrecision(6))));
}

function leadingDigit(mark: number): number {
  return Number(mark.toExponential(5).split("e")[0]);
}

function decimalsFor(distance: number): number {
  let decimals = 0;
  while (decimals < 8 && !Number.isInteger(Number((distance * 10 ** decimals).toPrecision(6)))) {
    ++decimals;
  }
  return decimals;
}

function clockTick(mark: number, distance: number): string {
  const time = new Date(mark * 1000);
  const pad = (part: number) => String(part).padStart(2, "0");
  const midnight = time.getHours() === 0 && time.getMinutes() === 0 && time.getSeconds() === 0;
  if (distance >= 86400 || midnight) return `${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}`;
  return distance >= 60 ? clock : `${clock}:${pad(time.getSeconds())}`;
}
