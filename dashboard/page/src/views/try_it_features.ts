// A field for each feature of a model: numbers, an id, or a bag of ids.

import {errorText, type Example, type ExampleValue, type ModelFeature} from "../api";
import {h, setAttribute, setText} from "../dom";
import {formatCount, formatShape} from "../format";
import {parseBag, parseId, parseRow} from "./try_it_input";
import type {Source} from "./try_it_sources";

export class FeatureFields implements Source {
  readonly id = "features";
  readonly title = "Features";
  readonly element: HTMLElement;
  private readonly fields: FeatureField[];

  constructor(features: readonly ModelFeature[], private readonly changed: () => void) {
    this.fields = features.map((feature) => new FeatureField(feature, changed));
    this.element = h("div", {class: "stack"}, ...this.fields.map((field) => field.element));
  }

  // All fields say what is wrong with them, also behind the first that is.
  features(): Example | null {
    const values = this.fields.map((field): [string, ExampleValue | null] => [field.name, field.value()]);
    const there = values.filter((entry): entry is [string, ExampleValue] => entry[1] !== null);
    return there.length < values.length ? null : Object.fromEntries(there);
  }

  clear(): void {
    for (const field of this.fields) field.clear();
    this.changed();
  }
}

class FeatureField {
  readonly name: string;
  readonly element: HTMLElement;
  private readonly text: HTMLInputElement | HTMLTextAreaElement;
  private readonly note: HTMLElement;

  constructor(private readonly feature: ModelFeature, changed: () => void) {
    this.name = feature.name;
    const hint = `feature-hint-${feature.name}`;
    const note = `feature-note-${feature.name}`;
    const props = {
      id: `feature-${feature.name}`, testid: `feature-${feature.name}`, class: "mono", autocomplete: "off", spellcheck: "false",
      "aria-describedby": `${hint} ${note}`, placeholder: placeholderOf(feature), on: {input: changed},
    };
    this.text = feature.kind === "id" ? h("input", {...props, type: "text", inputmode: "numeric"}) :
      h("textarea", {...props, rows: feature.kind === "numbers" && feature.shape.length > 1 ? 5 : 2});
    this.note = h("p", {class: "small bad", id: note, "aria-live": "polite", testid: `feature-note-${feature.name}`});
    this.element = h("div", {class: "feature-field"}, h("label", {for: props.id}, feature.name),
      h("span", {class: "muted small", id: hint}, hintOf(feature)), this.text, this.note);
  }

  // Null: there is none, or it makes no sense, which the note says.
  value(): ExampleValue | null {
    let value: ExampleValue | null = null;
    let note = "";
    try {
      value = this.read();
    } catch (error) {
      note = errorText(error);
    }
    setText(this.note, note);
    setAttribute(this.text, "aria-invalid", note === "" ? undefined : "true");
    return value;
  }

  clear(): void {
    this.text.value = "";
  }

  private read(): ExampleValue | null {
    const {feature, text} = this;
    switch (feature.kind) {
      case "id":
        return parseId(text.value, countOf(feature.ids));
      case "bag":
        return feature.weighted ? parseBag(text.value, countOf(feature.ids), true) : parseBag(text.value, countOf(feature.ids), false).ids;
      case "numbers": {
        const numbers = parseRow(text.value, false).features;
        const count = feature.shape.reduce((product, size) => product * size, 1);
        if (numbers.length === 0) return null;
        if (numbers.length !== count) throw new Error(`${formatCount(numbers.length)} of ${formatCount(count)} values`);
        return numbers;
      }
    }
  }
}

// How many ids a field takes: of tables, whose ids have 64 bits, those that a number holds exactly.
function countOf(ids: number | undefined): number {
  return ids ?? 1e15;
}

function placeholderOf(feature: ModelFeature): string {
  switch (feature.kind) {
    case "numbers": return "0.1, 0.25, 3 …";
    case "id": return "0";
    case "bag": return feature.weighted ? "3:0.5, 7, 12:2 …" : "3, 7, 12 …";
  }
}

function hintOf(feature: ModelFeature): string {
  const last = feature.kind === "numbers" ? "" : formatCount(countOf(feature.ids) - 1);
  switch (feature.kind) {
    case "numbers": return feature.shape.length > 1 ? `${formatShape(feature.shape)} values, row by row` :
      feature.shape[0] === 1 ? "one value" : `${formatShape(feature.shape)} values`;
    case "id": return `an id from 0 to ${last}`;
    case "bag": return `any number of ids from 0 to ${last}${feature.weighted ? ", each with a weight behind a colon, or 1" : ""}`;
  }
}
