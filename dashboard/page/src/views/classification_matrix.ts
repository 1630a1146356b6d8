import {cssVariable, h, oncePerFrame, setText} from "../dom";
import {formatCount, formatPercent} from "../format";
import {className, rowShares} from "./classification_model";

const CELL = {least: 3, most: 54};  // pixels
const FONT = 11;
const LABEL_CHARACTERS = 9;
const ROOM_FOR_NUMBER = 26;  // pixels of a cell

interface Place {
  label: number;
  predicted: number;
}

// A confusion matrix, rows are labels: hits in green, mistakes in red, the stronger the larger their share of the row (by
// its square root, so that rare mistakes are seen). The pointer or the arrow keys choose a cell,
// which is described in words.
export class ConfusionMatrix {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly room = h("div", {class: "scroll matrix-room"});
  private readonly readout = h("p", {class: "matrix-readout small", "aria-live": "polite", testid: "confusion-readout"});
  private readonly redraw = oncePerFrame(() => this.draw());
  private readonly observer = new ResizeObserver(() => this.redraw());
  private confusion: readonly (readonly number[])[] = [];
  private shares: number[][] = [];
  private classes: readonly string[] | undefined;
  private asShares = false;
  private chosen: Place | undefined;
  private cell = CELL.least;
  private gutter = 0;

  constructor() {
    this.canvas = h("canvas", {
      class: "matrix", tabindex: 0, role: "application", testid: "confusion",
      "aria-label": "Confusion matrix; the arrow keys choose a cell",
      on: {
        pointermove: (event) => this.choose(this.at(event)),
        pointerdown: (event) => this.choose(this.at(event)),
        pointerleave: () => this.choose(undefined),
        focus: () => this.choose(this.chosen ?? {label: 0, predicted: 0}),
        blur: () => this.choose(undefined),
        keydown: (event) => this.key(event),
      },
    });
    this.room.append(this.canvas);
    this.element = h("div", {class: "matrix-box"}, this.room, this.readout);
    this.observer.observe(this.room);
  }

  show(confusion: readonly (readonly number[])[], classes: readonly string[] | undefined): void {
    this.confusion = confusion;
    this.shares = rowShares(confusion);
    this.classes = classes;
    this.say();
    this.redraw();
  }

  // Numbers in the cells: shares of the row instead of counts.
  setShares(asShares: boolean): void {
    this.asShares = asShares;
    this.redraw();
  }

  themeChanged(): void {
    this.redraw();
  }

  close(): void {
    this.observer.disconnect();
    this.redraw.cancel();
  }

  private key(event: KeyboardEvent): void {
    const last = this.confusion.length - 1;
    const {label, predicted} = this.chosen ?? {label: 0, predicted: 0};
    const places: Record<string, Place> = {
      ArrowUp: {label: Math.max(0, label - 1), predicted},
      ArrowDown: {label: Math.min(last, label + 1), predicted},
      ArrowLeft: {label, predicted: Math.max(0, predicted - 1)},
      ArrowRight: {label, predicted: Math.min(last, predicted + 1)},
      Home: {label, predicted: 0},
      End: {label, predicted: last},
    };
    const place = places[event.key];
    if (place !== undefined) {
      event.preventDefault();
      this.choose(place);
    }
  }

  private at(event: PointerEvent): Place | undefined {
    const box = this.canvas.getBoundingClientRect();
    const predicted = Math.floor((event.clientX - box.left - this.gutter) / this.cell);
    const label = Math.floor((event.clientY - box.top - this.gutter) / this.cell);
    const inside = (i: number) => i >= 0 && i < this.confusion.length;
    return inside(label) && inside(predicted) ? {label, predicted} : undefined;
  }

  private choose(place: Place | undefined): void {
    if (place?.label !== this.chosen?.label || place?.predicted !== this.chosen?.predicted) {
      this.chosen = place;
      this.say();
      this.redraw();
    }
  }

  private say(): void {
    const count = this.chosen && this.confusion[this.chosen.label]?.[this.chosen.predicted];
    if (this.chosen === undefined || count === undefined) {
      setText(this.readout, "Rows are labels, columns what the model predicts. Point at a cell, or move with the arrow keys.");
      return;
    }
    const {label, predicted} = this.chosen;
    setText(this.readout, `label ${className(this.classes, label)}, predicted ${className(this.classes, predicted)}: ` +
      `${formatCount(count)} ${count === 1 ? "example" : "examples"}, ${formatPercent(this.shares[label]![predicted])} of the label`);
  }

