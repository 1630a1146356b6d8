// The model's graph, what a layer of it is, and a table that says the same.

import {ApiError, errorText, isAbort, type Model, type ModelLayer} from "../api";
import {fill, h, setText, type Child} from "../dom";
import {formatCount, formatNumber, formatPercent, formatShape} from "../format";
import {SortableTable} from "../sortable_table";
import {isBoolean, load, save} from "../storage";
import type {Context, View} from "../view";
import "./model.css";
import {featureText, isFrozen, lossName, modelNodes, shortCount, type ModelNode} from "./model_graph";
import {grouped} from "./model_groups";
import {ModelPicture} from "./model_picture";

const MANY_LAYERS = 30;  // of more, those without variables are folded at first
const FOLD_KEY = "model.fold";
const ZOOM = 1.25;
const MIN_SCALE = 0.15;
const MAX_SCALE = 2;
const LEAST_READABLE = 0.6;

interface Row {
  id: string;
  name: string;
  kind: string;
  inputs: string;
  output: string;
  parameters: number | undefined;
  operations: number | undefined;
  variables: string;
}

class ModelPage {
  private readonly message = h("p", {class: "message", testid: "model-message"}, "Loading…");
  private readonly content = h("div", {class: "stack", hidden: true});
  private readonly summary = h("p", {class: "muted small", testid: "model-summary"});
  private readonly fold = h("input", {type: "checkbox", testid: "model-fold", on: {change: () => {
    save(FOLD_KEY, this.fold.checked);
    this.draw();
  }}});
  private readonly scroll = h("div", {class: "model-scroll", on: {wheel: (event) => this.wheel(event)}});
  private readonly details = h("div", {class: "model-details", testid: "model-details", "aria-live": "polite"});
  private readonly table: SortableTable<Row>;
  private readonly observer = new ResizeObserver(() => this.fit());
  private readonly abort = new AbortController();
  private readonly ends: (() => void)[];
  private model: Model | undefined;
  private nodes = new Map<string, ModelNode>();
  private picture: ModelPicture | undefined;
  private scale: number | undefined;  // undefined: as wide as there is room
  private shownScale = 1;
  private chosen: string | undefined;

  constructor(root: HTMLElement, private readonly context: Context) {
    this.table = this.makeTable();
    const button = (text: string, label: string, testid: string, click: () => void) =>
      h("button", {type: "button", "aria-label": label, title: label, testid, on: {click}}, text);
    fill(this.content,
      h("div", {class: "model-columns"},
        h("section", {class: "card", "aria-labelledby": "model-heading"},
          h("header", null, h("h2", {id: "model-heading"}, "Model"), this.summary, h("span", {class: "spacer"}),
            h("label", {class: "small", title: "A layer without variables is drawn in the box of the layer before it, and layers that are alike, each of its own feature, in one"}, this.fold, "Fold"),
            button("−", "Smaller", "model-smaller", () => this.zoom(1 / ZOOM)), button("+", "Larger", "model-larger", () => this.zoom(ZOOM)),
            button("Fit", "As wide as there is room", "model-fit", () => { this.scale = undefined; this.fit(); })),
          this.scroll),
        h("section", {class: "card model-side", "aria-label": "The chosen layer"}, this.details)),
      h("section", {class: "card", "aria-labelledby": "model-table-heading"},
        h("header", null, h("h2", {id: "model-table-heading"}, "Layers")), this.table.element));
    fill(root, this.message, this.content);
    this.observer.observe(this.scroll);
    this.ends = [
      context.stream.on("hello", () => void this.load()),
      context.stream.on("status", (status) => {
        if (status.run === context.run && status.task !== undefined && this.model === undefined) void this.load();
      }),
    ];
    void this.load();
  }

  close(): void {
    this.abort.abort();
    this.observer.disconnect();
    for (const end of this.ends) end();
  }

  private async load(): Promise<void> {
    try {
      const model = await this.context.api.model(this.context.run, this.abort.signal);
      if (JSON.stringify(model) === JSON.stringify(this.model)) return;
      this.show(model);
    } catch (error) {
      if (isAbort(error) || this.model !== undefined) return;
      const unknown = error instanceof ApiError && error.status === 404;
      setText(this.message, unknown ? "The model is not known yet." : errorText(error));
      this.message.classList.toggle("bad", !unknown);
    }
  }

  private show(model: Model): void {
    this.model = model;
    this.message.hidden = true;
    this.content.hidden = false;
    this.fold.checked = load(FOLD_KEY, isBoolean) ?? model.layers.length > MANY_LAYERS;
    const isScripts = model.losses.length === 0;
    setText(this.summary, [model.name, `${formatCount(model.layers.length)} ${isScripts ? "modules" : "layers"}`, `${formatCount(model.parameters)} parameters`,
      isScripts ? "computed by a script" : `${shortCount(model.operations)} operations forward for an example`].filter((part) => part !== "").join(" · "));
    this.table.setRows(rowsOf(model));
    this.draw();
  }

