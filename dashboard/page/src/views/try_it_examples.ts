// Records of the evaluation, from which a form begins: the first one, and on demand the next.

import type {FormExample} from "../api";
import {h, setText} from "../dom";
import {formatCount} from "../format";

export class Examples {
  // Empty without examples.
  readonly element: HTMLElement;
  private readonly note = h("p", {class: "muted small", testid: "example-note", "aria-live": "polite"});
  private shown = -1;  // the position of the one that was filled in last

  constructor(private readonly examples: readonly FormExample[], private readonly fill: (example: FormExample) => void) {
    const next = h("button", {type: "button", testid: "next-example", on: {click: () => this.show(this.shown + 1)}}, "Another record");
    this.element = h("div", {class: "row example-row", hidden: examples.length === 0}, this.note, h("span", {class: "spacer"}), next);
    this.none();
  }

  first(): void {
    if (this.examples.length > 0) this.show(0);
  }

  // The user has changed the record.
  edited(): void {
    const example = this.examples[this.shown];
    if (example !== undefined) setText(this.note, `Changed from record ${formatCount(example.record)} of the evaluation data.`);
  }

  // The form has been cleared.
  none(): void {
    setText(this.note, "The evaluation data have records to begin with.");
  }

  private show(position: number): void {
    this.shown = position % this.examples.length;
    const example = this.examples[this.shown]!;
    setText(this.note, exampleText(example));
    this.fill(example);
  }
}

// "Record 1,203 of the evaluation data, where bought is 1."
export function exampleText({record, labels}: FormExample): string {
  const known = Object.entries(labels).map(([name, value]) => `${name} is ${value}`);
  return `Record ${formatCount(record)} of the evaluation data${known.length === 0 ? "" : `, where ${known.join(" and ")}`}.`;
}
