// The small bars in a task's row. Each says the same in words to a screen reader.

import type {ClusterTask} from "../api";
import {h, keyed, setAttribute, setText} from "../dom";
import {formatCount, formatDuration, formatNumber, formatPercent} from "../format";
import {STEP_PARTS, stalenessBuckets, stepParts, type StalenessBucket, type StepPart} from "./cluster_model";
import type {Tip} from "./cluster_tip";

// What a mean step is spent with, as one stacked bar.
export class StepBar {
  readonly element = h("div", {class: "step-bar", testid: "step-bar", role: "img"});
  private parts: StepPart[] = [];

  constructor(tip: Tip) {
    tip.attach(this.element, () => this.values());
  }

  update(task: ClusterTask): void {
    this.parts = stepParts(task.step_seconds);
    setAttribute(this.element, "tabindex", this.parts.length === 0 ? undefined : 0);
    setAttribute(this.element, "aria-label", this.parts.length === 0 ? "no step measured yet" : "Mean step: " +
      this.parts.map((part) => `${part.label} ${formatDuration(part.seconds)}, ${formatPercent(part.share, 0)}`).join("; "));
    keyed(this.element, this.parts, (part) => part.key, (part) => h("span", {class: `part part-${part.key}`}),
      (element, part) => {
        element.style.flexGrow = String(part.share);
      });
  }

  private values(): Node[] {
    if (this.parts.length === 0) return [];
    const total = this.parts.reduce((sum, part) => sum + part.seconds, 0);
    return [
      h("table", null, h("tbody", null, ...this.parts.map((part) => h("tr", null,
        h("th", {scope: "row"}, h("span", {class: `patch part-${part.key}`}), part.label),
        h("td", {class: "number"}, formatDuration(part.seconds)),
        h("td", {class: "number"}, formatPercent(part.share)))))),
      h("p", {class: "muted"}, `${formatDuration(total)} in the mean`),
    ];
  }
}

export function stepLegend(): HTMLElement {
  return h("ul", {class: "step-legend", "aria-label": "Parts of a step"}, ...STEP_PARTS.map((part) =>
    h("li", null, h("span", {class: `patch part-${part.key}`}), part.label)));
}

// How old the values are that gradients are computed from: columns, one per bucket.
export class StalenessBars {
  readonly element: HTMLElement;
  private readonly bars = h("div", {class: "staleness-bars", testid: "staleness", role: "img"});
  private readonly mean = h("span", {class: "staleness-mean"});
  private buckets: StalenessBucket[] = [];
  private task: ClusterTask | undefined;

  constructor(tip: Tip) {
    this.element = h("div", {class: "staleness"}, this.bars, this.mean);
    tip.attach(this.bars, () => this.values());
  }

  update(task: ClusterTask): void {
    this.task = task;
    this.buckets = stalenessBuckets(task.staleness);
    setText(this.mean, formatNumber(task.staleness?.mean, 3));
    setAttribute(this.bars, "tabindex", this.buckets.length === 0 ? undefined : 0);
    setAttribute(this.bars, "aria-label", this.buckets.length === 0 ? "no steps yet" :
      `Staleness, mean ${formatNumber(task.staleness?.mean, 3)}: ` +
      this.buckets.map((bucket) => `${bucket.label}: ${formatPercent(bucket.share)}`).join("; "));
    keyed(this.bars, this.buckets, (bucket) => bucket.label, () => h("span"), (element, bucket) => {
      element.style.height = `${Math.max(bucket.count > 0 ? 6 : 2, 100 * bucket.height)}%`;
    });
  }

  private values(): Node[] {
    return this.buckets.length === 0 ? [] : [stalenessTable(this.buckets),
      h("p", {class: "muted"}, `mean ${formatNumber(this.task?.staleness?.mean, 3)}, at most ` +
        formatNumber(this.task?.staleness?.max, 3))];
  }
}

export function stalenessTable(buckets: readonly StalenessBucket[]): HTMLElement {
  return h("table", null,
    h("thead", null, h("tr", null, h("th", {scope: "col"}, "staleness"), h("th", {scope: "col", class: "number"}, "steps"),
      h("th", {scope: "col", class: "number"}, "share"))),
    h("tbody", null, ...buckets.map((bucket) => h("tr", null,
      h("th", {scope: "row"}, bucket.label),
      h("td", {class: "number"}, formatCount(bucket.count)),
      h("td", {class: "number"}, formatPercent(bucket.share))))));
}

// A worker's speed: a bar from 0 to twice the workers' median, which has a mark.
export class SpeedBar {
  readonly element: HTMLElement;
  private readonly text = h("span", {class: "speed-text"});
  private readonly bar = h("span", {class: "speed-fill"});
  private readonly track = h("span", {class: "speed-track", role: "img"}, this.bar, h("span", {class: "speed-median"}));

  constructor() {
    this.element = h("div", {class: "speed", testid: "speed"}, this.text, this.track);
  }

  update(task: ClusterTask, median: number | undefined): void {
    const speed = task.state === "alive" ? task.steps_per_second : undefined;
    setText(this.text, formatNumber(speed, 3));
    const relative = typeof speed === "number" && median !== undefined && median > 0 ? speed / median : undefined;
    this.track.hidden = relative === undefined;
    setAttribute(this.track, "aria-label",
      relative === undefined ? undefined : `${formatNumber(relative, 2)} of the median speed`);
    setAttribute(this.track, "title",
      relative === undefined ? undefined : `${formatNumber(relative, 2)} of the workers' median, ${formatNumber(median, 3)} steps/s`);
    setAttribute(this.track, "data-tone", relative !== undefined && relative < 0.7 ? "warn" : undefined);
    this.bar.style.width = `${Math.min(100, 50 * (relative ?? 0))}%`;
  }
}