  private draw(): void {
    if (this.model === undefined) return;
    const all = modelNodes(this.model, this.fold.checked);
    const nodes = this.fold.checked ? grouped(all) : all;
    this.nodes = new Map(nodes.map((node) => [node.id, node]));
    this.picture = new ModelPicture(nodes, {onHover: (id) => this.describe(id ?? this.chosen), onChoose: (id) => this.choose(id)});
    fill(this.scroll, this.picture.element);
    this.fit();
    this.scroll.scrollLeft = (this.scroll.scrollWidth - this.scroll.clientWidth) / 2;
    const first = nodes.find((node) => node.what === "layer")?.id;
    this.choose(this.chosen !== undefined && this.picture.has(this.chosen) ? this.chosen : first);
  }

  private choose(id: string | undefined): void {
    this.chosen = id;
    this.describe(id);
  }

  // The box in which the layer is, with its lines, and what it does.
  private describe(id: string | undefined): void {
    this.picture?.mark(id);
    const node = id === undefined ? undefined : this.nodes.get(id);
    if (node === undefined || this.model === undefined) {
      fill(this.details, h("p", {class: "muted"}, "Choose a layer."));
    } else {
      fill(this.details, ...describeNode(node, this.model, (name) => this.goTo(name)));
    }
  }

  // To the box of a feature or layer; of one that is folded, to the one in whose box it is.
  private goTo(name: string): void {
    const has = (node: ModelNode): boolean => node.what !== "loss" && (node.members?.some((member) => has(member)) ??
      (node.name === name || node.folded.some((layer) => layer.name === name)));
    const node = [...this.nodes.values()].find(has);
    if (node !== undefined) this.picture?.choose(node.id, true);
  }

  private fit(): void {
    if (this.picture === undefined) return;
    const room = this.scroll.clientWidth / this.picture.width;
    this.setScale(this.scale ?? Math.min(1, Math.max(LEAST_READABLE, room)));
  }

  private setScale(scale: number): void {
    this.shownScale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, scale));
    this.picture?.element.setAttribute("width", String(this.picture.width * this.shownScale));
    this.picture?.element.setAttribute("height", String(this.picture.height * this.shownScale));
  }

  // What is in the middle, or at the pointer, stays there.
  private zoom(factor: number, x = this.scroll.clientWidth / 2, y = this.scroll.clientHeight / 2): void {
    const before = this.shownScale;
    this.scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, before * factor));
    this.setScale(this.scale);
    const ratio = this.shownScale / before;
    this.scroll.scrollLeft = (this.scroll.scrollLeft + x) * ratio - x;
    this.scroll.scrollTop = (this.scroll.scrollTop + y) * ratio - y;
  }

  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = this.scroll.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }

  private makeTable(): SortableTable<Row> {
    const count = (value: number | undefined) => value === undefined ? "" : formatCount(value);
    return new SortableTable<Row>({
      testid: "model-layers", caption: "Features, layers and losses of the model", key: (row) => row.id,
      columns: [
        {id: "name", title: "Layer", cell: (row) => row.id.startsWith("loss:") ? row.name :
          h("button", {type: "button", class: "quiet", on: {click: () => this.goTo(row.name)}}, row.name)},
        {id: "kind", title: "Kind", sort: (row) => row.kind, cell: (row) => row.kind},
        {id: "inputs", title: "Inputs", cell: (row) => row.inputs},
        {id: "output", title: "Output", cell: (row) => row.output},
        {id: "parameters", title: "Parameters", number: true, sort: (row) => row.parameters, cell: (row) => count(row.parameters)},
        {id: "operations", title: "Operations", number: true, sort: (row) => row.operations, cell: (row) => count(row.operations)},
        {id: "variables", title: "Variables", cell: (row) => row.variables},
      ],
    });
  }
}

function rowsOf(model: Model): Row[] {
  const none = {inputs: "", output: "", parameters: undefined, operations: undefined, variables: ""};
  return [
    ...model.features.map((feature) => ({...none, id: `feature:${feature.name}`, name: feature.name, kind: "feature", output: featureText(feature)})),
    ...model.layers.map((layer) => ({
      id: `layer:${layer.name}`, name: layer.name, kind: layer.kind, inputs: layer.inputs.join(", "), output: layer.output_shape === undefined ? "" : formatShape(layer.output_shape),
      parameters: layer.parameters, operations: layer.operations,
      variables: layer.table !== undefined ? `rows of ${layer.table}` : layer.variables_of !== undefined ? `shared with ${layer.variables_of}` : isFrozen(layer) ? "frozen" : "",
    })),
    ...model.losses.map((loss, i) => ({
      ...none, id: `loss:${i}`, name: lossName(loss), kind: "loss", inputs: [...loss.inputs, loss.label, loss.log_probability_label ?? "", loss.record_weights ?? ""].filter((name) => name !== "").join(", "),
    })),
  ];
}

