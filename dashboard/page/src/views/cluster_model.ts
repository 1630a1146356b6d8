// The cluster's figures, independent of the page: order, attention, shares, buckets.

import type {ClusterTable, ClusterTask, Figure, Placement, TaskRole, TaskState} from "../api";
import {formatByteRate, formatBytes, formatCount, formatDuration, formatNumber, formatPercent} from "../format";

export const ROLES: readonly TaskRole[] = ["chief", "ps", "worker", "evaluator"];

// A task as people know it: "worker-1", "shard-2 of worker-1".
export function nameOf(task: {task: string; host?: string}): string {
  return task.host === undefined ? task.task : `shard-${task.task.slice(task.task.lastIndexOf("-") + 1)} of ${task.host}`;
}

// What those are that hold the variables.
export function serversTitle(servers: readonly ClusterTask[]): string {
  if (servers.length > 0 && servers.every((server) => server.host !== undefined)) return "Shards";
  return servers.some((server) => server.host !== undefined) ? "Parameter servers and shards" : "Parameter servers";
}

// Of the ids that were looked up in a table.
export function shareWithoutRow(table: ClusterTable): string {
  return formatPercent(table.looked_up ? (table.looked_up_absent ?? 0) / table.looked_up : undefined);
}

// How often a step's records have an id that they have at all.
export function idsPerDistinct(table: ClusterTable): string {
  const {all = 0, distinct = 0} = table.row_ids ?? {};
  return formatNumber(distinct > 0 ? all / distinct : undefined, 3);
}

// The ids that are in most pushes, a line each.
export function hottestText(table: ClusterTable): string {
  return (table.hottest ?? []).map((hot) => `${hot.id}: about ${formatCount(hot.pushes)} pushes`).join("\n");
}

export type Tone = "good" | "warn" | "bad" | "muted";

export type StepSeconds = NonNullable<ClusterTask["step_seconds"]>;
export type Staleness = NonNullable<ClusterTask["staleness"]>;

// Which of the page's colours a state has; its text says the same.
export function stateTone(state: TaskState): Tone {
  switch (state) {
    case "alive": return "good";
    case "lost":
    case "down": return "bad";
    case "left": return "muted";
    default: return "warn";
  }
}

// Whether the task is away or failed, or has a remark.
export function needsAttention(task: ClusterTask): boolean {
  return (task.state !== "alive" && task.state !== "left") || (task.remarks ?? []).length > 0;
}

// A worker, or a chief that trains too.
export function trains(task: ClusterTask): boolean {
  return task.role === "worker" || task.steps !== undefined;
}

// The value of a figure as text, in its unit.
export function figureText(figure: Figure, task: ClusterTask): string {
  const value = valueAt(task, figure.key.split("."));
  switch (figure.unit) {
    case "seconds": return formatDuration(value);
    case "bytes": return formatBytes(value);
    case "bytes/second": return formatByteRate(value);
    default: return value === undefined || Number.isInteger(value) ? formatCount(value) : formatNumber(value);
  }
}

function valueAt(object: unknown, keys: readonly string[]): number | undefined {
  let value = object;
  for (const key of keys) value = (value as Record<string, unknown> | undefined)?.[key];
  return typeof value === "number" ? value : undefined;
}

// A value that changes when the placement may have changed: with the chief's process, the servers,
// or their contents.
export function placementVersion(tasks: readonly ClusterTask[]): string {
  return tasks.filter((task) => task.role === "chief" || task.role === "ps")
    .map((task) => [nameOf(task), task.role === "chief" ? task.restarts : task.value_bytes].join(" ")).join(", ");
}

// By role (chief, ps, worker, evaluator), then by index.
export function sortTasks(tasks: readonly ClusterTask[]): ClusterTask[] {
  const rank = (role: TaskRole) => (ROLES.includes(role) ? ROLES.indexOf(role) : ROLES.length);
  return [...tasks].sort((a, b) => rank(a.role) - rank(b.role) || a.index - b.index);
}

export function median(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// In steps per second, over the tasks that train and are alive.
export function medianSpeed(tasks: readonly ClusterTask[]): number | undefined {
  return median(tasks.filter((task) => trains(task) && task.state === "alive")
    .map((task) => task.steps_per_second)
    .filter((speed): speed is number => typeof speed === "number"));
}

export interface StepPart {
  key: keyof StepSeconds;
  label: string;
  seconds: number;
  share: number;  // of the whole step, 0 to 1
}

export const STEP_PARTS: readonly {key: keyof StepSeconds; label: string}[] = [
  {key: "pull", label: "parameters"},
  {key: "input", label: "input"},
  {key: "compute", label: "compute"},
  {key: "push", label: "push"},
];

// The parts of a worker's mean step; empty when nothing has been measured.
export function stepParts(step: StepSeconds | undefined): StepPart[] {
  const seconds = STEP_PARTS.map((part) => step?.[part.key] ?? 0);
  const total = seconds.reduce((sum, part) => sum + part, 0);
  if (!(total > 0)) return [];
  return STEP_PARTS.map((part, i) => ({...part, seconds: seconds[i]!, share: seconds[i]! / total}));
}

export interface StalenessBucket {
  label: string;
  count: number;
  share: number;   // of all steps, 0 to 1
  height: number;  // relative to the fullest bucket, 0 to 1
}

// The histogram without the empty buckets behind its last full one.
export function stalenessBuckets(staleness: Staleness | undefined): StalenessBucket[] {
  const counts = staleness?.counts ?? [];
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (staleness === undefined || total === 0) return [];
  const most = Math.max(...counts);
  const end = counts.reduce((last, count, i) => (count > 0 ? i + 1 : last), 0);
  return counts.slice(0, end).map((count, i) => ({
    label: bucketLabel(staleness.bounds, i), count, share: count / total, height: count / most,
  }));
}

function bucketLabel(bounds: readonly number[], i: number): string {
  const bound = bounds[i];
  if (bound === undefined) return `> ${bounds[bounds.length - 1] ?? 0}`;
  const below = i === 0 ? -1 : bounds[i - 1]!;
  return bound - below <= 1 ? `${bound}` : `${below + 1}–${bound}`;
}

export interface ShardPiece {
  variable: string;
  number: number;  // the variable's place in Placement.variables
  rows: string;    // empty: the whole variable
  bytes: number;
}

// The pieces of each shard, the largest first.
export function shardPieces(placement: Placement): ShardPiece[][] {
  const shards: ShardPiece[][] = placement.shards.map(() => []);
  placement.variables.forEach((variable, number) => {
    for (const part of variable.partitions) {
      const rows = variable.partitions.length === 1 ? "" : `rows ${part.row_begin} to ${part.row_end - 1}`;
      shards[part.shard]?.push({variable: variable.name, number, rows, bytes: part.bytes});
    }
  });
  for (const pieces of shards) pieces.sort((a, b) => b.bytes - a.bytes);
  return shards;
}
