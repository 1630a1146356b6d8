import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import {formatTick, formatX, logTicks, xTicks} from "../src/chart/axis";

test("marks have the decimals that their distance needs", () => {
  deepEqual([0, 0.05, 0.1].map((mark) => formatTick(mark, 0.05)), ["0", "0.05", "0.10"]);
  deepEqual([2000, 20000, 2_500_000].map((mark) => formatTick(mark, 500)), ["2000", "20.0k", "2.5000M"]);
  deepEqual([1e6, 1.25e6, 1.5e6].map((mark) => formatTick(mark, 250_000)), ["1.00M", "1.25M", "1.50M"]);
  deepEqual([0.1, 0.30000000000000004].map((mark) => formatTick(mark, 0.1)), ["0.1", "0.3"]);
  equal(formatTick(1e-6, 1e-6), "1e-6");
});

test("a logarithmic axis has texts at powers of ten, and within one of them at more marks", () => {
  deepEqual(logTicks([0.0001, 0.01, 0.02, 1, 10, 100000, null]), ["1e-4", "0.01", "", "1", "10", "1e5", ""]);
  deepEqual(logTicks([0.3, 0.4, 0.5, 0.6, 0.7000000000000001, 1]), ["0.3", "", "0.5", "", "", "1"]);
  deepEqual(logTicks([2e5, 3e5, 4e5]), ["2e5", "3e5", ""]);
});

test("marks of time have the clock, the date at midnight and beyond a day", () => {
  const noon = Date.UTC(2024, 4, 6, 12, 3, 7) / 1000;
  const midnight = Date.UTC(2024, 4, 6) / 1000;
  deepEqual(xTicks("time", [noon], 1), ["12:03:07"]);
  deepEqual(xTicks("time", [noon, midnight], 60), ["12:03", "05-06"]);
  deepEqual(xTicks("time", [noon], 86400), ["05-06"]);
  deepEqual(xTicks("duration", [90], 30), ["1 min 30 s"]);
});

test("a value of x in words", () => {
  equal(formatX("count", 1234567), "1,234,567");
  equal(formatX("count", 3.84), "3.84");
  equal(formatX("duration", 61), "1 min 1 s");
});
