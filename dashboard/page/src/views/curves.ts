import "../style/curves.css";
import {errorText, isAbort, type RunStatus, type SeriesData} from "../api";
import {fill, h, keyed} from "../dom";
import type {Context, View} from "../view";
import {CurvesChart, type ShownRun} from "./curves_chart";
import {Chooser} from "./curves_chooser";
import {chartsOf, type ChartSpec} from "./curves_model";
import {Settings} from "./curves_settings";

class Curves {
  private readonly settings = new Settings();
  private readonly chooser = new Chooser(this.settings, {
    onAxis: () => this.charts.forEach((chart) => chart.changeAxis()),
    onSmoothing: () => this.charts.forEach((chart) => chart.refresh(false)),
    onSeries: () => this.show(),
    onRuns: () => void this.load(),
  });
  private readonly message = h("p", {class: "message", testid: "curves-message"}, "Loading…");
  private readonly main = h("div", {class: "curves-grid", testid: "curves"});
  private readonly tasks = h("div", {class: "curves-grid", testid: "curves-tasks"});
  private readonly tasksTitle = h("h2", {hidden: true}, "Tasks");
  private readonly charts = new Map<string, CurvesChart>();
  private readonly ends: (() => void)[];
  private readonly request = new AbortController();
  private runs: ShownRun[] = [];
  private loading = 0;

  constructor(root: HTMLElement, private readonly context: Context) {
    fill(root, this.chooser.bar, h("div", {class: "curves"}, this.chooser.rail,
      h("div", {class: "stack"}, this.message, this.main, this.tasksTitle, this.tasks)));
    this.ends = [
      context.stream.on("hello", () => void this.load(true)),
      context.stream.on("series", (data) => this.append(data)),
      context.stream.on("status", (status) => this.rescale(status)),
      context.onRuns(() => this.chooser.setRuns(context.run, context.runs())),
    ];
    void this.load();
  }

  close(): void {
    this.request.abort();
    this.ends.forEach((end) => end());
    this.charts.forEach((chart) => chart.destroy());
  }

  // Loads the names of the series of the page's run and those compared with it. `refetch`: points
  // may have been missed.
  private async load(refetch = false): Promise<void> {
    const turn = ++this.loading;
    const known = this.context.runs();
    this.chooser.setRuns(this.context.run, known);
    const compared = known.map((run) => run.id).filter((run) => run !== this.context.run && this.settings.compared.has(run));
    try {
      const runs = await Promise.all([this.context.run, ...compared].map((run) => this.loadRun(run)));
      if (turn !== this.loading) return;
      this.runs = runs;
      this.chooser.setAxes(runs.some((run) => run.stepsPerEpoch !== undefined));
      this.show();
      if (refetch) this.charts.forEach((chart) => chart.refresh(true));
    } catch (error) {
      if (!isAbort(error) && turn === this.loading && this.runs.length === 0) {
        this.say(errorText(error));
      }
    }
  }

  private async loadRun(run: string): Promise<ShownRun> {
    const [status, list] = await Promise.all([
      this.context.api.status(run, this.request.signal), this.context.api.series(run, this.request.signal)]);
    const times = list.series.flatMap((series) => series.last === undefined ? [] : [series.last.time]);
    return {
      id: run, name: status.name, series: new Set(list.series.map((series) => series.name)),
      started: status.started ?? Math.min(...times, Infinity), stepsPerEpoch: status.steps_per_epoch || undefined,
    };
  }

  private show(): void {
    const names = [...new Set(this.runs.flatMap((run) => [...run.series]))];
    this.chooser.setSeries(names);
    const specs = chartsOf(names.filter((name) => this.settings.showsSeries(name)));
    this.say(names.length === 0 ? "Nothing has been written yet; curves appear with the first points."
      : specs.length === 0 ? "No curve is chosen." : "");
    const ids = new Set(specs.map((spec) => spec.id));
    for (const [id, chart] of this.charts) {
      if (!ids.has(id)) {
        chart.destroy();
        this.charts.delete(id);
      }
    }
    this.place(this.main, specs.filter((spec) => !spec.ofTasks));
    this.place(this.tasks, specs.filter((spec) => spec.ofTasks));
    this.tasksTitle.hidden = !specs.some((spec) => spec.ofTasks);
  }

  private place(grid: HTMLElement, specs: ChartSpec[]): void {
    keyed(grid, specs, (spec) => spec.id, (spec) => {
      const chart = new CurvesChart(this.context.api, this.settings, spec);
      this.charts.set(spec.id, chart);
      return chart.element;
    }, (_, spec) => this.charts.get(spec.id)?.set(this.runs, spec.names));
  }

  private append(data: SeriesData): void {
    const run = this.runs.find((shown) => shown.id === data.run);
    if (run === undefined) return;
    if (data.series.some((series) => !run.series.has(series.name))) void this.load();
    for (const series of data.series) {
      for (const chart of this.charts.values()) {
        if (chart.spec.names.includes(series.name)) chart.append(data.run, series);
      }
    }
  }

  // Rescales a run whose start and epochs have just become known.
  private rescale(status: RunStatus): void {
    const run = this.runs.find((shown) => shown.id === status.run);
    if (run === undefined) return;
    const stepsPerEpoch = status.steps_per_epoch || undefined;
    if (run.stepsPerEpoch !== stepsPerEpoch || (status.started !== undefined && run.started !== status.started)) {
      run.stepsPerEpoch = stepsPerEpoch;
      run.started = status.started ?? run.started;
      this.chooser.setAxes(this.runs.some((shown) => shown.stepsPerEpoch !== undefined));
      this.charts.forEach((chart) => chart.refresh(false));
    }
  }

  private say(text: string): void {
    fill(this.message, text);
    this.message.hidden = text === "";
  }
}

export const curves: View = {
  id: "curves",
  title: "Curves",
  mount: (root, context) => new Curves(root, context),
};
