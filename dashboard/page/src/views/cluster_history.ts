// The history of a task's figures, from the series task/TASK/….

import {errorText, isAbort, type SeriesPoints} from "../api";
import {curveStyle, type Curve} from "../chart/curve";
import {LineChart} from "../chart/line_chart";
import {h, setText} from "../dom";
import {formatByteRate, formatDuration, formatNumber} from "../format";
import type {Context} from "../view";

const HEIGHT = 150;
const POINTS = 800;

interface Figures {
  title: string;
  names: {name: string; label: string}[];
  format: (value: number | null) => string;
}

const FIGURES: Figures[] = [
  {title: "Steps per second", names: [{name: "steps_per_second", label: "steps/s"}], format: (value) => formatNumber(value, 3)},
  {
    title: "Time of a step", format: (value) => formatDuration(value),
    names: [
      {name: "pull_seconds", label: "parameters"}, {name: "input_seconds", label: "input"},
      {name: "compute_seconds", label: "compute"}, {name: "push_seconds", label: "push"},
    ],
  },
  {title: "Staleness", names: [{name: "staleness", label: "mean staleness"}], format: (value) => formatNumber(value, 3)},
  {
    title: "Traffic", format: (value) => formatByteRate(value),
    names: [{name: "pushed_bytes_per_second", label: "push"}, {name: "pulled_bytes_per_second", label: "pull"}],
  },
];

export class TaskHistory {
  readonly element: HTMLElement;
  private readonly note = h("p", {class: "muted small"});
  private readonly room = h("div");
  private readonly abort = new AbortController();
  private readonly end: () => void;
  private figures = FIGURES[0]!;
  private points = new Map<string, SeriesPoints>();
  private chart: LineChart | undefined;

  constructor(private readonly context: Context, private readonly task: string) {
    const choice = h("select", {"aria-label": "What the chart shows", testid: `history-${task}`},
      ...FIGURES.map((figures, i) => h("option", {value: i}, figures.title)));
    choice.addEventListener("change", () => {
      this.figures = FIGURES[Number(choice.value)]!;
      void this.fetch();
    });
    this.element = h("div", {class: "history"}, h("header", null, choice, this.note), this.room);
    this.end = context.stream.on("series", (data) => {
      if (data.run === context.run) this.add(data.series);
    });
    void this.fetch();
  }

  close(): void {
    this.abort.abort();
    this.end();
    this.chart?.destroy();
  }

  private async fetch(): Promise<void> {
    const {api, run} = this.context;
    const figures = this.figures;
    try {
      const known = new Set((await api.series(run, this.abort.signal)).series.map((series) => series.name));
      const names = figures.names.map(({name}) => this.series(name)).filter((name) => known.has(name));
      const data = names.length === 0 ? [] : (await api.seriesData(run, names, {points: POINTS, x: "time"}, this.abort.signal)).series;
      if (figures === this.figures) {
        this.points = new Map(data.map((series) => [series.name, series]));
        this.show();
      }
    } catch (error) {
      if (!isAbort(error)) setText(this.note, errorText(error));
    }
  }

  // Points that came since.
  private add(all: readonly SeriesPoints[]): void {
    let changed = false;
    for (const series of all) {
      if (!this.figures.names.some(({name}) => this.series(name) === series.name)) continue;
      const old = this.points.get(series.name) ?? {name: series.name, step: [], time: [], value: []};
      const last = old.time.at(-1) ?? -Infinity;
      const fresh = series.time.flatMap((time, i) => (time > last ? [i] : []));
      old.step.push(...fresh.map((i) => series.step[i]!));
      old.time.push(...fresh.map((i) => series.time[i]!));
      old.value.push(...fresh.map((i) => series.value[i]!));
      this.points.set(series.name, old);
      changed ||= fresh.length > 0;
    }
    if (changed) this.show();
  }

  private show(): void {
    const curves = this.figures.names.flatMap(({name, label}, i): Curve[] => {
      const points = this.points.get(this.series(name));
      return points === undefined ? [] : [{id: name, label, ...curveStyle(i), x: points.time, y: points.value}];
    });
    const empty = curves.every((curve) => curve.x.length === 0);
    setText(this.note, empty ? "No history yet: a point is written every half a minute." : "");
    this.room.hidden = empty;
    if (empty) return;
    const options = {
      title: `${this.task}: ${this.figures.title}`, testid: `history-${this.task}-chart`, height: HEIGHT, kind: "time" as const,
      xName: "time", format: this.figures.format, formatTick: this.figures.format,
    };
    if (this.chart === undefined) {
      this.chart = new LineChart(options);
      this.room.append(this.chart.element);
    } else {
      this.chart.setOptions(options);
    }
    this.chart.setCurves(curves);
  }

  private series(name: string): string {
    return `task/${this.task}/${name}`;
  }
}
