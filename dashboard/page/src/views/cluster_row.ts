// The rows of the cluster's tables: columns by role, a row that is updated in place, and its
// detail.

import type {ClusterTask, Figure, TaskRole} from "../api";
import {h, keyed, setAttribute, setText} from "../dom";
import {formatByteRate, formatBytes, formatCount, formatDuration, formatNumber, formatTime} from "../format";
import {SpeedBar, StalenessBars, StepBar} from "./cluster_bars";
import {nameOf, needsAttention, stateTone, trains} from "./cluster_model";
import type {Tip} from "./cluster_tip";

// The figures of a row beside its task.
export interface Figures {
  median: number | undefined;  // of the workers' steps per second
  now: number;                 // seconds since the epoch, by the server's clock
  shown: readonly Figure[];    // in the detail of a task that trains
}

interface Cell {
  element: Node;
  update(task: ClusterTask, figures: Figures): void;
}

interface Column {
  title: string;
  explanation?: string;
  number?: boolean;
  create(tip: Tip): Cell;
}

// The content behind the row's button: made when it is opened, ended when it is closed.
export interface Detail {
  readonly element: HTMLElement;
  update(task: ClusterTask, figures: Figures): void;
  close(): void;
}

function textColumn(title: string, text: (task: ClusterTask, figures: Figures) => string, explanation?: string): Column {
  return {
    title, number: true, ...(explanation === undefined ? {} : {explanation}),
    create: () => {
      const element = h("span");
      return {element, update: (task, figures) => setText(element, text(task, figures))};
    },
  };
}

const STATE: Column = {
  title: "State",
  create: () => {
    const badge = h("span", {class: "badge", testid: "task-state"});
    const since = h("span", {class: "muted small since"});
    return {
      element: h("div", {class: "row state-cell"}, badge, since),
      update: (task, figures) => {
        setText(badge, task.state);
        setAttribute(badge, "data-tone", stateTone(task.state));
        setText(since, sinceText(task, figures.now));
        setAttribute(since, "title", task.since === undefined ? undefined : `since ${formatTime(task.since)}`);
      },
    };
  },
};

const ADDRESS: Column = {...textColumn("Address", (task) => task.address ?? task.peer ?? "–"), number: false};
const PUSH = textColumn("Push", (task) => formatByteRate(task.pushed_bytes_per_second), "Gradients, in bytes per second");
const PULL = textColumn("Pull", (task) => formatByteRate(task.pulled_bytes_per_second), "Values, in bytes per second");
const RESTARTS = textColumn("Restarts", (task) => formatCount(task.restarts));

const COLUMNS: Record<TaskRole, Column[]> = {
  chief: [STATE, ADDRESS, RESTARTS],
  ps: [
    STATE,
    textColumn("Values", (task) => formatBytes(task.value_bytes)),
    textColumn("Slots", (task) => formatBytes(task.slot_bytes), "What the optimizer keeps beside the values"),
    textColumn("Clients", (task) => formatCount(task.clients)), PUSH, PULL,
    textColumn("Step", (task) => formatCount(task.shard_step), "Pushes that the shard has applied"), RESTARTS,
  ],
  worker: [
    STATE,
    {
      title: "Steps/s", explanation: "The bar's mark is the median of the workers",
      create: () => {
        const bar = new SpeedBar();
        return {element: bar.element, update: (task, figures) => bar.update(task, figures.median)};
      },
    },
    textColumn("Examples/s", (task) => formatNumber(task.state === "alive" ? task.examples_per_second : undefined, 3)),
    {title: "Where a step's time goes", create: (tip) => barCell(new StepBar(tip))},
    {title: "Staleness", explanation: "Steps by how many others came between reading and pushing; and the mean",
      create: (tip) => barCell(new StalenessBars(tip))},
    PUSH, PULL, RESTARTS,
  ],
  evaluator: [STATE, ADDRESS, RESTARTS],
};

export class TaskTable {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly rows = new Map<string, TaskRow>();
  private readonly head = h("thead");
  private readonly table: HTMLElement;
  private columns: Column[] = [];

  constructor(private readonly role: TaskRole, private readonly tip: Tip,
    private readonly openDetail: (task: ClusterTask) => Detail) {
    this.table = h("table", {class: "data tasks", testid: `tasks-${role}`}, this.head, this.body);
    this.element = h("div", {class: "scroll"}, this.table);
    this.setColumns(role === "worker");
  }

