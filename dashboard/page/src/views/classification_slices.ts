// How good a binary model's probabilities are by the ids of a feature, and by how often ids come.

import type {Report, Slice} from "../api";
import {h} from "../dom";
import {formatCount, formatFixed, formatPercent} from "../format";
import {SortableTable} from "../sortable_table";
import {sliceRows, type SliceRow} from "./classification_model";

function tableOf(testid: string, caption: string, title: string, rows: readonly SliceRow[]): HTMLElement {
  const share = (id: "share" | "probability", text: string) => ({
    id, title: text, number: true, sort: (row: SliceRow) => row[id], cell: (row: SliceRow) => formatPercent(row[id], 2),
  });
  const figure = (id: "loss" | "normalized_entropy", text: string) => ({
    id, title: text, number: true, sort: (row: SliceRow) => row[id], cell: (row: SliceRow) => formatFixed(row[id], 4),
  });
  const table = new SortableTable<SliceRow>({
    testid, caption, key: (row) => row.name,
    columns: [
      {id: "name", title, sort: (row) => row.order, cell: (row) => row.name},
      {id: "examples", title: "Examples", number: true, sort: (row) => row.examples, cell: (row) => formatCount(row.examples)},
      share("share", "Share of 1"), share("probability", "Probability of 1"), figure("loss", "Log loss"),
      figure("normalized_entropy", "Normalised entropy"),
    ],
  });
  table.setRows([...rows]);
  return table.element;
}

// Null where no feature is an id.
export function sliceTables(report: Report): HTMLElement | null {
  const slices = report.slices ?? [];
  const first = slices[0];
  if (first === undefined) return null;
  const content = h("div", {class: "stack"});
  const show = (slice: Slice) => {
    const {values, frequencies} = sliceRows(slice);
    content.replaceChildren(
      tableOf("slice-values", `The most frequent of ${formatCount(slice.ids)} ids of ${slice.feature}`, "Id", values),
      tableOf("slice-frequencies", `Ids of ${slice.feature} by the number of their examples`, "Examples of an id", frequencies));
  };
  const chooser = h("select", {
    testid: "slice-feature", "aria-label": "Feature",
    on: {change: () => show(slices[chooser.selectedIndex] ?? first)},
  }, ...slices.map(({feature}) => h("option", null, feature)));
  show(first);
  return h("section", {class: "card", "aria-labelledby": "slices-title"},
    h("header", null, h("h3", {id: "slices-title"}, "By the values of a feature"), h("span", {class: "spacer"}), chooser), content);
}
