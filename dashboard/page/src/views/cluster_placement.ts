// The placement of the variables: a bar per server, and the table of variables.

import type {Placement} from "../api";
import {h, setAttribute} from "../dom";
import {formatBytes, formatNumber, formatPercent, formatShape} from "../format";
import {SortableTable} from "../sortable_table";
import {nameOf, shardPieces, type ShardPiece} from "./cluster_model";
import type {Tip} from "./cluster_tip";

type Variable = Placement["variables"][number];

const COLORS = 8;
// A server's smaller pieces share one piece of the bar: they could not be told apart.
const PIECES_PER_BAR = 40;

export class PlacementCard {
  readonly element = h("section", {class: "card placement", testid: "placement", "aria-labelledby": "placement-title"});
  private placement: Placement | undefined;

  constructor(private readonly tip: Tip) {}

  show(placement: Placement): void {
    if (JSON.stringify(placement) === JSON.stringify(this.placement)) return;
    const most = Math.max(...placement.shards.map((shard) => shard.bytes), 1);
    const bars = shardPieces(placement).map((pieces, i) => this.bar(placement, i, pieces, most));
    this.element.replaceChildren(
      h("header", null, h("h3", {id: "placement-title"}, "Variables on the servers"),
        h("span", {class: "spacer"}),
        h("span", {class: "muted small", testid: "balance"},
          `largest server ${formatNumber(placement.balance, 3)} × the mean`)),
      h("div", {class: "shards"}, ...bars),
      this.table(placement));
    this.placement = placement;
  }

  // Shows a reason instead of the placement.
  explain(why: string): void {
    this.placement = undefined;
    this.element.replaceChildren(h("header", null, h("h3", {id: "placement-title"}, "Variables on the servers")),
      h("p", {class: "message bad", testid: "placement-message"}, why));
    this.element.hidden = false;
  }

  private bar(placement: Placement, index: number, pieces: readonly ShardPiece[], most: number): HTMLElement {
    const shard = placement.shards[index]!;
    const own = pieces.slice(0, PIECES_PER_BAR);
    const rest = pieces.slice(PIECES_PER_BAR).reduce((sum, piece) => sum + piece.bytes, 0);
    const bar = h("div", {class: "shard-bar", role: "img", tabindex: 0,
      "aria-label": `${nameOf(shard)}: ${formatBytes(shard.bytes)}, ${pieces.length} pieces`});
    bar.style.width = `${100 * shard.bytes / most}%`;
    for (const piece of own) {
      const element = h("span", {class: `piece piece-${1 + piece.number % COLORS}`, "data-variable": piece.number});
      element.style.flexGrow = String(piece.bytes);
      element.addEventListener("mouseenter", () => this.highlight(piece.number));
      element.addEventListener("mouseleave", () => this.highlight(undefined));
      bar.append(element);
    }
    if (rest > 0) {
      const element = h("span", {class: "piece"});
      element.style.flexGrow = String(rest);
      bar.append(element);
    }
    this.tip.attach(bar, () => [pieceTable(pieces, shard.bytes)]);
    return h("div", {class: "shard"}, h("span", {class: "shard-name"}, nameOf(shard)), h("div", {class: "shard-track"}, bar),
      h("span", {class: "number small"}, formatBytes(shard.bytes)));
  }

  private table(placement: Placement): HTMLElement {
    const places = new Map(placement.variables.map((variable, i) => [variable, i]));
    const table = new SortableTable<Variable>({
      testid: "variables", caption: "Variables, their sizes and where they are",
      key: (variable) => variable.name,
      columns: [
        {
          id: "name", title: "Variable", sort: (variable) => variable.name,
          cell: (variable) => [h("span", {class: `patch piece-${1 + places.get(variable)! % COLORS}`}), h("code", null, variable.name)],
        },
        {id: "shape", title: "Shape", number: true, cell: (variable) => formatShape(variable.shape)},
        {id: "bytes", title: "Size", number: true, sort: (variable) => variable.bytes, cell: (variable) => formatBytes(variable.bytes)},
        {id: "where", title: "Where", cell: (variable) => whereText(placement, variable)},
      ],
      onRow: (element, variable) => setAttribute(element, "data-variable", places.get(variable)),
    });
    table.setRows(placement.variables);
    const room = h("div", {class: "variables"}, table.element);
    room.addEventListener("mouseover", (event) => {
      const row = (event.target as Element).closest("tr[data-variable]");
      this.highlight(row === null ? undefined : Number(row.getAttribute("data-variable")));
    });
    room.addEventListener("mouseleave", () => this.highlight(undefined));
    return room;
  }

  // The pieces of one variable stand out in the bars, and its row in the table.
  private highlight(variable: number | undefined): void {
    for (const element of this.element.querySelectorAll("[data-variable]")) {
      const same = variable !== undefined && element.getAttribute("data-variable") === String(variable);
      element.classList.toggle("highlight", same);
      element.classList.toggle("dimmed", variable !== undefined && !same && element.classList.contains("piece"));
    }
  }
}

const PIECES_IN_TIP = 12;

function pieceTable(pieces: readonly ShardPiece[], total: number): HTMLElement {
  const more = pieces.length - PIECES_IN_TIP;
  return h("table", null, h("tbody", null,
    ...pieces.slice(0, PIECES_IN_TIP).map((piece) => h("tr", null,
      h("th", {scope: "row"}, h("span", {class: `patch piece-${1 + piece.number % COLORS}`}), piece.variable),
      h("td", {class: "muted"}, piece.rows),
      h("td", {class: "number"}, formatBytes(piece.bytes)),
      h("td", {class: "number"}, formatPercent(total > 0 ? piece.bytes / total : 0)))),
    more > 0 ? h("tr", null, h("td", {colspan: 4, class: "muted"}, `and ${more} smaller ones`)) : null));
}

function whereText(placement: Placement, variable: Variable): string {
  const name = (number: number) => {
    const shard = placement.shards[number];
    return shard === undefined ? `shard ${number}` : nameOf(shard);
  };
  if (variable.partitions.length === 1) return name(variable.partitions[0]!.shard);
  return variable.partitions.map((part) => `${name(part.shard)} rows ${part.row_begin}–${part.row_end - 1}`).join(", ");
}
