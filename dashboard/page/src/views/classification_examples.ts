// The examples that the model got most wrong, to look at.

import type {ExampleFeature, Report, Value, WrongExample} from "../api";
import {h} from "../dom";
import {formatNumber, formatPercent} from "../format";
import {SortableTable, type Column} from "../sortable_table";
import {className, featureText} from "./classification_model";
import {imageRgba, isImage} from "./try_it_input";

const FEATURES = 10;
const BYTE = 255;
const VALUES = 8;  // of a feature in a table

// Null where examples are not right or wrong by themselves.
export function wrongExamples(report: Report): HTMLElement | null {
  if (report.kind === "retrieval") return null;
  const title = report.kind === "regression" ? "Furthest from the target" : "Most wrong examples";
  const grid = report.wrong.length === 0
    ? h("p", {class: "message"}, "None is wrong.")
    : report.wrong.some((example) => valuesOf(example) !== undefined) ? table(report)
    : h("ul", {class: "examples"}, ...report.wrong.map((example) => card(report, example)));
  return h("section", {class: "card", testid: "wrong-examples", "aria-labelledby": "wrong-title"},
    h("header", null, h("h3", {id: "wrong-title"}, title), h("span", {class: "spacer"}),
      h("span", {class: "muted small"}, report.kind === "regression" ? "" : "their label got the lowest probability")),
    grid);
}

// What the record's file has of it, or else what the model has.
function valuesOf(example: WrongExample): ExampleFeature[] | undefined {
  return example.columns ?? example.features;
}

// Examples of several features, or of columns: a row each.
function table(report: Report): HTMLElement {
  const number = (id: string, title: string, value: (row: WrongExample) => Value | undefined, text: (value: Value | undefined) => string):
    Column<WrongExample> => ({id, title, number: true, sort: value, cell: (row) => text(value(row))});
  const columns: Column<WrongExample>[] = [number("record", "Record", (row) => row.record, String)];
  if (report.kind === "regression") {
    columns.push(number("target", "Target", (row) => row.target, formatNumber),
      number("prediction", "Prediction", (row) => row.prediction, formatNumber));
  } else {
    columns.push(
      {id: "label", title: "Label", sort: (row) => row.label, cell: (row) => className(report.classes, row.label)},
      number("probability", "Its probability", (row) => row.label_probability, (value) => formatPercent(value, 2)));
  }
  const names = report.wrong.map(valuesOf).find((values) => values !== undefined)?.map(({name}) => name) ?? [];
  columns.push(...names.map((name, i): Column<WrongExample> => ({
    id: `feature-${i}`, title: name, cell: (row) => textAt(row, i),
  })));
  const rows = new SortableTable<WrongExample>({
    testid: "wrong-rows", caption: "The most wrong examples with their features", key: (row) => String(row.record), columns,
    onRow: (element, row) => element.setAttribute("data-record", String(row.record)),
  });
  rows.setRows([...report.wrong]);
  return h("div", {class: "wrong-rows"}, rows.element);
}

function textAt(example: WrongExample, position: number): string {
  const value = valuesOf(example)?.[position];
  return value === undefined ? "" : featureText(value, VALUES);
}

function card(report: Report, example: WrongExample): HTMLElement {
  const words = report.kind === "regression"
    ? [line("target", formatNumber(example.target)), line("prediction", formatNumber(example.prediction))]
    : [
      line("label", className(report.classes, example.label), formatPercent(example.label_probability, 2)),
      line("predicted", className(report.classes, example.predicted), formatPercent(example.confidence)),
    ];
  return h("li", {class: "example", testid: "wrong-example", title: `record ${example.record}`},
    example.input === undefined ? null : inputOf(example.input), h("dl", null, ...words.flat()));
}

function line(name: string, value: string, probability?: string): HTMLElement[] {
  return [h("dt", null, name),
    h("dd", null, h("strong", null, value), probability === undefined ? null : h("span", {class: "muted"}, ` ${probability}`))];
}

function inputOf(input: {shape: number[]; values: number[]}): HTMLElement {
  if (isImage(input.shape)) return picture(input.shape, input.values, BYTE);
  const rest = input.values.length - FEATURES;
  return h("ol", {class: "features"}, ...input.values.slice(0, FEATURES).map((value, i) => {
    const bar = h("span", {class: "feature-bar"});
    bar.style.width = `${100 * value / BYTE}%`;
    return h("li", null, h("span", {class: "muted"}, String(i + 1)), h("span", {class: "feature-track"}, bar),
      h("span", {class: "number"}, (value / BYTE).toFixed(2)));
  }), rest > 0 ? h("li", {class: "muted"}, `and ${rest} more`) : null);
}

// Values of which `full` is the brightest, of an image of this shape, pixel by pixel.
export function picture(shape: readonly number[], values: ArrayLike<number>, full: number): HTMLCanvasElement {
  const canvas = h("canvas", {class: "picture", width: shape[1]!, height: shape[0]!, "aria-hidden": "true"});
  drawPicture(canvas, shape, values, full);
  return canvas;
}

export function drawPicture(canvas: HTMLCanvasElement, shape: readonly number[], values: ArrayLike<number>, full: number): void {
  const [height, width, channels] = shape as [number, number, number];
  if (values.length === height * width * channels) {
    canvas.getContext("2d")?.putImageData(new ImageData(imageRgba(values, channels, full), width, height), 0, 0);
  }
}
