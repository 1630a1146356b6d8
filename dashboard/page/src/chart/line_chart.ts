import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "../style/chart.css";
import type {Value} from "../api_types";
import {cssVariable, h, oncePerFrame, setText} from "../dom";
import {formatNumber} from "../format";
import {onTheme} from "../theme";
import {formatTick, formatX, logTicks, SECONDS, xTicks, type AxisKind} from "./axis";
import {COLOURS, describe, nearestPoint, type Curve} from "./curve";
import {Legend} from "./legend";
import {toPng} from "./png";

const DASH_PATTERNS: number[][] = [[], [6, 4], [2, 3]];
const FAINT = "55";
const SHORTEST_DRAG_PIXELS = 6;
// The interval of summaries, so that a screen reader does not read every step.
const SUMMARY_EVERY_MS = 5000;

export interface LineChartOptions {
  title: string;
  testid: string;
  height: number;
  kind: AxisKind;
  // What x is, in words: "step".
  xName: string;
  log?: boolean;
  // Formats values, for reading at a glance, and marks of the y axis.
  format?: (y: Value) => string;
  formatTick?: (y: number, distance: number) => string;
  // A part of x was chosen; undefined: all of it.
  onZoom?: (range: Range | undefined) => void;
}

export interface Range {
  from: number;
  to: number;
}

// Curves over x with a legend. Dragging zooms, double click and Escape undo it; the arrow keys move the cursor. It
// follows the width of its surroundings and the theme, until destroy().
export class LineChart {
  readonly element: HTMLElement;
  private readonly plotArea: HTMLElement;
  private readonly position = h("span", {class: "chart-position muted small"});
  private readonly summary = h("p", {class: "visually-hidden"});
  private readonly spoken = h("p", {class: "visually-hidden", "aria-live": "polite"});
  private readonly legend: Legend;
  private readonly resize = new ResizeObserver(() => this.fit());
  private readonly endTheme: () => void;
  private readonly draw = oncePerFrame(() => this.drawNow());
  private options: LineChartOptions;
  private curves: Curve[] = [];
  private zoom: Range | undefined;
  private plot: uPlot | undefined;
  private drawnAs = "";
  private summarized = -Infinity;

  constructor(options: LineChartOptions) {
    this.options = options;
    this.legend = new Legend(options.testid, options.format ?? ((y) => formatNumber(y)), () => this.draw());
    this.summary.id = `${options.testid}-summary`;
    this.plotArea = h("div", {
      class: "plot", tabindex: 0, role: "group", testid: `${options.testid}-plot`,
      "aria-label": `${options.title}: arrow keys move the cursor, plus and minus zoom, Escape shows all`,
      "aria-describedby": this.summary.id,
      on: {keydown: (event) => this.onKey(event), blur: () => this.moveCursor(undefined)},
    });
    this.plotArea.style.height = `${options.height}px`;
    this.element = h("div", {class: "chart", testid: options.testid},
      h("div", {class: "chart-top"}, this.plotArea, this.position), this.legend.element, this.summary, this.spoken);
    this.resize.observe(this.plotArea);
    this.endTheme = onTheme(() => this.rebuild());
  }

  setCurves(curves: Curve[]): void {
    this.curves = curves;
    this.legend.set(curves);
    this.draw();
  }

  setOptions(changes: Partial<LineChartOptions>): void {
    this.options = {...this.options, ...changes};
    this.draw();
  }

  // The zoomed range; undefined: all.
  range(): Range | undefined {
    return this.zoom;
  }

  setRange(range: Range | undefined): void {
    this.zoom = range;
    this.element.classList.toggle("zoomed", range !== undefined);
    this.draw();
    this.options.onZoom?.(range);
  }

  png(title: string): Promise<Blob> {
    this.draw.cancel();
    this.drawNow();
    return toPng(this.plot?.ctx.canvas, title, this.visible());
  }

  destroy(): void {
    this.draw.cancel();
    this.endTheme();
    this.resize.disconnect();
    this.plot?.destroy();
    this.plot = undefined;
  }

  private visible(): Curve[] {
    return this.curves.filter((curve) => !this.legend.isHidden(curve));
  }

