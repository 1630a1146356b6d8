// Where an input comes from: a drawing, a file, a pasted row. Each calls back when it has changed.

import {errorText, type PredictRequest} from "../api";
import {h, setText} from "../dom";
import {formatCount, formatShape} from "../format";
import {greyFeatures, normalizeDigit, parseRow, rgbaFeatures} from "./try_it_input";

export interface Source {
  readonly id: string;
  readonly title: string;
  readonly element: HTMLElement;
  // The request is of one example; null: there is none.
  request(): PredictRequest | null;
  // What there is of a request whose other fields are empty.
  part?(): PredictRequest;
  // Shows what an answer says of one of its fields; false: it says nothing of them.
  showError?(message: string): boolean;
  clear(): void;
}

const SIDE = 280;   // pixels of the drawing's canvas
const PEN = 22;     // 2.2 of the 20 pixels of a digit
const INK = "#fff";
const PAPER = "#000";

// Bright strokes on a dark ground with mouse, pen or finger. What the model gets is made as MNIST's digits were.
export class Drawing implements Source {
  readonly id = "draw";
  readonly title = "Draw";
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private readonly hint = h("p", {class: "pad-hint", "aria-hidden": "true"}, "draw here");
  private last: {x: number; y: number} | undefined;

  constructor(private readonly shape: readonly number[], private readonly changed: () => void) {
    this.canvas = h("canvas", {
      class: "pad", width: SIDE, height: SIDE, testid: "pad", role: "img",
      "aria-label": "Drawing area for mouse, pen or finger; with the keyboard, a row of values can be pasted instead",
      on: {
        pointerdown: (event) => this.begin(event),
        pointermove: (event) => this.move(event),
        pointerup: () => this.end(),
        pointercancel: () => this.end(),
      },
    });
    this.context = this.canvas.getContext("2d", {willReadFrequently: true})!;
    this.wipe();
    this.element = h("div", {class: "stack"}, h("div", {class: "pad-box"}, this.canvas, this.hint), h("p", {class: "muted small"},
      "What you draw is centred by its mass and scaled so that its longer side fills 20 of 28 parts of the image, as the MNIST " +
      "database does it."));
  }

  request(): PredictRequest | null {
    const features = this.features();
    return features === null ? null : {features};
  }

  clear(): void {
    this.wipe();
    this.changed();
  }

  private features(): number[] | null {
    const [height, width, channels] = this.shape as [number, number, number];
    const rgba = this.context.getImageData(0, 0, SIDE, SIDE).data;
    const values = new Float32Array(SIDE * SIDE);
    for (let i = 0; i < values.length; ++i) values[i] = rgba[4 * i]! / 255;
    const digit = normalizeDigit({width: SIDE, height: SIDE, values}, width, height);
    return digit === null ? null : greyFeatures(digit, channels);
  }

  private wipe(): void {
    this.context.fillStyle = PAPER;
    this.context.fillRect(0, 0, SIDE, SIDE);
    this.hint.hidden = false;
    Object.assign(this.context, {strokeStyle: INK, lineWidth: PEN, lineCap: "round", lineJoin: "round"});
  }

  private begin(event: PointerEvent): void {
    if (event.button === 0) {
      event.preventDefault();
      this.canvas.setPointerCapture(event.pointerId);
      this.hint.hidden = true;
      this.last = this.at(event);
      this.stroke(this.last);
    }
  }

  private move(event: PointerEvent): void {
    if (this.last !== undefined) {
      const steps = event.getCoalescedEvents();
      for (const step of steps.length > 0 ? steps : [event]) this.stroke(this.at(step));
    }
  }

  private end(): void {
    this.last = undefined;
  }

  private stroke(to: {x: number; y: number}): void {
    const from = this.last ?? to;
    this.context.beginPath();
    this.context.moveTo(from.x, from.y);
    this.context.lineTo(to.x, to.y);
    this.context.stroke();
    this.last = to;
    this.changed();
  }

  private at(event: PointerEvent): {x: number; y: number} {
    const box = this.canvas.getBoundingClientRect();
    return {x: (event.clientX - box.left) / box.width * SIDE, y: (event.clientY - box.top) / box.height * SIDE};
  }
}

// An image file, scaled to the input's size with its proportions kept; what it does not fill is 0.
export class Upload implements Source {
  readonly id = "upload";
  readonly title = "Upload";
  readonly element: HTMLElement;
  private readonly file: HTMLInputElement;
  private readonly invert: HTMLInputElement;
  private readonly note = h("p", {class: "small", "aria-live": "polite", testid: "upload-note"});
  private rgba: Uint8ClampedArray | undefined;

