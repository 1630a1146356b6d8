import {fill, h, keyed, s, setAttribute, setText} from "../dom";
import {formatExact, formatFinite, formatNumber, NOTHING} from "../format";
import type {Value} from "../api_types";
import {nearestPoint, type Curve} from "./curve";

// Enough to tell any float32 from its neighbours.
const DIGITS = 9;
const DASH_PATTERNS = ["", "5 3", "1.5 2.5"];

// The curves' names, their last values, and under the cursor their values there. A click on a name hides its curve.
export class Legend {
  readonly element = h("ul", {class: "legend"});
  private curves: Curve[] = [];
  private readonly hidden = new Set<string>();

  // `testid` begins the data-testids of the values: TESTID-last-CURVE. `format` is for reading at a glance.
  constructor(private readonly testid: string, private readonly format: (y: Value) => string,
              private readonly onChange: () => void) {}

  set(curves: Curve[]): void {
    this.curves = curves;
    keyed(this.element, curves, (curve) => curve.id, (curve) => this.create(curve), (element, curve) => this.update(element, curve));
  }

  isHidden(curve: Curve): boolean {
    return this.hidden.has(curve.id);
  }

  // Undefined: the cursor has left. Returns the values in words.
  showAt(x: number | undefined, formatX: (x: number) => string): string {
    const words: string[] = [];
    this.element.classList.toggle("at-cursor", x !== undefined);
    for (const [i, curve] of this.curves.entries()) {
      const cell = this.element.children[i]?.querySelector(".legend-cursor");
      const index = x === undefined ? undefined : nearestPoint(curve, x);
      if (!cell || index === undefined) {
        cell?.replaceChildren();
        continue;
      }
      const value = formatNumber(curve.y[index], DIGITS);
      const smoothed = curve.smoothed === undefined ? "" : ` ~${formatNumber(curve.smoothed[index])}`;
      fill(cell, value, h("span", {class: "legend-smoothed"}, smoothed));
      setAttribute(cell, "title", `${formatExact(curve.y[index])} at ${formatX(curve.x[index]!)}`);
      setAttribute(cell, "data-value", formatExact(curve.y[index]));
      words.push(`${curve.label} ${value}`);
    }
    return words.join(", ");
  }

  private create(curve: Curve): HTMLElement {
    const button = h("button", {
      type: "button", class: "legend-name", testid: `${this.testid}-toggle-${curve.id}`,
      on: {click: () => this.toggle(curve.id)},
    }, swatch(curve), h("span", {class: "legend-label"}));
    return h("li", null, button, h("span", {class: "legend-cursor", testid: `${this.testid}-cursor-${curve.id}`}),
      h("span", {class: "legend-last", testid: `${this.testid}-last-${curve.id}`}));
  }

  private update(element: HTMLElement, curve: Curve): void {
    const [button, , last] = element.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
    const label = labelOf(curve);
    setText(button.lastElementChild!, label);
    setAttribute(button, "title", label);
    setAttribute(button, "aria-pressed", this.hidden.has(curve.id) ? "false" : "true");
    element.classList.toggle("hidden-curve", this.hidden.has(curve.id));
    const value = curve.y.at(-1);
    setText(last, value === undefined ? NOTHING : formatFinite(value, (known) => this.format(known ?? null)));
    setAttribute(last, "data-tone", value === null ? "bad" : undefined);
    setAttribute(last, "data-value", value === undefined || value === null ? undefined : String(value));
    setAttribute(last, "data-x", curve.x.at(-1));
    setAttribute(last, "title", formatExact(value));
    const line = button.querySelector("line")!;
    setAttribute(line, "class", `series-${curve.colour + 1}`);
    setAttribute(line, "stroke-dasharray", DASH_PATTERNS[curve.dash]);
  }

  private toggle(id: string): void {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    this.set(this.curves);
    this.onChange();
  }
}

// The label, with the meaning of the curve's gaps if it has some and its last value does not show
// it.
export function labelOf(curve: Pick<Curve, "label" | "y">): string {
  return curve.y.includes(null) && curve.y.at(-1) !== null ? `${curve.label} (gaps: not finite)` : curve.label;
}

function swatch(curve: Curve): SVGElement {
  return s("svg", {class: "swatch", viewBox: "0 0 18 8", width: 18, height: 8, "aria-hidden": "true"},
    s("line", {x1: 1, y1: 4, x2: 17, y2: 4, class: `series-${curve.colour + 1}`}));
}
