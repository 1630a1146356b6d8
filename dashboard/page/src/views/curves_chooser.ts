import type {RunSummary} from "../api";
import {h, keyed, setText, type Child} from "../dom";
import {formatName} from "../format";
import {AXES, parseSeriesName, type Axis} from "./curves_model";
import {MAX_SMOOTHING, type Settings} from "./curves_settings";

export interface ChooserCallbacks {
  onAxis: () => void;
  onSmoothing: () => void;
  onSeries: () => void;
  onRuns: () => void;
}

interface Choice {
  key: string;
  label: string;
  testid: string;
  checked: boolean;
  change: (checked: boolean) => void;
}

// Chooses the scale of x, the smoothing, the runs and the series.
export class Chooser {
  readonly bar: HTMLElement;
  readonly rail: HTMLElement;
  private readonly axes = h("span", {class: "segments", role: "radiogroup", "aria-label": "Along x"});
  private readonly runs = new ChoiceList("Runs", "runs");
  private readonly train = new ChoiceList("Training", "train");
  private readonly evaluation = new ChoiceList("Evaluation", "eval");
  private readonly figures = new ChoiceList("Figures of tasks", "figures");
  private readonly tasks = new ChoiceList("Tasks", "tasks");

  constructor(private readonly settings: Settings, private readonly callbacks: ChooserCallbacks) {
    this.bar = h("div", {class: "curves-bar", role: "group", "aria-label": "Curves"}, this.axes, this.smoothing());
    const details = h("details", {class: "curves-rail card", open: matchMedia("(min-width: 1000px)").matches},
      h("summary", null, "What is shown"), this.runs.element, this.train.element, this.evaluation.element,
      this.figures.element, this.tasks.element);
    this.rail = details;
  }

  setAxes(epochs: boolean): void {
    const axes = AXES.filter((axis) => axis.id !== "epoch" || epochs);
    keyed(this.axes, axes, (axis) => axis.id, (axis) => this.axisChoice(axis.id, axis.title));
    if (!axes.some((axis) => axis.id === this.settings.axis)) this.chooseAxis("step");
  }

  setRuns(own: string, runs: RunSummary[]): void {
    const others = runs.filter((run) => run.id !== own);
    this.runs.set(others.map((run) => ({
      key: run.id, label: run.name === run.id ? run.name : `${run.name} (${run.id})`, testid: `compare-${run.id}`,
      checked: this.settings.compared.has(run.id),
      change: (checked) => {
        if (checked) {
          this.settings.compared.add(run.id);
        } else {
          this.settings.compared.delete(run.id);
        }
        this.settings.save();
        this.callbacks.onRuns();
      },
    })));
  }

  setSeries(names: string[]): void {
    const parsed = names.map((name) => ({name, ...parseSeriesName(name)}));
    const choice = (key: string, label: string): Choice => ({
      key, label, testid: `show-${key}`, checked: this.settings.isShown(key),
      change: (checked) => {
        this.settings.setShown(key, checked);
        this.callbacks.onSeries();
      },
    });
    const unique = (keys: string[]) => [...new Set(keys)];
    const tasks = parsed.filter((series) => series.group === "task");
    this.train.set(parsed.filter((series) => series.group === "train").map((series) => choice(series.name, formatName(series.metric!))));
    this.evaluation.set(parsed.filter((series) => series.group === "eval").map((series) => choice(series.name, formatName(series.metric!))));
    this.figures.set(unique(tasks.map((series) => series.metric!)).map((metric) => choice(`task/${metric}`, formatName(metric))));
    this.tasks.set(unique(tasks.map((series) => series.task!)).map((task) => choice(`task/${task}/`, task)));
  }

  private axisChoice(axis: Axis, title: string): HTMLElement {
    return h("label", null,
      h("input", {
        type: "radio", name: "axis", value: axis, checked: axis === this.settings.axis, testid: `axis-${axis}`,
        on: {change: () => this.chooseAxis(axis)},
      }), title);
  }

  private chooseAxis(axis: Axis): void {
    this.settings.axis = axis;
    this.settings.save();
    for (const input of this.axes.querySelectorAll("input")) input.checked = input.value === axis;
    this.callbacks.onAxis();
  }

  private smoothing(): HTMLElement {
    const value = h("output", {class: "smoothing-value"}, this.settings.smoothing.toFixed(2));
    const slider = h("input", {
      type: "range", min: 0, max: MAX_SMOOTHING, step: 0.01, value: this.settings.smoothing, testid: "smoothing",
      on: {
        input: () => {
          this.settings.smoothing = Number(slider.value);
          setText(value, this.settings.smoothing.toFixed(2));
          this.settings.save();
          this.callbacks.onSmoothing();
        },
      },
    });
    return h("label", {title: "Exponential moving average of the points that are drawn: the weight of those before"},
      "Smoothing", slider, value);
  }
}

// Check boxes under a heading; hidden if there is nothing to choose.
class ChoiceList {
  readonly element: HTMLElement;
  private readonly list: HTMLElement;

  constructor(title: string, testid: string) {
    this.list = h("ul", {testid: `choices-${testid}`});
    this.element = h("fieldset", {class: "choices", hidden: true}, h("legend", null, title), this.list);
  }

  set(choices: Choice[]): void {
    this.element.hidden = choices.length === 0;
    keyed(this.list, choices, (choice) => choice.key, (choice) => this.create(choice), (element, choice) => {
      element.querySelector("input")!.checked = choice.checked;
      setText(element.querySelector("span")!, choice.label);
    });
  }

  private create(choice: Choice): HTMLElement {
    const box: HTMLInputElement = h("input", {
      type: "checkbox", testid: choice.testid, on: {change: () => choice.change(box.checked)}});
    const children: Child[] = [box, h("span")];
    return h("li", null, h("label", null, ...children));
  }
}
