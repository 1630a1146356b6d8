// The embedding tables that the servers hold: their rows and memory.

import type {ClusterTable} from "../api";
import {h} from "../dom";
import {formatBytes, formatCount, formatNumber} from "../format";
import {hottestText, idsPerDistinct, shareWithoutRow} from "./cluster_model";
import {SortableTable} from "../sortable_table";

// A bar for each server, as high as its rows are many.
function serverBars(table: ClusterTable): HTMLElement {
  const servers = table.servers ?? [];
  const most = Math.max(1, ...servers.map(({rows}) => rows ?? 0));
  const texts = servers.map(({task, rows, bytes}) => `${task}: ${formatCount(rows)} rows, ${formatBytes(bytes)}`);
  return h("span", {class: "server-rows", role: "img", title: texts.join("\n"), "aria-label": texts.join("; ")},
    ...servers.map(({rows}) => {
      const bar = h("span");
      bar.style.height = `${100 * (rows ?? 0) / most}%`;
      return bar;
    }));
}

export class TablesCard {
  readonly element = h("section", {class: "card tables", testid: "tables", "aria-labelledby": "tables-title", hidden: true});
  private readonly table = new SortableTable<ClusterTable>({
    testid: "embedding-tables", caption: "Embedding tables, their rows and memory",
    key: (table) => table.name,
    columns: [
      {id: "name", title: "Table", sort: (table) => table.name, cell: (table) => h("code", null, table.name)},
      {id: "rows", title: "Rows", number: true, sort: (table) => table.rows, cell: (table) => formatCount(table.rows)},
      {id: "bytes", title: "Memory", number: true, sort: (table) => table.bytes, cell: (table) => formatBytes(table.bytes)},
      {id: "dim", title: "Dim", number: true, cell: (table) => formatCount(table.dim)},
      {id: "servers", title: "Rows by server", cell: (table) => serverBars(table)},
      {
        id: "balance", title: "Most rows of a server × mean", number: true,
        cell: (table) => formatNumber(table.balance, 3),
      },
      {
        id: "refused", title: "Refused rows", number: true,
        cell: (table) => h("span", {class: (table.refused_rows ?? 0) > 0 ? "bad" : ""}, formatCount(table.refused_rows)),
      },
      {id: "ghosts", title: "Ids without a row yet", number: true, cell: (table) => formatCount(table.ghosts)},
      {id: "admitted", title: "Admitted", number: true, cell: (table) => formatCount(table.admitted_rows)},
      {id: "expired", title: "Expired", number: true, cell: (table) => formatCount(table.expired_rows)},
      {id: "evicted", title: "Evicted", number: true, cell: (table) => formatCount(table.evicted_rows)},
      {id: "absent", title: "Look-ups without a row", number: true, cell: (table) => shareWithoutRow(table)},
      {id: "repeated", title: "Ids × distinct in a step", number: true, cell: (table) => idsPerDistinct(table)},
      {
        id: "hottest", title: "Id in most pushes",
        cell: (table) => h("span", {title: hottestText(table)}, table.hottest?.[0]?.id ?? ""),
      },
    ],
  });

  constructor() {
    this.element.append(h("header", null, h("h3", {id: "tables-title"}, "Tables on the servers")), this.table.element);
  }

  // Hides itself where there are none.
  show(tables: ClusterTable[]): void {
    this.element.hidden = tables.length === 0;
    this.table.setRows(tables);
  }
}
