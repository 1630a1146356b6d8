import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import {beside, chartsOf, columns, curveOf, parseSeriesName, pointsFor, queryFor, unitOf} from "../src/views/curves_model";

const SCALE = {started: 100, stepsPerEpoch: 10};
const POINTS = {step: [10, 20, 30], time: [101, 103, 102], value: [1, null, 3]};

test("names of series", () => {
  deepEqual(parseSeriesName("train/global_step/sec"), {group: "train", metric: "global_step/sec"});
  deepEqual(parseSeriesName("eval/loss"), {group: "eval", metric: "loss"});
  deepEqual(parseSeriesName("task/worker-0/steps_per_second"), {group: "task", task: "worker-0", metric: "steps_per_second"});
  deepEqual(["train/", "other/loss", "task/worker-0", ""].map(parseSeriesName), [undefined, undefined, undefined, undefined]);
});

test("training and evaluation of a metric share a chart, the loss comes first, then what evaluation says, tasks last", () => {
  const charts = chartsOf(["task/worker-0/loss", "train/learning_rate", "eval/accuracy", "eval/loss", "train/loss", "strange",
    "task/worker-1/loss"]);
  deepEqual(charts.map((chart) => [chart.id, chart.names]), [
    ["loss", ["train/loss", "eval/loss"]], ["accuracy", ["eval/accuracy"]], ["learning_rate", ["train/learning_rate"]],
    ["task-loss", ["task/worker-0/loss", "task/worker-1/loss"]]]);
});

test("what is zoomed to becomes steps or times", () => {
  const range = {from: 1, to: 2};
  deepEqual(queryFor("step", SCALE, range), {x: "step", from: 1, to: 2});
  deepEqual(queryFor("epoch", SCALE, range), {x: "step", from: 10, to: 20});
  deepEqual(queryFor("elapsed", SCALE, range), {x: "time", from: 101, to: 102});
  deepEqual(queryFor("time", SCALE, range), {x: "time", from: 1, to: 2});
  deepEqual(queryFor("time", SCALE, undefined), {x: "time"});
});

test("many curves share the points of a chart", () => {
  deepEqual([0, 1, 4, 20, 100].map((curves) => pointsFor(curves, false)), [1200, 1200, 1200, 240, 200]);
  deepEqual([1, 4, 20, 100].map((curves) => pointsFor(curves, true)), [2500, 2000, 400, 300]);
});

test("points along each axis ascend", () => {
  deepEqual(columns(POINTS, "step", SCALE), {x: [10, 20, 30], y: [1, null, 3]});
  deepEqual(columns(POINTS, "epoch", SCALE), {x: [1, 2, 3], y: [1, null, 3]});
  deepEqual(columns(POINTS, "epoch", {...SCALE, stepsPerEpoch: undefined}).x, [10, 20, 30]);
  deepEqual(columns(POINTS, "elapsed", SCALE), {x: [1, 2, 3], y: [1, 3, null]});
  deepEqual(columns(POINTS, "time", SCALE), {x: [101, 102, 103], y: [1, 3, null]});
});

test("one point on either side leads to the edges of what is zoomed to", () => {
  deepEqual(beside(POINTS, {x: "step", from: 15, to: 25}), {step: [10, 30], time: [101, 102], value: [1, 3]});
  deepEqual(beside(POINTS, {x: "step", from: 5, to: 35}), {step: [], time: [], value: []});
  deepEqual(beside(POINTS, {x: "step"}), {step: [], time: [], value: []});
});

test("a curve is smoothed only with a weight and more than one point", () => {
  const style = {id: "a", label: "a", colour: 0, dash: 0};
  equal(curveOf(style, POINTS, "step", SCALE, 0).smoothed, undefined);
  deepEqual(curveOf(style, POINTS, "step", SCALE, 0.5).smoothed?.length, 3);
  equal(curveOf(style, {step: [1], time: [1], value: [1]}, "step", SCALE, 0.5).smoothed, undefined);
});

test("units follow the metric's name", () => {
  equal(unitOf("pushed_bytes_per_second").format(2e6), "2.00 MB/s");
  equal(unitOf("pulled_bytes/sec").format(2e6), "2.00 MB/s");
  equal(unitOf("pull_seconds").format(0.002), "2 ms");
  equal(unitOf("accuracy").format(0.98), "0.98");
});
