// Converts a drawing, an upload or pasted text to the features that a model takes.

import type {ColumnValue, ExampleValue, FormColumn} from "../api_types";

// How a column's values stand in a text.
type ColumnForm = Pick<FormColumn, "list" | "separator">;

// Grey values of [0, 1], rows first; 0 is the background.
export interface GreyImage {
  width: number;
  height: number;
  values: Float32Array;
}

interface Box {
  left: number;
  top: number;
  right: number;   // exclusive
  bottom: number;  // exclusive
}

// The longer side of MNIST's digits has 20 of 28 pixels.
const FILL = 20 / 28;
// Less than this is background.
const INK = 0.02;

// As MNIST's digits were made: the drawing's box is scaled, keeping its proportions, so that its longer side fills 20/28
// of the image, and the drawing's centre of mass becomes the image's centre. Null: nothing is drawn.
export function normalizeDigit(drawing: GreyImage, width: number, height: number): GreyImage | null {
  const box = inkBox(drawing);
  if (box === null) return null;
  const scale = FILL * Math.min(width / (box.right - box.left), height / (box.bottom - box.top));
  const mass = centreOfMass(drawing, box);
  const values = new Float32Array(width * height);
  for (let y = 0; y < height; ++y) {
    const top = (y - height / 2) / scale + mass.y;
    for (let x = 0; x < width; ++x) {
      values[y * width + x] = areaMean(drawing, (x - width / 2) / scale + mass.x, top, 1 / scale);
    }
  }
  return {width, height, values};
}

// Each channel gets the grey value.
export function greyFeatures(image: GreyImage, channels: number): number[] {
  return [...image.values].flatMap((value) => new Array<number>(channels).fill(value));
}

// The bytes of a canvas (RGBA) as features: transparent pixels are 0; with one channel grey (by the eye's sensitivity),
// else red, green and blue. `invert`: dark on bright becomes bright on dark.
export function rgbaFeatures(rgba: ArrayLike<number>, channels: number, invert: boolean): number[] {
  const features: number[] = [];
  for (let i = 0; i < rgba.length; i += 4) {
    const light = (c: number) => {
      const value = rgba[i + c]! / 255;
      return rgba[i + 3]! / 255 * (invert ? 1 - value : value);
    };
    if (channels === 1) {
      features.push(0.299 * light(0) + 0.587 * light(1) + 0.114 * light(2));
    } else {
      features.push(light(0), light(1), light(2));
    }
  }
  return features;
}

// Values of an image of 1 or 3 channels, of which `full` is the brightest, as the bytes of a canvas.
export function imageRgba(values: ArrayLike<number>, channels: number, full: number): Uint8ClampedArray<ArrayBuffer> {
  const pixels = Math.floor(values.length / channels);
  const rgba = new Uint8ClampedArray(pixels * 4);
  for (let i = 0; i < pixels; ++i) {
    for (let c = 0; c < 3; ++c) {
      rgba[4 * i + c] = 255 / full * values[i * channels + Math.min(c, channels - 1)]!;
    }
    rgba[4 * i + 3] = 255;
  }
  return rgba;
}

// Whether an input of this shape can be shown and drawn: [height, width, 1 or 3].
export function isImage(shape: readonly number[]): boolean {
  return shape.length === 3 && (shape[2] === 1 || shape[2] === 3);
}

export interface PastedRow {
  features: number[];
  divided: boolean;  // they were an image's bytes, 0 to 255, and became 0 to 1
}

// A row of numbers with commas, semicolons or blanks between them. Fails with an Error that names the word that is none.
export function parseRow(text: string, image: boolean): PastedRow {
  const words = text.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter((word) => word !== "");
  const features = words.map((word, i) => {
    const value = Number(word);
    if (!Number.isFinite(value)) {
      throw new Error(`value ${i + 1}: expected a number, found "${word.slice(0, 20)}"`);
    }
    return value;
  });
  const bytes = features.every((value) => Number.isInteger(value) && value >= 0 && value <= 255);
  const divided = image && bytes && features.some((value) => value > 1);
  return {features: divided ? features.map((value) => value / 255) : features, divided};
}

// Ids that a number does not hold exactly are texts.
export interface ParsedBag {
  ids: (number | string)[];
  weights?: number[];
}