  constructor(private readonly shape: readonly number[], private readonly changed: () => void) {
    this.file = h("input", {
      type: "file", accept: "image/*", testid: "upload", "aria-label": "Image file",
      on: {change: () => void this.load(this.file.files?.[0])},
    });
    this.invert = h("input", {type: "checkbox", testid: "invert", on: {change: () => this.changed()}});
    const color = shape[2] === 1 ? "grey" : "colour";
    this.element = h("div", {class: "drop stack", on: {
      dragover: (event) => event.preventDefault(),
      drop: (event) => {
        event.preventDefault();
        void this.load(event.dataTransfer?.files[0]);
      },
    }},
    h("p", null, "Choose a file, or drop one here."), this.file,
    h("label", null, this.invert, "Invert: dark on bright becomes bright on dark"), this.note,
    h("p", {class: "muted small"}, `It is scaled to ${shape[1]} × ${shape[0]} pixels in ${color}. The file does not leave this ` +
      "page; its pixels go to the evaluator."));
  }

  request(): PredictRequest | null {
    return this.rgba === undefined ? null : {features: rgbaFeatures(this.rgba, this.shape[2]!, this.invert.checked)};
  }

  clear(): void {
    this.rgba = undefined;
    this.file.value = "";
    setText(this.note, "");
    this.changed();
  }

  private async load(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    try {
      this.rgba = await scaled(file, this.shape[1]!, this.shape[0]!);
      this.invert.checked = this.shape[2] === 1 && brightAtTheEdge(this.rgba, this.shape[1]!, this.shape[0]!);
      setText(this.note, file.name);
    } catch {
      this.rgba = undefined;
      setText(this.note, `${file.name}: not an image that this browser reads`);
    }
    this.changed();
  }
}

// A row of numbers: the way for who has features rather than pictures, or a keyboard only.
export class Paste implements Source {
  readonly id = "paste";
  readonly title = "Paste";
  readonly element: HTMLElement;
  private readonly text: HTMLTextAreaElement;
  private readonly note = h("p", {class: "small", "aria-live": "polite", testid: "paste-note"});
  private readonly count: number;

  constructor(shape: readonly number[], private readonly image: boolean, private readonly changed: () => void) {
    this.count = shape.reduce((product, size) => product * size, 1);
    this.text = h("textarea", {
      rows: 8, spellcheck: "false", testid: "paste", class: "mono", "aria-label": "Values of one example",
      placeholder: "0.1, 0.25, 3 …", on: {input: () => this.changed()},
    });
    this.element = h("div", {class: "stack"}, this.text, this.note, h("p", {class: "muted small"},
      `${formatCount(this.count)} values${shape.length > 1 ? ` (${formatShape(shape)})` : ""}${image ? ", row by row, from 0 to 1 or from 0 to 255" : ""}, with ` +
      "commas or blanks between them."));
  }

  request(): PredictRequest | null {
    let note = "";
    let features: number[] | null = null;
    try {
      const row = parseRow(this.text.value, this.image);
      if (row.features.length === this.count) {
        features = row.features;
        note = row.divided ? "Read as bytes: divided by 255." : "";
      } else if (row.features.length > 0) {
        note = `${formatCount(row.features.length)} of ${formatCount(this.count)} values`;
      }
    } catch (error) {
      note = errorText(error);
    }
    setText(this.note, note);
    return features === null ? null : {features};
  }

  clear(): void {
    this.text.value = "";
    this.changed();
  }
}

async function scaled(file: File, width: number, height: number): Promise<Uint8ClampedArray> {
  const whole = await createImageBitmap(file);
  const scale = Math.min(width / whole.width, height / whole.height);
  const wide = Math.max(1, Math.round(whole.width * scale));
  const tall = Math.max(1, Math.round(whole.height * scale));
  const small = await createImageBitmap(whole, {resizeWidth: wide, resizeHeight: tall, resizeQuality: "high"});
  const context = h("canvas", {width, height}).getContext("2d")!;
  context.drawImage(small, Math.floor((width - wide) / 2), Math.floor((height - tall) / 2));
  whole.close();
  small.close();
  return context.getImageData(0, 0, width, height).data;
}

// Ink on paper rather than the bright on dark that digits are trained on.
function brightAtTheEdge(rgba: Uint8ClampedArray, width: number, height: number): boolean {
  let sum = 0;
  let count = 0;
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const i = 4 * (y * width + x);
      const edge = x === 0 || y === 0 || x === width - 1 || y === height - 1;
      if (edge && rgba[i + 3]! > 0) {
        sum += (rgba[i]! + rgba[i + 1]! + rgba[i + 2]!) / 3;
        ++count;
      }
    }
  }
  return count > 0 && sum / count > 127;
}
