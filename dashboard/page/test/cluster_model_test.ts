import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import type {ClusterTask, TaskRole, TaskState} from "../src/api_types";
import {formatByteRate, formatBytes, formatCount, formatDuration} from "../src/format";
import {
  figureText, hottestText, idsPerDistinct, medianSpeed, nameOf, needsAttention, placementVersion, serversTitle, shardPieces, shareWithoutRow, sortTasks, stalenessBuckets, stateTone, stepParts, trains,
} from "../src/views/cluster_model";

function task(role: TaskRole, index: number, more: Partial<ClusterTask> = {}): ClusterTask {
  return {task: `${role}-${index}`, role, index, state: "alive", ...more};
}

test("tasks are in the order of roles, then of numbers", () => {
  const tasks = [task("worker", 10), task("evaluator", 0), task("worker", 2), task("ps", 0), task("chief", 0)];
  deepEqual(sortTasks(tasks).map((one) => one.task), ["chief-0", "ps-0", "worker-2", "worker-10", "evaluator-0"]);
});

test("a shard of a task that trains is called after it", () => {
  const server = task("ps", 0);
  const shard = task("ps", 12, {host: "worker-1"});
  equal(nameOf(server), "ps-0");
  equal(nameOf(shard), "shard-12 of worker-1");
  equal(serversTitle([]), "Parameter servers");
  equal(serversTitle([server]), "Parameter servers");
  equal(serversTitle([server, shard]), "Parameter servers and shards");
  equal(serversTitle([shard]), "Shards");
});

test("the placement has changed when a shard is hosted by another task", () => {
  const at = (host: string) => placementVersion([task("ps", 0, {value_bytes: 8, host})]);
  equal(at("worker-0") === at("worker-0"), true);
  equal(at("worker-0") === at("worker-1"), false);
});

test("what is not alive, or has a remark, needs attention; who has left does not", () => {
  const states: TaskState[] = ["waiting", "alive", "away", "restoring", "lost", "left", "down"];
  deepEqual(states.filter((state) => needsAttention(task("ps", 0, {state}))), ["waiting", "away", "restoring", "lost", "down"]);
  equal(needsAttention(task("worker", 0, {remarks: [{kind: "straggler", text: "slow"}]})), true);
  equal(needsAttention(task("worker", 0, {remarks: []})), false);
});

test("how often a step has an id of a table", () => {
  equal(idsPerDistinct({name: "users", row_ids: {all: 30, distinct: 12}}), "2.5");
  equal(idsPerDistinct({name: "users", row_ids: {all: 0, distinct: 0}}), idsPerDistinct({name: "users"}));
});

test("of a table: the share of look-ups without a row, and the ids in most pushes", () => {
  equal(shareWithoutRow({name: "users", looked_up: 200, looked_up_absent: 25}), "12.5 %");
  equal(shareWithoutRow({name: "users", looked_up: 200}), "0.0 %");
  equal(shareWithoutRow({name: "users", looked_up: 0}), shareWithoutRow({name: "users"}));
  const hottest = [{id: "18446744073709551615", pushes: 640}, {id: "7", pushes: 64}];
  equal(hottestText({name: "users", hottest}), "18446744073709551615: about 640 pushes\n7: about 64 pushes");
  equal(hottestText({name: "users"}), "");
});

test("lost and down are bad, alive is good, the rest is in between", () => {
  const states: TaskState[] = ["alive", "lost", "down", "left", "waiting", "away", "restoring"];
  deepEqual(states.map(stateTone), ["good", "bad", "bad", "muted", "warn", "warn", "warn"]);
});

test("a figure is told in its unit, wherever it stands in the task", () => {
  const one = {...task("worker", 0, {steps: 12345, staleness: {mean: 1, max: 4, bounds: [], counts: []}}), wait: 0.25, sent: 3e6};
  const told = (key: string, unit: string) => figureText({key, label: "", unit, help: ""}, one);
  equal(told("steps", "steps"), formatCount(12345));
  equal(told("staleness.max", "pushes"), "4");
  equal(told("wait", "seconds"), formatDuration(0.25));
  equal(told("sent", "bytes"), formatBytes(3e6));
  equal(told("sent", "bytes/second"), formatByteRate(3e6));
  equal(told("wait", "ratio"), "0.25");
  equal(told("nothing.here", "steps"), formatCount(undefined));
});

