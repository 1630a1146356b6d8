// The picture of a model's graph: boxes that the pointer and the keyboard reach, and lines between them.

import {s} from "../dom";
import {layOut, type Box, type Layout, type Piece, type Placed} from "./model_layout";
import type {ModelNode} from "./model_graph";

const NAME_CHARACTER = 8;  // pixels, of a bold one
const CHARACTER = 6.7;
const PADDING = 13;
const LINE = 17;
const MIN_WIDTH = 110;
const MAX_WIDTH = 230;
const ARROW = 5;

export interface PictureEvents {
  // The pointer is on the box, or nowhere.
  onHover: (id: string | undefined) => void;
  onChoose: (id: string) => void;
}

export class ModelPicture {
  readonly element: SVGSVGElement;
  readonly width: number;
  readonly height: number;
  private readonly layout: Layout;
  private readonly boxes = new Map<string, SVGGElement>();
  private readonly lines: {piece: Piece; element: SVGPathElement}[];
  private readonly nodes: Map<string, ModelNode>;
  private readonly outputs = new Map<string, string[]>();
  private readonly boxWidth: number;
  private chosen: string | undefined;

  constructor(nodes: readonly ModelNode[], private readonly events: PictureEvents) {
    this.nodes = new Map(nodes.map((node) => [node.id, node]));
    for (const node of nodes) {
      for (const input of node.inputs) this.outputs.set(input, [...(this.outputs.get(input) ?? []), node.id]);
    }
    this.boxWidth = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, ...nodes.map(wantedWidth)));
    this.layout = layOut(nodes.map((node): Box => ({
      id: node.id, inputs: node.inputs, width: this.boxWidth, height: heightOf(node), last: node.what === "loss"})));
    this.width = this.layout.width;
    this.height = this.layout.height;
    this.lines = this.layout.pieces.map((piece) => ({piece, element: s("path", {class: "model-line", d: pathOf(piece)})}));
    this.element = s("svg", {
      class: "model-picture", viewBox: `0 0 ${this.width} ${this.height}`, role: "group", testid: "model-graph",
      "aria-label": "Graph of the model. Arrow keys go along its lines and along a row; the table below says the same.",
    }, ...this.sharing(), ...this.lines.map((line) => line.element), ...this.lines.flatMap(({piece}) => arrow(piece) ?? []),
    ...nodes.map((node) => this.draw(node)));
    const first = nodes[0];
    if (first !== undefined) this.setStop(first.id);
  }

  has(id: string): boolean {
    return this.boxes.has(id);
  }

  // Marks the box, its lines and their other ends.
  mark(id: string | undefined): void {
    const inputs = new Set(id === undefined ? [] : this.nodes.get(id)?.inputs);
    const rank = id === undefined ? -1 : this.layout.boxes.get(id)?.rank ?? -1;
    for (const {piece, element} of this.lines) {
      const into = inputs.has(piece.source) && (piece.target === id || (piece.target === undefined && piece.rank + 1 < rank));
      element.classList.toggle("marked", id !== undefined && (piece.source === id || into));
    }
    for (const [other, box] of this.boxes) box.classList.toggle("marked", other === id);
  }

  // Makes it the box at which the keyboard is.
  choose(id: string, focus: boolean): void {
    this.setStop(id);
    const box = this.boxes.get(id);
    if (focus) box?.focus();
    box?.scrollIntoView({block: "nearest", inline: "nearest"});
  }

  private setStop(id: string): void {
    if (this.chosen !== undefined) this.boxes.get(this.chosen)?.setAttribute("tabindex", "-1");
    this.chosen = id;
    this.boxes.get(id)?.setAttribute("tabindex", "0");
  }

  private draw(node: ModelNode): SVGGElement {
    const place = this.layout.boxes.get(node.id)!;
    const left = place.x - this.boxWidth / 2;
    const height = heightOf(node);
    const box = s("g", {
      class: `model-box ${node.what}${node.frozen ? " frozen" : ""}`, transform: `translate(${left} ${place.y})`, tabindex: -1,
      role: "button", "aria-label": `${node.what} ${node.name}: ${node.lines.join(", ")}`, testid: `model-${node.id}`,
    }, s("rect", {width: this.boxWidth, height, rx: node.what === "layer" ? 5 : 14}),
    s("text", {class: "model-name", x: PADDING, y: 19}, shortened(node.name, (this.boxWidth - 2 * PADDING) / NAME_CHARACTER)),
    ...node.lines.map((line, i) => s("text", {x: PADDING, y: 19 + LINE * (i + 1)},
      shortened(line, (this.boxWidth - 2 * PADDING) / CHARACTER))));
    if (node.layer !== undefined && node.layer.variables.length > 0) {
      box.append(s("path", {class: "model-stripe", d: `M5 6 V${height - 6}`}));
    }
    box.addEventListener("pointerenter", () => this.events.onHover(node.id));
    box.addEventListener("pointerleave", () => this.events.onHover(undefined));
    box.addEventListener("focus", () => {
      this.setStop(node.id);
      this.events.onChoose(node.id);
    });
    box.addEventListener("keydown", (event) => this.move(event, node.id));
    this.boxes.set(node.id, box);
    return box;
  }

  // Dashed lines between layers that share variables.
  private sharing(): SVGPathElement[] {
    return [...this.nodes.values()].flatMap((node) => {
      const from = this.layout.boxes.get(node.id)!;
      const to = node.sharedWith === undefined ? undefined : this.layout.boxes.get(node.sharedWith);
      if (to === undefined) return [];
      const side = to.x < from.x ? -1 : 1;
      const x1 = from.x + side * this.boxWidth / 2;
      const x2 = to.x - side * this.boxWidth / 2;
      const y1 = from.y + heightOf(node) / 2;
      const y2 = to.y + heightOf(this.nodes.get(node.sharedWith!)!) / 2;
      return [s("path", {class: "model-shared", d: to.x === from.x ? `M${x1} ${y1} C${x1 + 40} ${y1} ${x1 + 40} ${y2} ${x1} ${y2}` :
        `M${x1} ${y1} C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`})];
    });
  }

  private move(event: KeyboardEvent, from: string): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const to = this.neighbour(event.key, from);
    if (to === undefined) return;
    event.preventDefault();
    this.choose(to, true);
  }

  private neighbour(key: string, from: string): string | undefined {
    const place = this.layout.boxes.get(from)!;
    const nearest = (ids: readonly string[]) => [...ids].sort((a, b) => this.distance(a, place) - this.distance(b, place))[0];
    const row = [...this.layout.boxes.values()].filter((other) => other.rank === place.rank).sort((a, b) => a.x - b.x);
    const at = row.findIndex((other) => other.id === from);
    const all = [...this.nodes.keys()];
    switch (key) {
      case "ArrowDown": return nearest(this.outputs.get(from) ?? []);
      case "ArrowUp": return nearest(this.nodes.get(from)!.inputs);
      case "ArrowLeft": return row[at - 1]?.id;
      case "ArrowRight": return row[at + 1]?.id;
      case "Home": return all[0];
      case "End": return all.at(-1);
      default: return undefined;
    }
  }

  private distance(id: string, place: Placed): number {
    const other = this.layout.boxes.get(id)!;
    return Math.abs(other.rank - place.rank) * this.boxWidth + Math.abs(other.x - place.x);
  }
}

function wantedWidth(node: ModelNode): number {
  return 2 * PADDING + Math.ceil(Math.max(node.name.length * NAME_CHARACTER, ...node.lines.map((line) => line.length * CHARACTER)));
}

function heightOf(node: ModelNode): number {
  return 30 + LINE * node.lines.length;
}

function shortened(text: string, characters: number): string {
  return text.length <= characters + 0.5 ? text : `${text.slice(0, Math.max(1, Math.floor(characters) - 1))}…`;
}

function pathOf(piece: Piece): string {
  const end = piece.target === undefined ? piece.toY : piece.toY - ARROW;
  const bend = (end - piece.fromY) / 2;
  const curve = `M${piece.fromX} ${piece.fromY} C${piece.fromX} ${piece.fromY + bend} ${piece.toX} ${end - bend} ${piece.toX} ${end}`;
  return piece.pastY === undefined ? curve : `${curve} V${piece.pastY}`;
}

function arrow(piece: Piece): SVGPathElement | undefined {
  if (piece.target === undefined) return undefined;
  return s("path", {class: "model-arrow", d: `M${piece.toX} ${piece.toY} l-3.5 ${-ARROW - 1} h7 z`});
}
