// A field for each feature of a model: numbers, an id, or a bag of ids.

import {errorText, type ExampleValue, type FormExample, type ModelFeature, type PredictRequest} from "../api";
import {h} from "../dom";
import {formatCount, formatShape} from "../format";
import {Examples} from "./try_it_examples";
import {Field, fieldOfError} from "./try_it_field";
import {featureText, lastId, parseBag, parseId, parseRow} from "./try_it_input";
import type {Source} from "./try_it_sources";

export class FeatureFields implements Source {
  readonly id = "features";
  readonly title = "Features";
  readonly element: HTMLElement;
  private readonly fields: FeatureField[];
  private readonly examples: Examples;

  constructor(features: readonly ModelFeature[], examples: readonly FormExample[], private readonly changed: () => void) {
    const edited = () => {
      this.examples.edited();
      changed();
    };
    this.fields = features.map((feature, position) => new FeatureField(feature, position, edited));
    this.examples = new Examples(examples, (example) => this.fill(example));
    this.element = h("div", {class: "stack"}, this.examples.element, ...this.fields.map(({field}) => field.element));
    this.examples.first();
  }

  request(): PredictRequest | null {
    const {features} = this.part();
    return Object.keys(features).length < this.fields.length ? null : {features};
  }

  // All fields say what is wrong with them, also behind the first that is.
  part(): {features: Record<string, ExampleValue>} {
    const values = this.fields.map((field): [string, ExampleValue | null] => [field.name, field.value()]);
    return {features: Object.fromEntries(values.filter((entry): entry is [string, ExampleValue] => entry[1] !== null))};
  }

  showError(message: string): boolean {
    const found = fieldOfError(message, "features", this.fields.map((field) => field.name));
    const wrong = this.fields.find((field) => field.name === found?.name);
    wrong?.field.setNote(found!.text);
    return wrong !== undefined;
  }

  clear(): void {
    for (const {field} of this.fields) field.text = "";
    this.examples.none();
    this.changed();
  }

  private fill(example: FormExample): void {
    for (const {name, field} of this.fields) {
      const value = example.features?.[name];
      field.text = value === undefined ? "" : featureText(value);
    }
    this.changed();
  }
}

class FeatureField {
  readonly name: string;
  readonly field: Field;

  constructor(private readonly feature: ModelFeature, position: number, changed: () => void) {
    this.name = feature.name;
    this.field = new Field({
      kind: "feature", name: feature.name, position, hint: hintOf(feature), placeholder: placeholderOf(feature),
      rows: feature.kind === "id" ? 1 : feature.kind === "numbers" && feature.shape.length > 1 ? 5 : 2,
      ...(feature.kind === "id" ? {inputmode: "numeric"} : {}),
    }, changed);
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
    this.field.setNote(note);
    return value;
  }

  private read(): ExampleValue | null {
    const {feature, field} = this;
    switch (feature.kind) {
      case "id":
        return parseId(field.text, feature.ids);
      case "bag":
        return feature.weighted ? parseBag(field.text, feature.ids, true) : parseBag(field.text, feature.ids, false).ids;
      case "numbers": {
        const numbers = parseRow(field.text, false).features;
        const count = feature.shape.reduce((product, size) => product * size, 1);
        if (numbers.length === 0) return null;
        if (numbers.length !== count) throw new Error(`${formatCount(numbers.length)} of ${formatCount(count)} values`);
        return numbers;
      }
    }
  }
}

function placeholderOf(feature: ModelFeature): string {
  switch (feature.kind) {
    case "numbers": return "0.1, 0.25, 3 …";
    case "id": return "0";
    case "bag": return feature.weighted ? "3:0.5, 7, 12:2 …" : "3, 7, 12 …";
  }
}

function hintOf(feature: ModelFeature): string {
  switch (feature.kind) {
    case "numbers": return feature.shape.length > 1 ? `${formatShape(feature.shape)} values, row by row` :
      feature.shape[0] === 1 ? "one value" : `${formatShape(feature.shape)} values`;
    case "id": return `an id${rangeOf(feature.ids)}`;
    case "bag": return `any number of ids${rangeOf(feature.ids)}${feature.weighted ? ", each with a weight behind a colon, or 1" : ""}`;
  }
}

function rangeOf(count: number | undefined): string {
  return count === undefined ? " of 64 bits" : ` from 0 to ${Number(lastId(count)).toLocaleString("en-US")}`;
}