  private drawNow(): void {
    const curves = this.visible();
    const as = JSON.stringify([
      this.options.kind, this.options.log, curves.map((curve) => [curve.id, curve.colour, curve.dash, curve.smoothed !== undefined])]);
    if (this.plot === undefined || as !== this.drawnAs) {
      this.plot?.destroy();
      this.drawnAs = as;
      this.plot = new uPlot(this.uplotOptions(curves), this.data(curves), this.plotArea);
    } else {
      this.plot.setData(this.data(curves));
    }
    this.summarize(curves);
  }

  private rebuild(): void {
    this.drawnAs = "";
    this.draw();
  }

  // One row of x and one per line; a faint line precedes the smoothed one.
  private data(curves: Curve[]): uPlot.AlignedData {
    if (curves.length === 0) return [[]];
    const drawable = (y: Value[]) => this.options.log ? y.map((value) => value !== null && value > 0 ? value : null) : y;
    return uPlot.join(curves.map((curve): uPlot.AlignedData => curve.smoothed === undefined
      ? [curve.x, drawable(curve.y)] : [curve.x, drawable(curve.y), drawable(curve.smoothed)]));
  }

  private uplotOptions(curves: Curve[]): uPlot.Options {
    const grid = {stroke: cssVariable("--grid"), width: 1};
    const axis = {stroke: cssVariable("--muted"), font: `11px ${cssVariable("--sans")}`, grid, ticks: {show: false}};
    const {kind, log} = this.options;
    const tick = this.options.formatTick ?? formatTick;
    return {
      width: Math.max(this.plotArea.clientWidth, 50),
      height: this.options.height,
      padding: [8, 18, 0, 0],
      legend: {show: false},
      scales: {
        x: {time: kind === "time", range: (_, low, high) => this.xRange(low, high)},
        y: log ? {distr: 3} : {range: (_, low, high) => yRange(low, high)},
      },
      axes: [
        {...axis, size: 26, gap: 4, space: kind === "time" ? 70 : 60, ...(kind === "duration" ? {incrs: SECONDS} : {}),
         values: (_u, marks, _axis, _space, distance) => xTicks(kind, marks, distance)},
        {...axis, size: (_u, texts) => 14 + 6.3 * Math.max(3, ...(texts ?? []).map((text) => text.length)), gap: 5,
         values: (_u, marks, _axis, _space, distance) => log ? logTicks(marks) : marks.map((mark) => tick(mark, distance))},
      ],
      series: [{}, ...curves.flatMap((curve) => lines(curve))],
      cursor: {
        y: false,
        drag: {x: true, y: false, setScale: false},
        points: {size: 7},
        dataIdx: (u, line, _index, x) => this.indexAt(u, line, x),
        bind: {dblclick: () => () => { this.setRange(undefined); return null; }},
      },
      hooks: {
        setCursor: [(u) => this.showCursor(u)],
        setSelect: [(u) => this.zoomTo(u)],
      },
    };
  }

  private xRange(low: number | null, high: number | null): [number | null, number | null] {
    if (this.zoom !== undefined) return [this.zoom.from, this.zoom.to];
    return low !== null && low === high ? [low - 0.5, low + 0.5] : [low, high];
  }

  // In the joined data, the nearest point of the line that is none of the others' x and no gap.
  private indexAt(u: uPlot, line: number, x: number): number | null {
    const row = u.data[line];
    if (line === 0 || row === undefined) return u.valToIdx(x);
    const xs = u.data[0];
    const middle = u.valToIdx(x);
    for (let away = 0; away < xs.length; ++away) {
      for (const i of [middle - away, middle + away]) {
        if (row[i] !== null && row[i] !== undefined) return i;
      }
    }
    return null;
  }

  private showCursor(u: uPlot): void {
    const left = u.cursor.left ?? -1;
    const x = left < 0 ? undefined : u.posToVal(left, "x");
    const text = (at: number) => formatX(this.options.kind, at);
    const nearest = x === undefined ? undefined : this.nearestX(x);
    setText(this.position, nearest === undefined ? "" : `${this.options.xName} ${text(nearest)}`);
    this.legend.showAt(nearest, text);
  }