  private draw(): void {
    const size = this.confusion.length;
    const context = this.canvas.getContext("2d");
    if (size === 0 || context === null || this.room.clientWidth === 0) return;
    context.font = `${FONT}px ${cssVariable("--sans")}`;
    const names = this.confusion.map((_, i) => shorten(className(this.classes, i)));
    this.gutter = Math.ceil(Math.max(...names.map((name) => context.measureText(name).width))) + 10;
    this.cell = Math.max(CELL.least, Math.min(CELL.most, Math.floor((this.room.clientWidth - this.gutter - 1) / size)));
    const side = this.gutter + this.cell * size + 1;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = side * ratio;
    this.canvas.height = side * ratio;
    this.canvas.style.width = `${side}px`;
    this.canvas.style.height = `${side}px`;
    context.scale(ratio, ratio);
    context.font = `${FONT}px ${cssVariable("--sans")}`;
    context.textBaseline = "middle";
    this.drawCells(context);
    this.drawNames(context, names);
    this.drawChosen(context);
  }

  private drawCells(context: CanvasRenderingContext2D): void {
    const colors = {hit: cssVariable("--good"), mistake: cssVariable("--bad"), grid: cssVariable("--grid")};
    const text = {plain: cssVariable("--text"), onColor: cssVariable("--surface")};
    const gap = this.cell >= 8 ? 1 : 0;
    context.textAlign = "center";
    this.confusion.forEach((row, label) => row.forEach((count, predicted) => {
      const x = this.gutter + predicted * this.cell;
      const y = this.gutter + label * this.cell;
      const strength = Math.sqrt(this.shares[label]![predicted]!);
      context.globalAlpha = 1;
      context.fillStyle = colors.grid;
      context.fillRect(x, y, this.cell - gap, this.cell - gap);
      if (count > 0) {
        context.globalAlpha = 0.06 + 0.94 * strength;
        context.fillStyle = label === predicted ? colors.hit : colors.mistake;
        context.fillRect(x, y, this.cell - gap, this.cell - gap);
      }
      if (count > 0 && this.cell >= ROOM_FOR_NUMBER) {
        context.globalAlpha = 1;
        context.fillStyle = strength > 0.6 ? text.onColor : text.plain;
        context.fillText(this.number(label, predicted), x + this.cell / 2, y + this.cell / 2, this.cell - 4);
      }
    }));
    context.globalAlpha = 1;
  }

  private number(label: number, predicted: number): string {
    if (!this.asShares) return String(this.confusion[label]![predicted]);
    const percent = 100 * this.shares[label]![predicted]!;
    return percent >= 9.95 ? percent.toFixed(0) : percent.toFixed(1);
  }

  private drawNames(context: CanvasRenderingContext2D, names: readonly string[]): void {
    const every = Math.ceil((FONT + 3) / this.cell);
    context.fillStyle = cssVariable("--muted");
    names.forEach((name, i) => {
      if (i % every !== 0) return;
      const middle = this.gutter + (i + 0.5) * this.cell;
      context.textAlign = "right";
      context.fillText(name, this.gutter - 6, middle);
      context.save();
      context.translate(middle, this.gutter - 6);
      if (context.measureText(name).width > this.cell * every - 2) {
        context.rotate(-Math.PI / 2);
        context.textAlign = "left";
      } else {
        context.textAlign = "center";
        context.textBaseline = "bottom";
      }
      context.fillText(name, 0, 0);
      context.restore();
    });
  }

  private drawChosen(context: CanvasRenderingContext2D): void {
    if (this.chosen !== undefined) {
      const x = this.gutter + this.chosen.predicted * this.cell;
      const y = this.gutter + this.chosen.label * this.cell;
      context.strokeStyle = cssVariable("--text");
      context.lineWidth = 2;
      context.strokeRect(x - 0.5, y - 0.5, this.cell, this.cell);
    }
  }
}

function shorten(name: string): string {
  return name.length <= LABEL_CHARACTERS ? name : `${name.slice(0, LABEL_CHARACTERS - 1)}…`;
}