// An id from 0 to below `count`, or of 64 bits; null: there is no text. Fails with an Error that says what is wrong.
export function parseId(text: string, count: number | undefined): number | string | null {
  const word = text.trim();
  return word === "" ? null : idOf(word, count, "");
}

// Ids with commas, semicolons or blanks between them; of a weighted bag "3:0.5", and those without a weight have 1. Fails with an
// Error that names the word that is wrong.
export function parseBag(text: string, count: number | undefined, weighted: boolean): ParsedBag {
  const bag = {ids: [] as (number | string)[], weights: [] as number[]};
  for (const [i, word] of text.split(/[\s,;]+/).filter((part) => part !== "").entries()) {
    const [id, weight, ...more] = word.split(":");
    const where = `id ${i + 1}: `;
    if (weight !== undefined && !weighted) throw new Error(`${where}expected no weight, found "${word.slice(0, 20)}"`);
    bag.ids.push(idOf(id!, count, where));
    const number = weight === undefined ? 1 : Number(weight);
    if (weight === "" || more.length > 0 || !Number.isFinite(number)) {
      throw new Error(`${where}expected a number behind the colon, found "${word.slice(0, 20)}"`);
    }
    bag.weights.push(number);
  }
  return weighted ? bag : {ids: bag.ids};
}

// The greatest of `count` ids, or of those of 64 bits.
export function lastId(count: number | undefined): bigint {
  return (count === undefined ? 2n ** 64n : BigInt(count)) - 1n;
}

// A feature's value as the text from which parseId, parseBag or parseRow read it.
export function featureText(value: ExampleValue): string {
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.join(", ");
  return value.ids.map((id, i) => value.weights === undefined ? String(id) : `${id}:${value.weights[i]}`).join(", ");
}

// What a column has for a text; null: it is missing. A list that nothing separates has a value on each line.
export function columnValue(text: string, {list, separator}: ColumnForm): ColumnValue {
  if (!list || separator !== undefined) return text.trim() === "" ? null : text;
  const values = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return values.length === 0 ? null : values;
}

// The other way around.
export function columnText(value: ColumnValue, {list}: ColumnForm): string {
  if (value === null) return "";
  return typeof value === "string" ? value : value.join(list ? "\n" : " ");
}

function idOf(word: string, count: number | undefined, where: string): number | string {
  const id = /^\d{1,20}$/.test(word) ? BigInt(word) : -1n;
  if (id < 0n || id > lastId(count)) throw new Error(`${where}expected an id from 0 to ${lastId(count)}, found "${word.slice(0, 20)}"`);
  return id <= Number.MAX_SAFE_INTEGER ? Number(id) : String(id);
}

function inkBox({width, height, values}: GreyImage): Box | null {
  const box: Box = {left: width, top: height, right: 0, bottom: 0};
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      if (values[y * width + x]! >= INK) {
        box.left = Math.min(box.left, x);
        box.right = Math.max(box.right, x + 1);
        box.top = Math.min(box.top, y);
        box.bottom = y + 1;
      }
    }
  }
  return box.right > box.left ? box : null;
}

function centreOfMass({width, values}: GreyImage, box: Box): {x: number; y: number} {
  let total = 0;
  let sumX = 0;
  let sumY = 0;
  for (let y = box.top; y < box.bottom; ++y) {
    for (let x = box.left; x < box.right; ++x) {
      const value = values[y * width + x]!;
      total += value;
      sumX += value * (x + 0.5);
      sumY += value * (y + 0.5);
    }
  }
  return {x: sumX / total, y: sumY / total};
}

// The mean over a square with this corner; what lies outside is background.
function areaMean({width, height, values}: GreyImage, left: number, top: number, side: number): number {
  const right = left + side;
  const bottom = top + side;
  let sum = 0;
  for (let y = Math.max(0, Math.floor(top)); y < Math.min(height, Math.ceil(bottom)); ++y) {
    const tall = Math.min(y + 1, bottom) - Math.max(y, top);
    for (let x = Math.max(0, Math.floor(left)); x < Math.min(width, Math.ceil(right)); ++x) {
      sum += tall * (Math.min(x + 1, right) - Math.max(x, left)) * values[y * width + x]!;
    }
  }
  return sum / (side * side);
}
