import "../style/snapshots.css";
import {errorText, isAbort, type Snapshot, type Snapshots as Answer} from "../api";
import {fill, h, setAttribute, setText, type Child} from "../dom";
import {formatBytes, formatCount, formatDuration, formatFixed, formatName, formatTime} from "../format";
import {SortableTable, type Column} from "../sortable_table";
import type {Context, View} from "../view";
import {SnapshotDifference} from "./snapshots_difference";

// As many as can be compared.
const CHOSEN = 2;
// If there are many, the API lists these and the important ones.
const NEWEST = 500;

class Snapshots {
  private readonly table: SortableTable<Snapshot>;
  private readonly message = h("p", {class: "message", testid: "snapshots-message"}, "Loading…");
  private readonly hint = h("p", {class: "muted small"});
  private readonly card: HTMLElement;
  private readonly difference: SnapshotDifference;
  private readonly ends: (() => void)[];
  private readonly request = new AbortController();
  // Steps, the one that was chosen first at the front.
  private chosen: number[] = [];
  private snapshots: Snapshot[] = [];

  constructor(root: HTMLElement, private readonly context: Context) {
    this.table = new SortableTable<Snapshot>({
      testid: "snapshots", caption: "Snapshots", key: (snapshot) => String(snapshot.step), columns: this.columns([]),
      sortBy: {column: "step", descending: true},
      onRow: (element, snapshot) => {
        setAttribute(element, "data-testid", `snapshot-${snapshot.step}`);
        element.classList.toggle("deleted", !snapshot.exists);
        element.classList.toggle("chosen", this.chosen.includes(snapshot.step));
      },
    });
    this.card = h("section", {class: "card", hidden: true},
      h("header", null, h("h2", null, "Snapshots"), h("span", {class: "spacer"}), this.hint), this.table.element);
    this.difference = new SnapshotDifference(context);
    fill(root, h("div", {class: "stack"}, this.message, this.card, this.difference.element));
    this.ends = [
      context.stream.on("hello", () => void this.load()),
      context.stream.on("snapshots", (data) => {
        if (data.run === context.run) this.show(data);
      }),
    ];
    void this.load();
  }

  close(): void {
    this.request.abort();
    this.difference.close();
    this.ends.forEach((end) => end());
  }

  private async load(): Promise<void> {
    try {
      this.show(await this.context.api.snapshots(this.context.run, this.request.signal));
    } catch (error) {
      if (!isAbort(error) && this.snapshots.length === 0) this.say(errorText(error));
    }
  }

  private show({snapshots, total}: Answer): void {
    this.snapshots = snapshots;
    this.say(snapshots.length === 0 ? "There is no snapshot yet." : total > snapshots.length ?
      `The newest ${formatCount(NEWEST)} of ${formatCount(total)}, and those that exist, are the best or were exported.` : "");
    this.card.hidden = snapshots.length === 0;
    const metrics = [...new Set(snapshots.flatMap((snapshot) => Object.keys(snapshot.metrics ?? {})))];
    this.table.setColumns(this.columns(metrics));
    this.chosen = this.chosen.filter((step) => snapshots.some((snapshot) => snapshot.step === step));
    this.showChosen();
  }

  private columns(metrics: string[]): Column<Snapshot>[] {
    const column = (id: string, title: string, value: (snapshot: Snapshot) => number | null | undefined,
                    text: (snapshot: Snapshot) => string): Column<Snapshot> => ({id, title, number: true, sort: value, cell: text});
    return [
      {id: "compare", title: "Compare", cell: (snapshot) => this.box(snapshot),
       version: (snapshot) => String(this.chosen.indexOf(snapshot.step))},
      {id: "step", title: "Step", number: true, sort: (snapshot) => snapshot.step, cell: (snapshot) => step(snapshot),
       version: (snapshot) => (snapshot.best ?? []).join()},
      column("time", "Written", (snapshot) => snapshot.time, (snapshot) => formatTime(snapshot.time)),
      column("bytes", "Size", (snapshot) => snapshot.bytes, (snapshot) => formatBytes(snapshot.bytes)),
      ...metrics.map((name) => column(`metric-${name}`, formatName(name), (snapshot) => snapshot.metrics?.[name],
        (snapshot) => snapshot.evaluated === undefined ? "" : formatFixed(snapshot.metrics?.[name]))),
      column("evaluation", "Evaluated in", (snapshot) => snapshot.evaluation_seconds,
        (snapshot) => snapshot.evaluated === undefined ? "not yet" : formatDuration(snapshot.evaluation_seconds)),
      {id: "notes", title: "", cell: (snapshot) => notes(snapshot)},
    ];
  }

  private box(snapshot: Snapshot): HTMLElement {
    return h("input", {
      type: "checkbox", checked: this.chosen.includes(snapshot.step), testid: `snapshot-choose-${snapshot.step}`,
      "aria-label": `Compare the snapshot of step ${snapshot.step}`,
      on: {change: () => this.toggle(snapshot.step)},
    });
  }

  // A third one takes the place of the first.
  private toggle(step: number): void {
    const others = this.chosen.filter((chosen) => chosen !== step);
    this.chosen = others.length < this.chosen.length ? others : [...others, step].slice(-CHOSEN);
    this.showChosen();
    this.card.querySelector<HTMLElement>(`[data-testid="snapshot-choose-${step}"]`)?.focus();
  }

  private showChosen(): void {
    this.table.setRows(this.snapshots);
    const [a, b] = [...this.chosen].sort((left, right) => left - right);
    setText(this.hint, a === undefined ? "Choose two to see what differs" : b === undefined ? "Choose one more" : "");
    this.difference.show(a, b);
  }

  private say(text: string): void {
    setText(this.message, text);
    this.message.hidden = text === "";
  }
}

function step(snapshot: Snapshot): Child[] {
  const best = (snapshot.best ?? []).map(formatName).join(", ");
  return [best !== "" && h("span", {class: "star", role: "img", title: `best ${best}`, "aria-label": `best ${best}`}, "★"),
    formatCount(snapshot.step)];
}

function notes(snapshot: Snapshot): HTMLElement[] {
  const tags = (snapshot.best ?? []).map((metric) => h("span", {class: "tag best"}, `best ${formatName(metric)}`));
  const exported = (snapshot.exported ?? []).map((kind) => h("span", {class: "tag"}, `exported as ${kind}`));
  const deleted = snapshot.exists ? [] : [h("span", {class: "muted small"}, "deleted")];
  return [h("span", {class: "row notes"}, ...tags, ...exported, ...deleted)];
}

export const snapshots: View = {
  id: "snapshots",
  title: "Snapshots",
  mount: (root, context) => new Snapshots(root, context),
};
