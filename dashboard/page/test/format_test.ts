import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import {
  formatByteRate, formatBytes, formatCount, formatDuration, formatExact, formatFinite, formatFixed, formatName, formatNumber,
  formatPercent, formatShape, formatTime, NOT_FINITE, NOTHING,
} from "../src/format";

test("what is not there or not finite is a dash", () => {
  const formats = [formatByteRate, formatBytes, formatCount, formatDuration, formatExact, formatFixed, formatNumber,
    formatPercent, formatTime];
  for (const format of formats) {
    deepEqual([format(null), format(undefined), format(NaN), format(Infinity)], [NOTHING, NOTHING, NOTHING, NOTHING]);
  }
});

test("a value that is there and not finite can be told from none", () => {
  deepEqual([undefined, null, 0.25].map((value) => formatFinite(value)), [NOTHING, NOT_FINITE, "0.25"]);
  deepEqual([undefined, null, 0.25].map((value) => formatFinite(value, formatPercent)), [NOTHING, NOT_FINITE, "25.0 %"]);
});

test("numbers have significant digits, and an exponent where they are extreme", () => {
  deepEqual([0, 0.12345678, 12.5, 123456, -0.00012346, 0.00001234, 1.5e9].map((value) => formatNumber(value)),
    ["0", "0.1235", "12.5", "123,456", "-0.0001235", "1.23e-5", "1.50e9"]);
  deepEqual([0.5, 0.97, 1e-5, 12345678].map((value) => formatFixed(value)), ["0.5000", "0.9700", "1.00e-5", "1.23e7"]);
  equal(formatExact(0.1 + 0.2), "0.30000000000000004");
  equal(formatPercent(0.12345), "12.3 %");
});

test("bytes have three digits", () => {
  deepEqual([0, 999, 999.6, 1000, 41_234_567, 999_600, 2.5e15, -1500].map((value) => formatBytes(value)),
    ["0 B", "999 B", "1.00 KB", "1.00 KB", "41.2 MB", "1.00 MB", "2.50 PB", "-1.50 KB"]);
  equal(formatByteRate(2e9), "2.00 GB/s");
});

test("durations have their two greatest units", () => {
  deepEqual([0, 0.0000031, 0.0031, 3.14, 9.96, 12.4, 59.6, 61, 120, 3600, 3661, 90000, -61].map((value) => formatDuration(value)),
    ["0 s", "3.1 µs", "3.1 ms", "3.1 s", "10 s", "12 s", "1 min", "1 min 1 s", "2 min", "1 h", "1 h 1 min", "1 d 1 h", "-1 min 1 s"]);
});

test("times have the date where it is another day", () => {
  const noon = Date.UTC(2024, 4, 6, 12, 3, 7) / 1000;
  equal(formatTime(noon, noon + 60), "12:03:07");
  equal(formatTime(noon, noon + 86400), "2024-05-06 12:03:07");
});

test("names and shapes", () => {
  equal(formatName("steps_per_second"), "steps per second");
  equal(formatShape([784, 256]), "784 × 256");
  equal(formatShape([]), "scalar");
});
