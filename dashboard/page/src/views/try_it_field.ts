// A field of a form for one record: its label, what belongs into it, the text, and what is wrong with it.

import {h, setAttribute, setText} from "../dom";

export interface FieldSettings {
  kind: string;  // for the tests, with the name behind it: "column"
  name: string;
  position: number;  // among those of its kind
  hint: string;
  placeholder: string;
  rows: number;  // of the text; 1: a line
  inputmode?: "numeric" | "decimal";
  values?: readonly string[];  // to choose from, or not
}

export class Field {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement | HTMLTextAreaElement;
  private readonly note: HTMLElement;

  constructor({kind, name, position, hint, placeholder, rows, inputmode, values}: FieldSettings, changed: () => void) {
    // Names may have blanks, which ids have not.
    const [id, hintId, noteId, list] = ["", "-hint", "-note", "-values"].map((part) => `${kind}${part}-${position}`) as
      [string, string, string, string];
    const props = {
      id, testid: `${kind}-${name}`, class: "mono", autocomplete: "off", spellcheck: "false", placeholder,
      "aria-describedby": `${hintId} ${noteId}`, on: {input: changed},
    };
    this.input = rows > 1 ? h("textarea", {...props, rows}) :
      h("input", {...props, type: "text", inputmode, list: values === undefined ? undefined : list});
    this.note = h("p", {class: "small bad", id: noteId, "aria-live": "polite", testid: `${kind}-note-${name}`});
    this.element = h("div", {class: "feature-field"}, h("label", {for: id}, name),
      h("span", {class: "muted small", id: hintId}, hint), this.input,
      values === undefined ? null : h("datalist", {id: list}, ...values.map((value) => h("option", {value}))), this.note);
  }

  get text(): string {
    return this.input.value;
  }

  set text(text: string) {
    this.input.value = text;
    this.setNote("");
  }

  // What is wrong; empty: nothing.
  setNote(note: string): void {
    setText(this.note, note);
    setAttribute(this.input, "aria-invalid", note === "" ? undefined : "true");
  }
}

// Which of the fields an answer's error is about, "columns.age: expected a number, found 3": the longest name that fits, and what it
// says of the field. Null: none of them.
export function fieldOfError(message: string, prefix: string, names: readonly string[]): {name: string; text: string} | null {
  let found: {name: string; text: string} | null = null;
  for (const name of names) {
    const place = `${prefix}.${name}`;
    const rest = message.slice(place.length);
    if (!message.startsWith(place) || !/^[:.[]/.test(rest) || name.length < (found?.name.length ?? 0)) continue;
    found = {name, text: rest.startsWith(": ") ? rest.slice(2) : rest.replace(/^\./, "")};
  }
  return found;
}