test("the median speed is that of workers that are alive and have one", () => {
  const at = (index: number, speed: number | null, state: TaskState = "alive") => task("worker", index, {state, steps_per_second: speed});
  equal(medianSpeed([]), undefined);
  equal(medianSpeed([at(0, 10), at(1, 40), at(2, 20)]), 20);
  equal(medianSpeed([at(0, 10), at(1, 40), at(2, 1, "lost"), at(3, null), task("ps", 0, {steps_per_second: 1})]), 25);
});

test("a chief that trains is one of the workers", () => {
  const tasks = [task("chief", 0, {steps: 9, steps_per_second: 30}), task("worker", 1, {steps_per_second: 10})];
  deepEqual(tasks.map(trains), [true, true]);
  equal(medianSpeed(tasks), 20);
  deepEqual([task("chief", 0), task("ps", 0, {shard_step: 9}), task("evaluator", 0), task("worker", 0)].map(trains),
    [false, false, false, true]);
});

test("variables may be elsewhere after the chief, the servers or what they hold have changed", () => {
  const tasks = [task("chief", 0, {restarts: 0}), task("ps", 0, {value_bytes: 10, state: "alive"}), task("worker", 0)];
  const version = placementVersion(tasks);
  equal(placementVersion([tasks[0]!, {...tasks[1]!, state: "lost", restarts: 3, clients: 2}, task("worker", 0, {steps: 3})]), version);
  for (const changed of [
    [task("chief", 0, {restarts: 1}), tasks[1]!], [...tasks, task("ps", 1)],
    [tasks[0]!, task("ps", 0, {value_bytes: 20})],
  ]) {
    equal(placementVersion(changed) === version, false);
  }
});

test("the parts of a step are shares of the whole", () => {
  deepEqual(stepParts({input: 1, pull: 2, compute: 4, push: 1}).map((part) => [part.label, part.seconds, part.share]),
    [["parameters", 2, 0.25], ["input", 1, 0.125], ["compute", 4, 0.5], ["push", 1, 0.125]]);
  deepEqual(stepParts({input: null, pull: 0, compute: 3, push: 0}).map((part) => part.share), [0, 0, 1, 0]);
  deepEqual(stepParts({input: 0, pull: 0, compute: null, push: 0}), []);
  deepEqual(stepParts(undefined), []);
});

test("the histogram of staleness ends with its last full bucket", () => {
  const buckets = stalenessBuckets({mean: 1, max: 7, bounds: [0, 1, 2, 4, 8], counts: [5, 10, 0, 0, 5, 0]});
  deepEqual(buckets.map((bucket) => [bucket.label, bucket.count, bucket.share, bucket.height]),
    [["0", 5, 0.25, 0.5], ["1", 10, 0.5, 1], ["2", 0, 0, 0], ["3–4", 0, 0, 0], ["5–8", 5, 0.25, 0.5]]);
  deepEqual(stalenessBuckets({mean: 9, max: 9, bounds: [0, 1], counts: [0, 0, 3]}).at(-1)?.label, "> 1");
  deepEqual(stalenessBuckets({mean: null, max: null, bounds: [0, 1], counts: [0, 0, 0]}), []);
  deepEqual(stalenessBuckets(undefined), []);
});

test("a server's pieces are in the order of their sizes", () => {
  const pieces = shardPieces({
    run: "r", balance: 1, shards: [{task: "ps-0", bytes: 30}, {task: "ps-1", bytes: 60}],
    variables: [
      {name: "a", shape: [4], bytes: 10, partitions: [{shard: 0, row_begin: 0, row_end: 4, bytes: 10}]},
      {name: "b", shape: [8], bytes: 80, partitions: [
        {shard: 0, row_begin: 0, row_end: 2, bytes: 20}, {shard: 1, row_begin: 2, row_end: 8, bytes: 60}]},
      {name: "c", shape: [1], bytes: 4, partitions: [{shard: 7, row_begin: 0, row_end: 1, bytes: 4}]},
    ],
  });
  deepEqual(pieces, [
    [{variable: "b", number: 1, rows: "rows 0 to 1", bytes: 20}, {variable: "a", number: 0, rows: "", bytes: 10}],
    [{variable: "b", number: 1, rows: "rows 2 to 7", bytes: 60}],
  ]);
});
