import {errorText, isAbort, type Api, type SeriesPoints} from "../api";
import {COLOURS, curveStyle, DASHES, type Curve} from "../chart/curve";
import {LineChart, type Range} from "../chart/line_chart";
import {h, oncePerFrame, saveBlob, setAttribute, setText} from "../dom";
import {formatName} from "../format";
import {mergePoints, NO_POINTS, pointsOf, type Points} from "../points";
import {AXES, beside, curveOf, parseSeriesName, pointsFor, queryFor, unitOf, type ChartSpec, type RunScale} from "./curves_model";
import type {Settings} from "./curves_settings";

const HEIGHT = 230;
const NEAR = "400px";
// Live points are added to the server's thinned ones, up to this multiple of the requested number.
const MAX_GROWTH = 3;

// A run whose curves are drawn; the page's own one is the first.
export interface ShownRun extends RunScale {
  id: string;
  name: string;
  series: ReadonlySet<string>;
}

interface Part {
  run: ShownRun;
  name: string;
  points: Points;
}

// A card with the curves of one metric of all shown runs. Data are fetched when it is in sight, or nearly.
export class CurvesChart {
  readonly element: HTMLElement;
  private readonly chart: LineChart;
  private readonly message = h("p", {class: "message"});
  private readonly log = h("button", {type: "button", class: "quiet"}, "Log");
  private readonly all = h("button", {type: "button", class: "quiet"}, "Show all");
  private readonly sight = new IntersectionObserver(
    (entries) => this.onSight(entries.at(-1)?.isIntersecting ?? false), {rootMargin: NEAR});
  private readonly draw = oncePerFrame(() => this.drawNow());
  private request: AbortController | undefined;
  private runs: ShownRun[] = [];
  private names: string[] = [];
  private parts = new Map<string, Part>();
  private zoomed: Map<string, Part> | undefined;
  private inSight = false;
  // Something that data depend on has changed since they were fetched.
  private outdated = true;

  constructor(private readonly api: Api, private readonly settings: Settings, readonly spec: ChartSpec) {
    const testid = `chart-${spec.id}`;
    this.chart = new LineChart({
      title: spec.title, testid, height: HEIGHT, ...this.axis(), ...unitOf(spec.metric), log: settings.log.has(spec.id),
      onZoom: (range) => this.onZoom(range),
    });
    const tools = h("span", {class: "row chart-tools"}, this.all, this.log,
      h("button", {type: "button", class: "quiet", testid: `${testid}-csv`, "aria-label": `Save ${spec.title} as CSV`,
        on: {click: () => this.saveCsv()}}, "CSV"),
      h("button", {type: "button", class: "quiet", testid: `${testid}-png`, "aria-label": `Save ${spec.title} as PNG`,
        on: {click: () => void this.savePng()}}, "PNG"));
    this.element = h("section", {class: "card curves-card", "aria-label": spec.title},
      h("header", null, h("h3", null, spec.title), h("span", {class: "spacer"}), tools), this.chart.element, this.message);
    setAttribute(this.log, "data-testid", `${testid}-log`);
    setAttribute(this.all, "data-testid", `${testid}-reset`);
    setAttribute(this.log, "aria-label", `Logarithmic scale of ${spec.title}`);
    this.log.addEventListener("click", () => this.toggleLog());
    this.all.addEventListener("click", () => this.chart.setRange(undefined));
    this.sight.observe(this.element);
    this.show();
  }

  // Sets the runs and series to draw; missing data are fetched.
  set(runs: ShownRun[], names: string[]): void {
    const wanted = (list: ShownRun[], shown: string[]) =>
      list.map((run) => [run.id, shown.filter((name) => run.series.has(name))]);
    this.outdated ||= JSON.stringify(wanted(runs, names)) !== JSON.stringify(wanted(this.runs, this.names));
    this.runs = runs;
    this.names = names;
    this.update();
  }

  // Draws again after a change of the settings, or a gap in the stream.
  refresh(refetch: boolean): void {
    this.outdated ||= refetch;
    this.chart.setOptions({...this.axis(), log: this.settings.log.has(this.spec.id)});
    this.update();
  }

  // Call when the scale of x has changed, which makes the zoomed range invalid.
  changeAxis(): void {
    this.zoomed = undefined;
    if (this.chart.range() !== undefined) this.chart.setRange(undefined);
    this.refresh(true);
  }

  append(run: string, series: SeriesPoints): void {
    const id = this.curveId(run, series.name);
    const points = pointsOf(series);
    const range = this.chart.range();
    for (const parts of [this.parts, this.zoomed]) {
      const part = parts?.get(id);
      if (part === undefined) continue;
      const here = parts === this.zoomed && range !== undefined ? this.within(points, part.run, range) : points;
      part.points = mergePoints(part.points, here);
      this.outdated ||= part.points.step.length > MAX_GROWTH * pointsFor(this.curveCount(), parts === this.zoomed);
    }
    this.update();
  }

  destroy(): void {
    this.request?.abort();
    this.sight.disconnect();
    this.draw.cancel();
    this.chart.destroy();
  }

