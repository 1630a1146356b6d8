import {deepEqual, equal, ok} from "node:assert/strict";
import {test} from "node:test";
import {layOut, type Box, type Layout} from "../src/views/model_layout";

const WIDTH = 100;
const HEIGHT = 40;

// "b: a c" is a box b that takes a and c.
function boxes(...texts: string[]): Box[] {
  return texts.map((text) => {
    const [id, inputs = ""] = text.split(":");
    return {id: id!, inputs: inputs.split(" ").filter((input) => input !== ""), width: WIDTH, height: HEIGHT};
  });
}

function x(layout: Layout, id: string): number {
  return layout.boxes.get(id)!.x;
}

function rank(layout: Layout, id: string): number {
  return layout.boxes.get(id)!.rank;
}

// Nothing overlaps, all is within the picture, and each line leads downwards from its box.
function check(layout: Layout, list: readonly Box[]): void {
  const placed = [...layout.boxes.values()];
  equal(placed.length, list.length);
  for (const box of placed) {
    ok(box.x - WIDTH / 2 >= 0 && box.x + WIDTH / 2 <= layout.width && box.y >= 0 && box.y + HEIGHT <= layout.height, box.id);
  }
  placed.sort((a, b) => a.rank - b.rank || a.x - b.x);
  placed.slice(1).forEach((box, i) => ok(box.rank > placed[i]!.rank || box.x - placed[i]!.x >= WIDTH - 1e-6, `${placed[i]!.id} ${box.id}`));
  for (const box of list) {
    for (const input of box.inputs) {
      ok(rank(layout, input) < rank(layout, box.id));
      ok(layout.pieces.some((piece) => piece.source === input && piece.target === box.id), `${input} to ${box.id}`);
    }
  }
  for (const piece of layout.pieces) ok(piece.toY > piece.fromY);
}

test("a chain is a column", () => {
  const chain = boxes("a", "b: a", "c: b", "d: c");
  const layout = layOut(chain);
  check(layout, chain);
  deepEqual(chain.map((box) => x(layout, box.id) - x(layout, "a")), [0, 0, 0, 0]);
  equal(layout.pieces.length, 3);
});

test("a residual network keeps its column, and what is skipped passes beside it", () => {
  const list = boxes("in", "a: in", "b: a", "sum: b in", "c: sum", "d: c", "sum2: d sum");
  const layout = layOut(list);
  check(layout, list);
  for (const box of list) ok(Math.abs(x(layout, box.id) - x(layout, "in")) < 5, box.id);
  const skip = layout.pieces.filter((piece) => piece.source === "in" && piece.pastY !== undefined);
  ok(skip.length > 0 && skip.every((piece) => Math.abs(piece.toX - x(layout, "in")) > WIDTH / 2));
});

test("towers stand side by side, and what joins them is between", () => {
  const list = boxes("user", "item", "a: user", "b: item", "c: a", "d: b", "match: c d");
  const layout = layOut(list);
  check(layout, list);
  equal(x(layout, "user"), x(layout, "c"));
  equal(x(layout, "item"), x(layout, "d"));
  ok(Math.abs(x(layout, "match") - (x(layout, "c") + x(layout, "d")) / 2) < 1e-6);
});

test("lines do not cross where they need not", () => {
  const list = boxes("a", "b", "c", "to_c: c", "to_b: b", "to_a: a");
  const layout = layOut(list);
  check(layout, list);
  for (const name of ["a", "b", "c"]) equal(x(layout, name), x(layout, `to_${name}`));
});

test("losses are at the bottom", () => {
  const list = [...boxes("a", "b: a", "c: b", "d: c"), {...boxes("early: a")[0]!, last: true}, {...boxes("late: d")[0]!, last: true}];
  const layout = layOut(list);
  check(layout, list);
  equal(rank(layout, "early"), 4);
  equal(rank(layout, "late"), 4);
});

test("a box that takes another twice has one line to it", () => {
  const list = boxes("a", "square: a a");
  const layout = layOut(list);
  check(layout, list);
  equal(layout.pieces.length, 1);
});

test("nothing at all", () => equal(layOut([]).boxes.size, 0));

// Each layer takes the three before it, and each tenth one of 50 features: 250 boxes.
test("250 boxes with many lines are placed in less than a second", () => {
  const features = Array.from({length: 50}, (_, i) => `f${i}`);
  const list = boxes(...features, ...Array.from({length: 200}, (_, i) => {
    const before = [1, 2, 3].map((back) => i - back).filter((j) => j >= 0).map((j) => `l${j}`);
    return `l${i}: ${[...before, ...(i < 50 ? [`f${i}`] : [])].join(" ")}`;
  }));
  const start = performance.now();
  const layout = layOut(list);
  const milliseconds = performance.now() - start;
  check(layout, list);
  ok(milliseconds < 1000, `${milliseconds} ms`);
});