  private nearestX(x: number): number | undefined {
    let best: number | undefined;
    for (const curve of this.visible()) {
      const index = nearestPoint(curve, x);
      const at = index === undefined ? undefined : curve.x[index];
      if (at !== undefined && (best === undefined || Math.abs(at - x) < Math.abs(best - x))) {
        best = at;
      }
    }
    return best;
  }

  private zoomTo(u: uPlot): void {
    const {left, width} = u.select;
    if (width >= SHORTEST_DRAG_PIXELS) {
      const range = {from: u.posToVal(left, "x"), to: u.posToVal(left + width, "x")};
      u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
      this.setRange(range);
    }
  }

  private onKey(event: KeyboardEvent): void {
    const xs = this.plot?.data[0] ?? [];
    const plot = this.plot;
    if (plot === undefined || xs.length === 0) return;
    const left = plot.cursor.left ?? -1;
    const here = left < 0 ? plot.posToIdx(plot.bbox.width / devicePixelRatio) : plot.posToIdx(left);
    const step = event.shiftKey ? Math.max(1, Math.round(xs.length / 20)) : 1;
    switch (event.key) {
      case "ArrowLeft": this.moveCursor(xs[Math.max(here - step, 0)]); break;
      case "ArrowRight": this.moveCursor(xs[Math.min(here + step, xs.length - 1)]); break;
      case "Home": this.moveCursor(xs[0]); break;
      case "End": this.moveCursor(xs[xs.length - 1]); break;
      case "+": this.zoomBy(0.5, xs[here]!); break;
      case "-": this.zoomBy(2, xs[here]!); break;
      case "Escape": this.moveCursor(undefined); this.setRange(undefined); break;
      default: return;
    }
    event.preventDefault();
  }

  private moveCursor(x: number | undefined): void {
    if (this.plot === undefined) return;
    this.plot.setCursor({left: x === undefined ? -10 : this.plot.valToPos(x, "x"), top: x === undefined ? -10 : 0});
    const text = (at: number) => formatX(this.options.kind, at);
    setText(this.spoken, x === undefined ? "" : `${this.options.xName} ${text(x)}: ${this.legend.showAt(x, text)}`);
  }

  private zoomBy(factor: number, centre: number): void {
    const {min, max} = this.plot?.scales["x"] ?? {};
    if (min == null || max == null) return;
    const range = {from: centre - (centre - min) * factor, to: centre + (max - centre) * factor};
    const all = this.visible().map((curve) => [curve.x[0], curve.x.at(-1)]);
    const whole = all.every(([first, last]) => first === undefined || (range.from <= first && range.to >= last!));
    this.setRange(factor > 1 && whole ? undefined : range);
  }

  private summarize(curves: Curve[]): void {
    if (performance.now() - this.summarized < SUMMARY_EVERY_MS) return;
    this.summarized = performance.now();
    setText(this.summary, curves.map((curve) => describe(
      curve, (x) => `${this.options.xName} ${formatX(this.options.kind, x)}`, (y) => formatNumber(y))).join(" "));
  }

  private fit(): void {
    if (this.plot !== undefined && this.plot.width !== this.plotArea.clientWidth && this.plotArea.clientWidth > 0) {
      this.plot.setSize({width: this.plotArea.clientWidth, height: this.options.height});
    }
  }
}

function yRange(low: number | null, high: number | null): uPlot.Range.MinMax {
  if (low === null || high === null) return [low, high];
  if (low === high) return low === 0 ? [0, 1] : [low - 0.1 * Math.abs(low), low + 0.1 * Math.abs(low)];
  return uPlot.rangeNum(low, high, {min: {pad: 0.08, soft: 0, mode: 3}, max: {pad: 0.08, soft: 0, mode: 3}});
}

function lines(curve: Curve): uPlot.Series[] {
  const colour = cssVariable(`--series-${(curve.colour % COLOURS) + 1}`);
  const main = {stroke: colour, width: 1.6, dash: DASH_PATTERNS[curve.dash] ?? [], points: {size: 5, width: 1.2}};
  return curve.smoothed === undefined
    ? [main] : [{stroke: colour + FAINT, width: 1, points: {show: false}}, main];
}
