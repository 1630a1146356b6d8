// The cluster's tasks with their speeds and waits; and the placement of the variables.

import {ApiError, errorText, isAbort, isMisshapen, type Cluster, type ClusterTask, type TaskRole} from "../api";
import {h, setText} from "../dom";
import {formatTime} from "../format";
import type {Context, View} from "../view";
import "./cluster.css";
import {stepLegend} from "./cluster_bars";
import {TaskDetail} from "./cluster_detail";
import {medianSpeed, nameOf, needsAttention, placementVersion, ROLES, serversTitle, sortTasks, trains} from "./cluster_model";
import {PlacementCard} from "./cluster_placement";
import {TablesCard} from "./cluster_tables";
import {TaskTable, type Figures} from "./cluster_row";
import {Tip} from "./cluster_tip";

const TITLES: Record<TaskRole, string> = {
  chief: "Chief", ps: serversTitle([]), worker: "Workers", evaluator: "Evaluators",
};
const CLOCK_MS = 1000;

interface Section {
  element: HTMLElement;
  title: HTMLElement;
  count: HTMLElement;
  legend: HTMLElement;  // of the parts of a step, if a task trains
  table: TaskTable;
}

class ClusterPage {
  private readonly tip = new Tip();
  private readonly sections = new Map<TaskRole, Section>();
  private readonly placement = new PlacementCard(this.tip);
  private readonly tables = new TablesCard();
  private readonly summary = h("p", {class: "row", testid: "cluster-summary"});
  private readonly announcement = h("p", {class: "visually-hidden", "aria-live": "polite"});
  private readonly note = h("p", {class: "cluster-note", hidden: true, testid: "cluster-note"});
  private readonly nothing = h("p", {class: "message", hidden: true, testid: "nothing-remarkable"}, "Nothing needs attention.");
  private readonly filter: HTMLInputElement;
  private readonly abort = new AbortController();
  private readonly ends: (() => void)[] = [];
  private cluster: Cluster | undefined;
  private placed = "";  // what the placement was last asked for
  private ahead = 0;  // the server's clock, in seconds before this one
  private states = new Map<string, string>();

  constructor(private readonly root: HTMLElement, private readonly context: Context) {
    this.filter = h("input", {type: "checkbox", testid: "attention-only", on: {change: () => this.draw()}});
    for (const role of ROLES) this.sections.set(role, this.section(role));
    root.append(h("div", {class: "cluster stack"},
      h("div", {class: "card cluster-head"}, this.summary, h("span", {class: "spacer"}),
        h("label", null, this.filter, "Only what needs attention")),
      this.note, this.announcement, this.nothing,
      ...[...this.sections.values()].map((section) => section.element), this.tables.element, this.placement.element,
      this.tip.element));
    this.placement.element.hidden = true;
    this.ends.push(
      context.stream.on("cluster", (cluster) => this.receive(cluster)),
      context.stream.on("hello", () => void this.fetch()));
    const clock = setInterval(() => this.draw(), CLOCK_MS);
    this.ends.push(() => clearInterval(clock));
    void this.fetch();
  }

  close(): void {
    this.abort.abort();
    for (const end of this.ends) end();
    for (const section of this.sections.values()) section.table.close();
    this.root.replaceChildren();
  }

  private section(role: TaskRole): Section {
    const table = new TaskTable(role, this.tip, (task) => new TaskDetail(this.context, task));
    const count = h("span", {class: "muted small"});
    const legend = stepLegend();
    const title = h("h3", {id: `cluster-${role}`}, TITLES[role]);
    const element = h("section", {class: "card", hidden: true, "aria-labelledby": `cluster-${role}`},
      h("header", null, title, count, h("span", {class: "spacer"}),
        legend),
      table.element);
    return {element, title, count, legend, table};
  }

  private async fetch(): Promise<void> {
    const {api, run} = this.context;
    try {
      const {time} = await api.runs(this.abort.signal);
      this.ahead = time - Date.now() / 1000;
      this.receive(await api.cluster(run, this.abort.signal));
    } catch (error) {
      this.explain(error);
      return;
    }
    await this.fetchPlacement();
  }

  // The placement is not known before training starts.
  private async fetchPlacement(): Promise<void> {
    this.placed = placementVersion(this.cluster?.tasks ?? []);
    try {
      this.placement.show(await this.context.api.placement(this.context.run, this.abort.signal));
    } catch (error) {
      if (isMisshapen(error)) {
        this.placement.explain(errorText(error));
      } else if (!(error instanceof ApiError && error.status === 404)) {
        this.explain(error);
      }
      return;
    }
    this.placement.element.hidden = false;
  }

  private explain(error: unknown): void {
    if (!isAbort(error)) {
      this.note.hidden = false;
      setText(this.note, errorText(error));
    }
  }

  private receive(cluster: Cluster): void {
    if (cluster.run !== this.context.run) return;
    const first = this.cluster === undefined;
    this.cluster = cluster;
    this.announce(cluster, first);
    this.draw();
    this.tip.refresh();
    const training = cluster.tasks.some((task) => trains(task) && task.state === "alive");
    const moved = placementVersion(cluster.tasks) !== this.placed;
    if (!first && (moved || (training && this.placement.element.hidden))) {
      void this.fetchPlacement();
    }
  }

  // What changed, for screen readers.
  private announce(cluster: Cluster, first: boolean): void {
    const news = cluster.tasks.filter((task) => this.states.get(task.task) !== task.state);
    this.states = new Map(cluster.tasks.map((task) => [task.task, task.state]));
    if (!first && news.length > 0) {
      setText(this.announcement, news.map((task) => `${nameOf(task)} is ${task.state}`).join(", "));
    }
  }

  private draw(): void {
    const cluster = this.cluster;
    if (cluster === undefined) return;
    const tasks = sortTasks(cluster.tasks);
    const remarkable = tasks.filter(needsAttention);
    this.drawSummary(tasks, remarkable.length);
    this.tables.show(cluster.tables ?? []);
    this.note.hidden = !cluster.stale;
    setText(this.note, cluster.stale
      ? `The chief has not written since ${formatTime(cluster.updated)}: what is said of the others is old.` : "");
    const shown = this.filter.checked ? remarkable : tasks;
    this.nothing.hidden = !this.filter.checked || remarkable.length > 0;
    const figures: Figures = {median: medianSpeed(tasks), now: Date.now() / 1000 + this.ahead, shown: cluster.figures};
    setText(this.sections.get("ps")!.title, serversTitle(tasks.filter((task) => task.role === "ps")));
    for (const [role, section] of this.sections) {
      const own = shown.filter((task) => task.role === role);
      section.element.hidden = own.length === 0;
      section.legend.hidden = !own.some(trains);
      setText(section.count, own.length === 1 ? "" : String(own.length));
      section.table.update(own, figures);
    }
  }

  private drawSummary(tasks: readonly ClusterTask[], remarkable: number): void {
    const alive = tasks.filter((task) => task.state === "alive").length;
    const text = tasks.length === 0 ? "Nobody has been heard of yet." : `${alive} of ${tasks.length} alive`;
    setText(this.summary, remarkable === 0 ? text : `${text}, ${remarkable} ${remarkable === 1 ? "needs" : "need"} attention`);
  }
}

export const cluster: View = {
  id: "cluster",
  title: "Cluster",
  mount: (root, context) => new ClusterPage(root, context),
};