function describeNode(node: ModelNode, model: Model, goTo: (name: string) => void): HTMLElement[] {
  const link = (name: string) => h("button", {type: "button", class: "quiet link", on: {click: () => goTo(name)}}, name);
  const users = (name: string) => [...model.layers.filter((layer) => layer.inputs.includes(name)).map((layer) => link(layer.name)),
    ...model.losses.filter((loss) => loss.inputs.includes(name)).map((loss) => h("span", null, lossName(loss)))];
  const facts = (rows: [string, Child[]][]) => h("dl", {class: "facts"}, ...rows.filter(([, value]) => value.length > 0)
    .flatMap(([name, value]) => [h("dt", null, name), h("dd", null, ...value)]));
  const title = h("h3", null, node.name);
  if (node.members !== undefined) {
    return [title, h("p", {class: "formula"}, model.formulas[node.layer?.kind ?? ""] ?? ""), facts([
      ["Taken by", [...new Set(node.members.flatMap((member) => model.layers.filter((layer) => layer.inputs.includes(member.name)).map((layer) => layer.name)))]
        .map(link)],
      ["Each", node.members.map((member) => h("div", null, h("strong", null, member.name), ` ${member.lines.join(", ")}`))]])];
  }
  if (node.feature !== undefined) {
    const text = node.feature.kind === "numbers" ? "numbers" : featureText(node.feature);
    return [title, h("p", {class: "muted small"}, `feature: ${text}`), facts([
      ["Shape", node.feature.kind === "numbers" ? [formatShape(node.feature.shape)] : []], ["Taken by", users(node.name)]])];
  }
  if (node.loss !== undefined) {
    const loss = node.loss;
    return [title, h("p", {class: "muted small"}, "loss"), facts([
      ["Inputs", loss.inputs.map(link)], ["Label", [loss.label]], ["Weight", [formatNumber(loss.weight)]],
      ["Delta", loss.delta === undefined ? [] : [formatNumber(loss.delta)]],
      ["Temperature", loss.temperature === undefined ? [] : [formatNumber(loss.temperature)]],
      ["Logarithms of probabilities", loss.log_probability_label === undefined ? [] : [loss.log_probability_label]],
      ["Records' weights", loss.record_weights === undefined ? [] : [loss.record_weights]]])];
  }
  return [node.layer!, ...node.folded].flatMap((layer) => [
    h("h3", null, layer.name), h("p", {class: "muted small"}, layer.kind),
    h("p", {class: "formula"}, model.formulas[layer.kind] ?? ""),
    facts([
      ["Settings", layer.settings === undefined ? [] : [h("code", null, layer.settings)]],
      ["Inputs", layer.inputs.map(link)], ["Output", layer.output_shape === undefined ? [] : [formatShape(layer.output_shape)]], ["Taken by", users(layer.name)],
      ["Parameters", layer.variables.length === 0 ? [] : [formatCount(layer.parameters), share(layer.parameters, model.parameters)]],
      ["Operations", model.operations === 0 ? [] : [formatCount(layer.operations), share(layer.operations, model.operations)]],
      ["Variables", variables(layer, link)],
      ["Table", layer.table === undefined ? [] : [tableText(layer.table, model)]]])]);
}

function share(part: number, whole: number): Child {
  return part > 0 && part < whole ? h("span", {class: "muted"}, ` ${formatPercent(part / whole)}`) : null;
}

// "users, any rows of 16": a table has a row for each id that has come.
function tableText(name: string, model: Model): string {
  const table = model.tables.find((other) => other.name === name);
  return table === undefined ? name : `${name}, any rows of ${formatCount(table.dim)}`;
}

function variables(layer: ModelLayer, link: (name: string) => HTMLElement): Child[] {
  const note = {optimizer: "", frozen: "frozen", average: "moving average"};
  return [
    ...layer.variables.map((variable) => h("div", null, h("code", null, variable.name), ` ${formatShape(variable.shape)} `,
      note[variable.update] === "" ? null : h("span", {class: "tag"}, note[variable.update]))),
    ...(layer.variables_of === undefined ? [] : [h("div", null, "those of ", link(layer.variables_of))]),
  ];
}

export const model: View = {
  id: "model",
  title: "Model",
  mount: (root, context) => new ModelPage(root, context),
};
