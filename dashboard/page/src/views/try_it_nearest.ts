// The items that are nearest to the user of a form, for models of two towers.

import {ApiError, errorText, isAbort, type Api, type Nearest, type NearestForm, type PredictRequest} from "../api";
import {fill, h, setText} from "../dom";
import {formatCount, formatDuration, formatFixed} from "../format";

const COUNTS = [10, 20, 50, 100];

export class NearestItems {
  readonly element: HTMLElement;
  private readonly rows = h("tbody", {testid: "nearest-items"});
  private readonly note = h("p", {class: "muted small", testid: "nearest-note", "aria-live": "polite"});
  private readonly count: HTMLSelectElement;
  private readonly table: HTMLElement;
  private asked: PredictRequest | null = null;  // the query that is shown, or looked for
  private own: string | undefined;  // the id of the form's own item

  constructor(private readonly api: Api, private readonly run: string, private readonly form: NearestForm,
    private readonly signal: AbortSignal) {
    this.count = h("select", {testid: "nearest-count", "aria-label": "Number of items", on: {change: () => void this.find()}},
      ...COUNTS.map((count) => h("option", {value: count}, `${count} items`)));
    this.table = h("table", {class: "data nearest"},
      h("caption", {class: "visually-hidden"}, "The nearest items, the best first"),
      h("thead", null, h("tr", null, h("th", {class: "number"}, "Rank"), h("th", null, form.item_feature), h("th", {class: "number"}, "Score"))),
      this.rows);
    this.element = h("section", {class: "card", "aria-labelledby": "try-it-nearest"},
      h("header", null, h("h3", {id: "try-it-nearest"}, "Nearest items"), h("span", {class: "spacer"}), this.count),
      this.note, this.table);
    this.clear();
  }

  // Looks for the items of the request's query; what the request has beside it does not matter, but for its own item.
  update(request: PredictRequest | null): Promise<void> {
    const query = queryOf(request, this.form);
    this.own = ownItem(request, this.form);
    this.asked = query;
    return this.find();
  }

  private async find(): Promise<void> {
    const query = this.asked;
    if (query === null) {
      this.clear();
      return;
    }
    try {
      const found = await this.api.nearest(this.run, query, Number(this.count.value), this.signal);
      if (this.asked === query) this.show(found);
    } catch (error) {
      if (isAbort(error) || this.asked !== query) return;
      this.say(errorText(error), error instanceof ApiError);
    }
  }

  private clear(): void {
    this.say(`Fill in ${(this.form.columns ?? this.form.features ?? []).join(", ")}.`, false);
  }

  private say(text: string, bad: boolean): void {
    this.note.className = bad ? "small bad" : "muted small";
    setText(this.note, text);
    this.table.hidden = true;
    this.rows.replaceChildren();
  }

  private show({step, items, nearest, seconds}: Nearest): void {
    this.say(`of ${formatCount(items)} items, by the snapshot of step ${formatCount(step)}, in ${formatDuration(seconds)}`, false);
    this.table.hidden = false;
    fill(this.rows, ...nearest.map(({id, score}, i) =>
      h("tr", {testid: `nearest-${i + 1}`, class: id === this.own ? "own" : undefined},
        h("td", {class: "number"}, String(i + 1)),
        h("td", null, h("code", null, id), id === this.own ? h("span", {class: "muted small"}, " the record's own") : null),
        h("td", {class: "number"}, formatFixed(score, 4)))));
  }
}

// What a request has of the query; null: not all of it.
export function queryOf(request: PredictRequest | null, form: NearestForm): PredictRequest | null {
  if (request === null) return null;
  if ("columns" in request) {
    const there = Object.entries(request.columns).filter(([name]) => form.columns?.includes(name));
    return there.length === 0 ? null : {columns: Object.fromEntries(there)};
  }
  if (Array.isArray(request.features)) return null;
  const there = Object.entries(request.features).filter(([name]) => form.features?.includes(name));
  return there.length < (form.features?.length ?? 0) ? null : {features: Object.fromEntries(there)};
}

function ownItem(request: PredictRequest | null, form: NearestForm): string | undefined {
  if (request === null || !("features" in request) || Array.isArray(request.features)) return undefined;
  const id = request.features[form.item_feature];
  return typeof id === "number" || typeof id === "string" ? String(id) : undefined;
}