  private axis() {
    const axis = AXES.find((known) => known.id === this.settings.axis)!;
    return {kind: axis.kind, xName: axis.name};
  }

  private onSight(inSight: boolean): void {
    this.inSight = inSight;
    this.update();
  }

  private update(): void {
    if (!this.inSight) return;
    if (this.outdated) {
      this.outdated = false;
      void this.fetch();
    }
    this.draw();
  }

  private onZoom(range: Range | undefined): void {
    this.zoomed = undefined;
    this.show();
    if (range !== undefined) {
      void this.fetch();
    } else {
      this.draw();
    }
  }

  private toggleLog(): void {
    const log = this.settings.log;
    if (!log.delete(this.spec.id)) log.add(this.spec.id);
    this.settings.save();
    this.show();
    this.refresh(false);
  }

  private show(): void {
    setAttribute(this.log, "aria-pressed", this.settings.log.has(this.spec.id) ? "true" : "false");
    this.all.hidden = this.chart.range() === undefined;
  }

  // Fetches all of x, and also the zoomed range.
  private async fetch(): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    try {
      const range = this.chart.range();
      const [parts, zoomed] = await Promise.all([
        this.fetchParts(undefined, request.signal),
        range === undefined ? undefined : this.fetchParts(range, request.signal),
      ]);
      for (const [id, part] of zoomed ?? []) {
        const query = queryFor(this.settings.axis, part.run, range);
        part.points = mergePoints(beside(parts.get(id)?.points ?? NO_POINTS, query), part.points);
      }
      this.parts = parts;
      this.zoomed = zoomed;
      this.say("");
    } catch (error) {
      if (isAbort(error)) return;
      // The next hello or point asks again.
      this.outdated = true;
      this.say(this.parts.size === 0 ? errorText(error) : "");
    }
    this.draw();
  }

  private curveCount(): number {
    return this.runs.reduce((count, run) => count + this.names.filter((name) => run.series.has(name)).length, 0);
  }

  private async fetchParts(range: Range | undefined, signal: AbortSignal): Promise<Map<string, Part>> {
    const points = pointsFor(this.curveCount(), range !== undefined);
    const answers = await Promise.all(this.runs.map(async (run) => {
      const names = this.names.filter((name) => run.series.has(name));
      const query = {...queryFor(this.settings.axis, run, range), points};
      return {run, data: names.length === 0 ? [] : (await this.api.seriesData(run.id, names, query, signal)).series};
    }));
    const parts = new Map<string, Part>();
    for (const {run, data} of answers) {
      for (const series of data) {
        parts.set(this.curveId(run.id, series.name), {run, name: series.name, points: pointsOf(series)});
      }
    }
    return parts;
  }

  private drawNow(): void {
    const parts = this.zoomed ?? this.parts;
    this.chart.setCurves(this.runs.flatMap((run, i) => this.names
      .filter((name) => run.series.has(name))
      .map((name, k) => this.curve(run, i, name, k, parts.get(this.curveId(run.id, name))?.points ?? NO_POINTS))));
  }

  // One run: a colour per curve. Several: a colour per run, and a dash per curve of it.
  private curve(run: ShownRun, i: number, name: string, k: number, points: Points): Curve {
    const single = this.runs.length === 1;
    const parsed = parseSeriesName(name);
    const place = this.spec.ofTasks ? k : parsed?.group === "eval" ? 1 : 0;
    const style = single ? curveStyle(place) : {colour: i % COLOURS, dash: place % DASHES};
    const own = this.spec.ofTasks ? parsed?.task ?? name : parsed?.group === "eval" ? "evaluation" : "training";
    const label = single ? own : `${run.name} ${own}`;
    return curveOf({id: this.curveId(run.id, name), label, ...style}, points, this.settings.axis, run, this.settings.smoothing);
  }

  // The name alone for the page's own run.
  private curveId(run: string, name: string): string {
    return run === this.runs[0]?.id ? name : `${run}:${name}`;
  }

  private within(points: Points, run: ShownRun, range: Range): Points {
    const {x, from, to} = queryFor(this.settings.axis, run, range);
    const at = x === "time" ? points.time : points.step;
    const keep = <T>(column: T[]) => column.filter((_, i) => at[i]! >= from! && at[i]! <= to!);
    return {step: keep(points.step), time: keep(points.time), value: keep(points.value)};
  }

  private say(text: string): void {
    setText(this.message, text);
    this.message.hidden = text === "";
  }

  private saveCsv(): void {
    for (const run of this.runs) {
      const names = this.names.filter((name) => run.series.has(name));
      if (names.length > 0) {
        h("a", {href: this.api.seriesCsvUrl(run.id, names), download: `${run.id}-${this.spec.id}.csv`}).click();
      }
    }
  }

  private async savePng(): Promise<void> {
    try {
      const title = `${this.runs.map((run) => run.name).join(", ")}: ${formatName(this.spec.metric)}`;
      saveBlob(await this.chart.png(title), `${this.runs[0]?.id ?? "run"}-${this.spec.id.replaceAll("/", "-")}.png`);
    } catch (error) {
      this.say(errorText(error));
    }
  }
}
