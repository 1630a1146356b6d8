import {h, s, setAttribute, setText} from "../dom";
import {formatNumber} from "../format";
import {ticks} from "./classification_model";

export interface Point {
  x: number;
  y: number;
  text: string;  // what is said of it when it is chosen
}

// A line with a name, which a legend shows.
export interface NamedLine {
  name: string;
  points: Point[];
}

export interface PlotOptions {
  testid: string;
  title: string;
  note: string;  // what it says as a whole, beside the title
  xLabel: string;
  yLabel: string;
  x: [number, number];
  y: [number, number];
  points: Point[];
  lines?: NamedLine[];  // in place of `points`: up to two, joined
  line: boolean;      // joins the points
  dots: boolean;      // marks each point
  diagonal: boolean;  // a thin line where x = y
}

const WIDTH = 360;
const HEIGHT = 270;
const EDGE = {left: 46, right: 10, top: 8, bottom: 40};
const TICKS = 7;

// A plot of a few hundred points at most, in which one can be chosen with the pointer or the arrow keys.
export function plot(options: PlotOptions): HTMLElement {
  const left = EDGE.left;
  const bottom = HEIGHT - EDGE.bottom;
  const px = (x: number) => left + (x - options.x[0]) / (options.x[1] - options.x[0]) * (WIDTH - EDGE.left - EDGE.right);
  const py = (y: number) => bottom - (y - options.y[0]) / (options.y[1] - options.y[0]) * (bottom - EDGE.top);
  const marker = s("circle", {class: "plot-marker", r: 5, visibility: "hidden"});
  const lines = options.lines ?? [{name: "", points: options.points}];
  const points = lines.flatMap((line) => line.points);
  const svg = s("svg", {
    class: "report-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, testid: options.testid,
    "aria-label": `${options.title}. ${options.note}. ${points.length} points; the arrow keys go along them.`,
  }, ...axes(options, px, py));
  if (options.diagonal) {
    const low = Math.max(options.x[0], options.y[0]);
    const high = Math.min(options.x[1], options.y[1]);
    svg.append(s("line", {class: "plot-diagonal", x1: px(low), y1: py(low), x2: px(high), y2: py(high)}));
  }
  if (options.line) {
    svg.append(...lines.map((line, i) => s("polyline", {
      class: `plot-line plot-line-${i + 1}`, points: line.points.map((p) => `${px(p.x)},${py(p.y)}`).join(" "),
    })));
  }
  if (options.dots) {
    svg.append(...points.map((p) => s("circle", {class: "plot-dot", cx: px(p.x), cy: py(p.y), r: options.line ? 3 : 2.5})));
  }
  svg.append(marker);
  const readout = h("p", {class: "plot-readout small", "aria-live": "polite"}, "\u00a0");
  choosable(svg, points, px, py, (point) => {
    setText(readout, point?.text ?? "\u00a0");
    setAttribute(marker, "visibility", point === undefined ? "hidden" : "visible");
    if (point !== undefined) {
      setAttribute(marker, "cx", px(point.x));
      setAttribute(marker, "cy", py(point.y));
    }
  });
  return h("figure", {class: "card plot-card"},
    h("header", null, h("h3", null, options.title), h("span", {class: "spacer"}), h("span", {class: "muted small"}, options.note)),
    options.lines === undefined ? null : legend(options.lines), svg, readout);
}

function legend(lines: readonly NamedLine[]): HTMLElement {
  return h("ul", {class: "plot-legend small"}, ...lines.map((line, i) => h("li", null,
    h("span", {class: `plot-swatch plot-swatch-${i + 1}`, "aria-hidden": "true"}), line.name)));
}

function axes(options: PlotOptions, px: (x: number) => number, py: (y: number) => number): SVGElement[] {
  const bottom = HEIGHT - EDGE.bottom;
  const right = WIDTH - EDGE.right;
  const xTicks = ticks(options.x[0], options.x[1], TICKS);
  const yTicks = ticks(options.y[0], options.y[1], TICKS);
  return [
    ...xTicks.map((x) => s("line", {class: "plot-grid", x1: px(x), x2: px(x), y1: EDGE.top, y2: bottom})),
    ...yTicks.map((y) => s("line", {class: "plot-grid", x1: EDGE.left, x2: right, y1: py(y), y2: py(y)})),
    ...xTicks.map((x) => s("text", {class: "plot-tick", x: px(x), y: bottom + 14, "text-anchor": "middle"}, formatNumber(x, 3))),
    ...yTicks.map((y) => s("text", {class: "plot-tick", x: EDGE.left - 5, y: py(y) + 4, "text-anchor": "end"}, formatNumber(y, 3))),
    s("text", {class: "plot-label", x: (EDGE.left + right) / 2, y: HEIGHT - 7, "text-anchor": "middle"}, options.xLabel),
    s("text", {
      class: "plot-label", x: 12, y: (EDGE.top + bottom) / 2, "text-anchor": "middle",
      transform: `rotate(-90 12 ${(EDGE.top + bottom) / 2})`,
    }, options.yLabel),
  ];
}

function choosable(svg: SVGSVGElement, points: readonly Point[], px: (x: number) => number, py: (y: number) => number,
  choose: (point: Point | undefined) => void): void {
  let chosen = -1;
  const set = (i: number) => {
    chosen = i;
    choose(points[i]);
  };
  const nearest = (event: PointerEvent) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * WIDTH;
    const y = (event.clientY - box.top) / box.height * HEIGHT;
    let best = -1;
    let distance = Infinity;
    points.forEach((point, i) => {
      const away = Math.hypot(px(point.x) - x, py(point.y) - y);
      if (away < distance) {
        distance = away;
        best = i;
      }
    });
    set(best);
  };
  svg.addEventListener("pointermove", nearest);
  svg.addEventListener("pointerdown", nearest);
  svg.addEventListener("pointerleave", () => set(-1));
  svg.addEventListener("blur", () => set(-1));
  svg.addEventListener("keydown", (event) => {
    const to = {ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: points.length - 1}[event.key];
    if (to !== undefined && points.length > 0) {
      event.preventDefault();
      set(Math.max(0, Math.min(points.length - 1, to)));
    }
  });
}