  update(tasks: readonly ClusterTask[], figures: Figures): void {
    if (this.columns !== COLUMNS.worker && tasks.some(trains)) this.setColumns(true);
    const here = new Set(tasks.map((task) => task.task));
    for (const [name, row] of this.rows) {
      if (!here.has(name)) {
        row.close();
        this.rows.delete(name);
      }
    }
    const elements: HTMLElement[] = [];
    for (const task of tasks) {
      let row = this.rows.get(task.task);
      if (row === undefined) {
        row = new TaskRow(task, this.columns, this.tip, this.openDetail);
        this.rows.set(task.task, row);
      }
      row.update(task, figures);
      elements.push(row.element, row.noted, row.below);
    }
    keyed(this.body, elements, (element) => element.id, (element) => element);
  }

  // Closes the detail.
  close(): void {
    for (const row of this.rows.values()) row.close();
  }

  // A chief that has trained keeps a worker's columns while it is away.
  private setColumns(training: boolean): void {
    this.close();
    this.rows.clear();
    this.columns = COLUMNS[training ? "worker" : this.role];
    this.table.classList.toggle("training", training);
    this.head.replaceChildren(h("tr", null, h("th", {scope: "col"}, "Task"), ...this.columns.map((column) =>
      h("th", {scope: "col", class: column.number ? "number" : undefined, title: column.explanation}, column.title))));
    this.body.replaceChildren();
  }
}

class TaskRow {
  readonly element: HTMLTableRowElement;
  readonly noted: HTMLTableRowElement;  // what is remarkable, under the row
  readonly below: HTMLTableRowElement;  // what opens under both
  private readonly cells: Cell[];
  private readonly button: HTMLButtonElement;
  private readonly device = h("div", {class: "muted small device"});
  private readonly remarks = h("ul", {class: "remarks"});
  private readonly room: HTMLElement;
  private detail: Detail | undefined;
  private figures: Figures | undefined;

  constructor(private task: ClusterTask, columns: readonly Column[], tip: Tip,
    private readonly openDetail: (task: ClusterTask) => Detail) {
    const id = `task-${task.task}`;
    this.cells = columns.map((column) => column.create(tip));
    this.button = h("button", {
      class: "task-button", type: "button", "aria-expanded": "false", "aria-controls": `${id}-detail`, testid: `open-${task.task}`,
      on: {click: () => this.toggle()},
    }, nameOf(task));
    this.room = h("td", {colspan: columns.length + 1});
    this.element = h("tr", {id, testid: id, class: "task"},
      h("td", {class: "task-name"}, this.button, this.device),
      ...columns.map((column, i) =>
        h("td", {class: column.number ? "number" : undefined, "data-title": column.title}, this.cells[i]!.element)));
    this.noted = h("tr", {id: `${id}-remarks`, class: "noted"}, h("td", {colspan: columns.length + 1}, this.remarks));
    this.below = h("tr", {id: `${id}-detail`, class: "detail", hidden: true}, this.room);
  }

  update(task: ClusterTask, figures: Figures): void {
    this.task = task;
    this.figures = figures;
    setText(this.button, nameOf(task));
    const attention = needsAttention(task);
    for (const row of [this.element, this.noted]) {
      setAttribute(row, "data-attention", attention);
      setAttribute(row, "data-state", task.state);
    }
    this.noted.hidden = (task.remarks ?? []).length === 0;
    setText(this.device, task.device ?? "");
    this.device.hidden = task.device === undefined;
    keyed(this.remarks, task.remarks ?? [], (remark) => remark.kind,
      (remark) => h("li", {class: "remark", testid: `remark-${remark.kind}`}),
      (element, remark) => setText(element, `${remark.kind}: ${remark.text}`));
    for (const cell of this.cells) cell.update(task, figures);
    this.detail?.update(task, figures);
  }

  close(): void {
    this.detail?.close();
    this.detail = undefined;
    this.room.replaceChildren();
    this.below.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
  }

  private toggle(): void {
    if (this.detail !== undefined) {
      this.close();
      return;
    }
    this.detail = this.openDetail(this.task);
    if (this.figures !== undefined) this.detail.update(this.task, this.figures);
    this.room.replaceChildren(this.detail.element);
    this.below.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
  }
}

function barCell(bar: {element: HTMLElement; update(task: ClusterTask): void}): Cell {
  return {element: bar.element, update: (task) => bar.update(task)};
}

// "since 12 s".
function sinceText(task: ClusterTask, now: number): string {
  return task.since === undefined ? "" : `since ${formatDuration(Math.max(0, Math.floor(now - task.since)))}`;
}
