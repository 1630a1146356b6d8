// What a report says of the metrics of retrieval.

import type {Ranking, Report} from "../api";
import {h} from "../dom";
import {formatCount} from "../format";
import {SortableTable} from "../sortable_table";

// Null where no metric is one of retrieval.
export function rankingTable(report: Report): HTMLElement | null {
  const rows = report.retrieval ?? [];
  if (rows.length === 0) return null;
  const names = (row: Ranking) => row.metrics.join(", ");
  const count = (id: "items" | "queries", title: string) => ({
    id, title, number: true, sort: (row: Ranking) => row[id], cell: (row: Ranking) => formatCount(row[id]),
  });
  const table = new SortableTable<Ranking>({
    testid: "retrieval", caption: "How many items are ranked for how many queries", key: names,
    columns: [{id: "metrics", title: "Metrics", sort: names, cell: names}, count("items", "Items"), count("queries", "Queries")],
  });
  table.setRows([...rows]);
  return h("section", {class: "card", "aria-labelledby": "retrieval-title"},
    h("header", null, h("h3", {id: "retrieval-title"}, "Retrieval")), table.element);
}
