// Numbers as text. A value that is absent or not finite is a dash, except in formatFinite.

import type {Value} from "./api_types";

export const NOTHING = "–";
export const NOT_FINITE = "not finite";

type Maybe = Value | undefined;

const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

// A count, with separators of thousands: 1,234,567.
export function formatCount(value: Maybe): string {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US") : NOTHING;
}

// A number to read at a glance: `digits` significant ones, and an exponent where it is very large or small.
export function formatNumber(value: Maybe, digits = 4): string {
  if (!isNumber(value)) return NOTHING;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    return value.toExponential(Math.max(digits - 2, 0)).replace("e+", "e");
  }
  if (size >= 10 ** digits) return formatCount(value);
  return String(Number(value.toPrecision(digits)));
}

// As `format`, but null (a number that is not finite) differs from an absent one.
export function formatFinite(value: Maybe, format: (value: Maybe) => string = formatNumber): string {
  return value === null ? NOT_FINITE : format(value);
}

// As formatNumber, but zeros at the end stay, so that a column of them lines up.
export function formatFixed(value: Maybe, digits = 4): string {
  if (!isNumber(value)) return NOTHING;
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6)
    ? value.toExponential(Math.max(digits - 2, 0)).replace("e+", "e") : value.toFixed(digits);
}

// All digits that distinguish a double from its neighbours.
export function formatExact(value: Maybe): string {
  return isNumber(value) ? String(value) : NOTHING;
}

// 0.1234 as 12.3 %.
export function formatPercent(value: Maybe, decimals = 1): string {
  return isNumber(value) ? `${(100 * value).toFixed(decimals)} %` : NOTHING;
}

// Bytes in units of 1000, with three digits: 41.2 MB.
export function formatBytes(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  let unit = 0;
  let size = Math.abs(value);
  while (size >= 999.5 && unit + 1 < BYTE_UNITS.length) {
    size /= 1000;
    ++unit;
  }
  const decimals = unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? "-" : ""}${size.toFixed(decimals)} ${BYTE_UNITS[unit]}`;
}

// A rate: 41.2 MB/s.
export function formatByteRate(value: Maybe): string {
  return isNumber(value) ? `${formatBytes(value)}/s` : NOTHING;
}

// A span of time in its two greatest units: 3 d 4 h, 5 min 2 s, 12 s, 3.1 ms.
export function formatDuration(seconds: Maybe): string {
  if (!isNumber(seconds)) return NOTHING;
  const sign = seconds < 0 ? "-" : "";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${sign}${formatNumber(size * 1e6, 3)} µs`;
  if (size < 1) return `${sign}${formatNumber(size * 1e3, 3)} ms`;
  if (size < 10) return `${sign}${formatNumber(size, 2)} s`;
  const whole = Math.round(size);
  if (whole < 60) return `${sign}${whole} s`;
  if (whole < 3600) return sign + two(whole, 60, "min", 1, "s");
  if (whole < 86400) return sign + two(whole, 3600, "h", 60, "min");
  return sign + two(whole, 86400, "d", 3600, "h");
}

// The clock's time in the reader's time zone: 14:03:07, with the date where it is not `now`'s.
export function formatTime(seconds: Maybe, now = Date.now() / 1000): string {
  if (!isNumber(seconds)) return NOTHING;
  const time = new Date(seconds * 1000);
  const pad = (part: number) => String(part).padStart(2, "0");
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  if (time.toDateString() === new Date(now * 1000).toDateString()) return clock;
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())} ${clock}`;
}

// [784, 256] as 784 × 256; no dimension is a scalar.
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? "scalar" : shape.join(" × ");
}

// steps_per_second as "steps per second".
export function formatName(name: string): string {
  return name.replaceAll("_", " ");
}

function isNumber(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function two(whole: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${largeName}${rest === 0 ? "" : ` ${rest} ${smallName}`}`;
}
