// The detail under a task's row: all its figures, and their history.

import type {ClusterTask, Figure} from "../api";
import {fill, h, setText} from "../dom";
import {formatTime} from "../format";
import type {Context} from "../view";
import {stalenessTable} from "./cluster_bars";
import {TaskHistory} from "./cluster_history";
import {figureText, stalenessBuckets, trains} from "./cluster_model";
import type {Figures} from "./cluster_row";

export class TaskDetail {
  readonly element: HTMLElement;
  private readonly facts = new Map<string, HTMLElement>();
  private readonly list = h("dl");
  private readonly staleness = h("div", {class: "facts small"});
  private readonly history: TaskHistory | undefined;

  constructor(context: Context, task: ClusterTask) {
    this.history = trains(task) ? new TaskHistory(context, task.task) : undefined;
    this.element = h("div", {class: "task-detail", testid: `detail-${task.task}`},
      h("div", {class: "facts small"}, this.list), this.staleness, this.history?.element);
  }

  update(task: ClusterTask, {shown}: Figures): void {
    for (const {name, text, help} of factsOf(task, shown)) {
      let value = this.facts.get(name);
      if (value === undefined) {
        value = h("dd");
        this.facts.set(name, value);
        this.list.append(h("dt", help === undefined ? null : {title: help}, name), value);
      }
      setText(value, text ?? "–");
    }
    const buckets = stalenessBuckets(task.staleness);
    fill(this.staleness, buckets.length === 0 ? null : stalenessTable(buckets));
  }

  close(): void {
    this.history?.close();
  }
}

interface Fact {
  name: string;
  text: string | undefined;
  help?: string;
}

function factsOf(task: ClusterTask, figures: readonly Figure[]): Fact[] {
  const facts: Fact[] = [
    {name: "in this state since", text: task.since === undefined ? undefined : formatTime(task.since)},
    {name: "address", text: task.address ?? task.peer},
  ];
  if (trains(task)) {
    facts.push(
      {name: "device", text: task.device},
      ...figures.map((figure) => ({name: figure.label, text: figureText(figure, task), help: figure.help})));
  } else if (task.device !== undefined) {
    facts.push({name: "device", text: task.device});
  }
  return facts;
}
