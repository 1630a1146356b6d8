import {isNumber, isString, isStrings, load, save} from "../storage";
import {AXES, parseSeriesName, type Axis} from "./curves_model";

export const MAX_SMOOTHING = 0.99;

// The figures of tasks that are shown until the reader chooses.
const FIRST_FIGURE = "steps_per_second";

// What the reader has chosen of the curves, kept over visits.
export class Settings {
  axis: Axis = "step";
  // Weight of the past, 0 to MAX_SMOOTHING.
  smoothing = 0;
  // Charts by id.
  readonly log: Set<string>;
  // Runs beside the one of the page.
  readonly compared: Set<string>;
  private readonly shown: Set<string>;
  private readonly hidden: Set<string>;

  constructor() {
    const axis = load("axis", isString);
    this.axis = AXES.find((known) => known.id === axis)?.id ?? "step";
    this.smoothing = Math.min(Math.max(load("smoothing", isNumber) ?? 0, 0), MAX_SMOOTHING);
    this.log = new Set(load("log", isStrings) ?? []);
    this.compared = new Set(load("compared", isStrings) ?? []);
    this.shown = new Set(load("shown", isStrings) ?? []);
    this.hidden = new Set(load("hidden", isStrings) ?? []);
  }

  save(): void {
    save("axis", this.axis);
    save("smoothing", this.smoothing);
    save("log", [...this.log]);
    save("compared", [...this.compared]);
    save("shown", [...this.shown]);
    save("hidden", [...this.hidden]);
  }

  // `key`: a series of training or evaluation, `task/FIGURE` or `task/TASK/`.
  isShown(key: string): boolean {
    if (this.shown.has(key) || this.hidden.has(key)) return this.shown.has(key);
    return !key.startsWith("task/") || key.endsWith("/") || key === `task/${FIRST_FIGURE}`;
  }

  setShown(key: string, shown: boolean): void {
    this.shown.delete(key);
    this.hidden.delete(key);
    (shown ? this.shown : this.hidden).add(key);
    this.save();
  }

  showsSeries(name: string): boolean {
    const parsed = parseSeriesName(name);
    return parsed !== undefined && (parsed.group === "task"
      ? this.isShown(`task/${parsed.metric}`) && this.isShown(`task/${parsed.task}/`) : this.isShown(name));
  }
}
