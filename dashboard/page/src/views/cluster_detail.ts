// The detail under a task's row: all its figures, and their history.

import type {ClusterTask} from "../api";
import {fill, h, setText} from "../dom";
import {formatCount, formatDuration, formatNumber, formatTime} from "../format";
import type {Context} from "../view";
import {stalenessTable} from "./cluster_bars";
import {TaskHistory} from "./cluster_history";
import {stalenessBuckets, trains} from "./cluster_model";

export class TaskDetail {
  readonly element: HTMLElement;
  private readonly facts = new Map<string, {name: HTMLElement; value: HTMLElement}>();
  private readonly list = h("dl");
  private readonly staleness = h("div", {class: "facts small"});
  private readonly history: TaskHistory | undefined;

  constructor(context: Context, task: ClusterTask) {
    this.history = trains(task) ? new TaskHistory(context, task.task) : undefined;
    this.element = h("div", {class: "task-detail", testid: `detail-${task.task}`},
      h("div", {class: "facts small"}, this.list), this.staleness, this.history?.element);
  }

  update(task: ClusterTask): void {
    for (const [name, value] of factsOf(task)) {
      let fact = this.facts.get(name);
      if (fact === undefined) {
        fact = {name: h("dt", null, name), value: h("dd")};
        this.facts.set(name, fact);
        this.list.append(fact.name, fact.value);
      }
      setText(fact.value, value ?? "–");
    }
    const buckets = stalenessBuckets(task.staleness);
    fill(this.staleness, buckets.length === 0 ? null : stalenessTable(buckets));
  }

  close(): void {
    this.history?.close();
  }
}

function factsOf(task: ClusterTask): [string, string | undefined][] {
  const facts: [string, string | undefined][] = [
    ["in this state since", task.since === undefined ? undefined : formatTime(task.since)],
    ["address", task.address ?? task.peer],
    ["incarnation", task.incarnation],
  ];
  if (trains(task)) {
    facts.push(
      ["device", task.device],
      ["steps", formatCount(task.steps)],
      ["examples", formatCount(task.examples)],
      ["staleness, largest", formatNumber(task.staleness?.max)],
      ["waits for credits, per step", formatDuration(task.credit_wait_seconds)],
      ["repeated pushes", formatCount(task.push_retries)]);
  } else if (task.device !== undefined) {
    facts.push(["device", task.device]);
  }
  return facts;
}
