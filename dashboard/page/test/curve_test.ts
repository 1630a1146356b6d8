import {deepEqual, equal, ok} from "node:assert/strict";
import {test} from "node:test";
import {labelOf} from "../src/chart/legend";
import {COLOURS, curveStyle, DASHES, describe, lowerBound, nearestPoint, smooth, type Curve} from "../src/chart/curve";

function close(actual: number | null | undefined, expected: number): void {
  ok(typeof actual === "number" && Math.abs(actual - expected) < 1e-12);
}

test("smoothing has no bias of its start", () => {
  deepEqual(smooth([3, 3, 3], 0.9).map((value) => Number(value!.toPrecision(12))), [3, 3, 3]);
  const [first, second] = smooth([1, 2], 0.5);
  close(first, 1);
  close(second, (0.5 * 0.5 * 1 + 0.5 * 2) / 0.75);
});

test("smoothing leaves gaps, which change nothing", () => {
  const smoothed = smooth([1, null, 2], 0.5);
  equal(smoothed[1], null);
  equal(smoothed[2], smooth([1, 2], 0.5)[1]!);
});

test("without weight, smoothing changes nothing", () => {
  deepEqual(smooth([1, 5, null, 2], 0), [1, 5, null, 2]);
});

test("a million points are smoothed without loss of the last ones' weight", () => {
  const smoothed = smooth(new Array<number>(1_000_000).fill(2), 0.99);
  equal(smoothed.length, 1_000_000);
  close(Number(smoothed.at(-1)!.toPrecision(12)), 2);
});

test("the lower bound counts what is below", () => {
  const sorted = [1, 3, 3, 7];
  deepEqual([0, 1, 2, 3, 5, 7, 8].map((x) => lowerBound(sorted, x)), [0, 0, 1, 1, 3, 3, 4]);
  equal(lowerBound([], 1), 0);
});

test("the nearest point is no gap", () => {
  const curve = {x: [0, 10, 20, 30], y: [1, null, null, 4]};
  equal(nearestPoint(curve, 9), 0);
  equal(nearestPoint(curve, 21), 3);
  equal(nearestPoint(curve, -5), 0);
  equal(nearestPoint(curve, 99), 3);
  equal(nearestPoint({x: [1], y: [null]}, 1), undefined);
  equal(nearestPoint({x: [], y: []}, 1), undefined);
});

test("as many curves as there are colours and dashes differ", () => {
  const styles = Array.from({length: COLOURS * DASHES}, (_, n) => JSON.stringify(curveStyle(n)));
  equal(new Set(styles).size, COLOURS * DASHES);
});

test("a curve in words has its ends and extremes", () => {
  const curve: Curve = {id: "a", label: "loss", colour: 0, dash: 0, x: [1, 2, 3, 4], y: [null, 5, 9, 2]};
  equal(describe(curve, (x) => `step ${x}`, (y) => String(y)),
    "loss: from 5 at step 2 to 2 at step 4; lowest 2 at step 4, highest 9 at step 3.");
  equal(describe({...curve, y: [null, null, null, null]}, String, String), "loss: no points.");
});

test("the legend says what gaps are", () => {
  equal(labelOf({label: "training", y: [1, 2]}), "training");
  equal(labelOf({label: "training", y: [1, null, 2]}), "training (gaps: not finite)");
  equal(labelOf({label: "training", y: [1, null]}), "training");
});
