import {h, keyed, setAttribute, setText, type Child} from "./dom";

export interface Column<Row> {
  id: string;
  title: string;
  // Numbers are at the right, and sorted downwards first.
  number?: boolean;
  // The value by which the column is sorted; absent: it cannot be sorted. Missing values (null,
  // undefined) come last.
  sort?: (row: Row) => number | string | null | undefined;
  // The cell: text, or nodes that are recreated when the cell's text or `version` changes.
  cell: (row: Row) => Child | Child[];
  // Changes when the nodes that `cell` returns would.
  version?: (row: Row) => string;
}

export interface TableOptions<Row> {
  testid: string;
  // Read by screen readers.
  caption: string;
  key: (row: Row) => string;
  columns: Column<Row>[];
  sortBy?: {column: string; descending: boolean};
  onRow?: (element: HTMLTableRowElement, row: Row) => void;
}

// A table that is sorted by a click on a heading; rows stay the same elements over updates.
export class SortableTable<Row> {
  readonly element: HTMLElement;
  private readonly head = h("thead");
  private readonly body = h("tbody");
  private rows: Row[] = [];
  private columns: Column<Row>[];
  private sortBy: {column: string; descending: boolean} | undefined;

  constructor(private readonly options: TableOptions<Row>) {
    this.columns = options.columns;
    this.sortBy = options.sortBy;
    const table = h("table", {class: "data", testid: options.testid},
      h("caption", {class: "visually-hidden"}, options.caption), this.head, this.body);
    this.element = h("div", {class: "scroll"}, table);
    this.drawHead();
  }

  setRows(rows: Row[]): void {
    this.rows = rows;
    this.drawBody();
  }

  // Does nothing where the columns are the same ones.
  setColumns(columns: Column<Row>[]): void {
    const same = columns.map((column) => column.id).join() === this.columns.map((column) => column.id).join();
    this.columns = columns;
    if (!same) {
      this.body.replaceChildren();
      this.drawHead();
    }
  }

  private drawHead(): void {
    this.head.replaceChildren(h("tr", null, ...this.columns.map((column) => this.heading(column))));
    this.markSorted();
  }

  private heading(column: Column<Row>): HTMLElement {
    const props = {scope: "col", class: column.number ? "number" : undefined, "data-column": column.id};
    if (column.sort === undefined) return h("th", props, column.title);
    return h("th", props, h("button", {
      class: "sort", type: "button", testid: `${this.options.testid}-sort-${column.id}`,
      on: {click: () => this.toggle(column)},
    }, column.title));
  }

  private toggle(column: Column<Row>): void {
    const descending = this.sortBy?.column === column.id ? !this.sortBy.descending : column.number === true;
    this.sortBy = {column: column.id, descending};
    this.markSorted();
    this.drawBody();
  }

  private markSorted(): void {
    for (const heading of this.head.querySelectorAll("th")) {
      const sorted = heading.getAttribute("data-column") === this.sortBy?.column;
      setAttribute(heading, "aria-sort", sorted ? (this.sortBy?.descending ? "descending" : "ascending") : undefined);
    }
  }

  private drawBody(): void {
    keyed(this.body, this.sorted(), this.options.key, () => h("tr"), (element, row) => {
      this.drawRow(element, row);
      this.options.onRow?.(element, row);
    });
  }

  private drawRow(element: HTMLTableRowElement, row: Row): void {
    for (const [i, column] of this.columns.entries()) {
      const cell = element.cells[i] ?? element.appendChild(
        h("td", {class: column.number ? "number" : undefined, "data-column": column.id}));
      const content = column.cell(row);
      if (!Array.isArray(content) && !(content instanceof Node)) {
        setText(cell, content === null || content === undefined || content === false ? "" : String(content));
        continue;
      }
      const nodes = (Array.isArray(content) ? content : [content])
        .filter((child) => child !== null && child !== undefined && child !== false)
        .map((child) => child instanceof Node ? child : document.createTextNode(String(child)));
      const version = column.version?.(row) ?? nodes.map((node) => node.textContent).join("\n");
      if (cell.dataset["version"] !== version) {
        cell.dataset["version"] = version;
        cell.replaceChildren(...nodes);
      }
    }
  }

  private sorted(): Row[] {
    const column = this.columns.find((candidate) => candidate.id === this.sortBy?.column);
    const value = column?.sort;
    if (value === undefined) return this.rows;
    const sign = this.sortBy?.descending ? -1 : 1;
    return [...this.rows].sort((left, right) => compare(value(left), value(right), sign));
  }
}

function compare(left: number | string | null | undefined, right: number | string | null | undefined, sign: number): number {
  const leftMissing = left === null || left === undefined;
  const rightMissing = right === null || right === undefined;
  if (leftMissing || rightMissing) return Number(leftMissing) - Number(rightMissing);
  if (typeof left === "number" && typeof right === "number") return sign * (left - right);
  return sign * String(left).localeCompare(String(right), "en", {numeric: true});
}
