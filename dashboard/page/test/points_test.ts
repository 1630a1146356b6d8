import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import {mergePoints, NO_POINTS, pointsOf, type Points} from "../src/points";

function points(step: number[], value: (number | null)[]): Points {
  return {step, time: step.map((at) => 1000 + at), value};
}

test("newer points follow older ones", () => {
  deepEqual(mergePoints(points([1, 2], [10, 20]), points([3], [30])), points([1, 2, 3], [10, 20, 30]));
});

test("points go between those that are there, and the newer of a step counts", () => {
  deepEqual(mergePoints(points([1, 3, 5], [10, 30, 50]), points([2, 3, 6], [20, 31, null])),
    points([1, 2, 3, 5, 6], [10, 20, 31, 50, null]));
});

test("points of a run that restarted at an earlier step replace and precede", () => {
  deepEqual(mergePoints(points([10, 20], [1, 2]), points([5, 10], [7, 8])), points([5, 10, 20], [7, 8, 2]));
});

test("no points change nothing", () => {
  const some = points([1], [10]);
  equal(mergePoints(some, NO_POINTS), some);
  deepEqual(mergePoints(NO_POINTS, some), some);
  deepEqual(NO_POINTS, points([], []));
});

test("a series in order is taken as it is", () => {
  deepEqual(pointsOf({name: "train/loss", total: 2, ...points([1, 4], [10, null])}), points([1, 4], [10, null]));
});

test("a series that goes back is put in order, and the last of a step counts", () => {
  const series = {name: "train/loss", step: [1, 4, 2, 4, 5], time: [0, 1, 2, 3, 4], value: [10, 40, 20, 41, 50]};
  deepEqual(pointsOf(series), {step: [1, 2, 4, 5], time: [0, 2, 3, 4], value: [10, 20, 41, 50]});
});
