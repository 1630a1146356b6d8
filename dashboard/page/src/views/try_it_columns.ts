// A field for each column of the files that a run's records are made of.

import type {ColumnValue, FormColumn, FormExample, PredictRequest} from "../api";
import {h} from "../dom";
import {Field, fieldOfError} from "./try_it_field";
import {columnText, columnValue} from "./try_it_input";
import {Examples} from "./try_it_examples";
import type {Source} from "./try_it_sources";

export class ColumnFields implements Source {
  readonly id = "columns";
  readonly title = "Columns";
  readonly element: HTMLElement;
  private readonly fields: {column: FormColumn; field: Field}[];
  private readonly examples: Examples;

  constructor(columns: readonly FormColumn[], examples: readonly FormExample[], private readonly changed: () => void) {
    const edited = () => {
      this.examples.edited();
      changed();
    };
    this.fields = columns.map((column, position) => ({column, field: new Field({
      kind: "column", name: column.name, position, hint: hintOf(column), placeholder: "missing", rows: column.list ? 2 : 1,
      ...(column.kind === "text" || column.list ? {} : {inputmode: column.kind === "number" ? "decimal" : "numeric"}),
      ...(column.values === undefined ? {} : {values: column.values}),
    }, edited)}));
    this.examples = new Examples(examples, (example) => this.fill(example));
    this.element = h("div", {class: "stack"}, this.examples.element,
      h("div", {class: "column-fields"}, ...this.fields.map(({field}) => field.element)));
    this.examples.first();
  }

  // Null while all fields are empty. What is wrong with a value the answer says.
  request(): PredictRequest | null {
    const values: Record<string, ColumnValue> = {};
    for (const {column, field} of this.fields) {
      field.setNote("");
      const value = columnValue(field.text, column);
      if (value !== null) values[column.name] = value;
    }
    return Object.keys(values).length === 0 ? null : {columns: values};
  }

  showError(message: string): boolean {
    const found = fieldOfError(message, "columns", this.fields.map(({column}) => column.name));
    const wrong = this.fields.find(({column}) => column.name === found?.name);
    wrong?.field.setNote(found!.text);
    return wrong !== undefined;
  }

  clear(): void {
    for (const {field} of this.fields) field.text = "";
    this.examples.none();
    this.changed();
  }

  private fill(example: FormExample): void {
    for (const {column, field} of this.fields) field.text = columnText(example.columns?.[column.name] ?? null, column);
    this.changed();
  }
}

function hintOf({kind, list, separator, weight_separator: weight}: FormColumn): string {
  const what = {number: "a number", integer: "a whole number", text: "a text"}[kind];
  if (!list) return what;
  const each = {number: "numbers", integer: "whole numbers", text: "texts"}[kind];
  return (separator === undefined ? `${each}, one on each line` : `${each} with "${separator}" between them`) +
    (weight === undefined ? "" : `, each with "${weight}" and a weight behind it, or 1`);
}
