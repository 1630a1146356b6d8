// Places the boxes of a graph in ranks, from top to bottom, with straight lines where that is possible. After Sugiyama, Tagawa and
// Toda, "Methods for visual understanding of hierarchical system structures", IEEE Trans. SMC 11(2), 1981.

export interface Box {
  id: string;
  inputs: readonly string[];  // ids of boxes that stand before it in the list
  width: number;
  height: number;
  // At the bottom, below all others.
  last?: boolean;
}

export interface Placed {
  id: string;
  x: number;  // of the middle
  y: number;  // of the upper edge
  rank: number;
}

// A piece of the lines that leave a box: from rank to rank.
export interface Piece {
  source: string;
  // The box where it ends; undefined: it goes on in the next rank.
  target: string | undefined;
  rank: number;  // where it begins
  fromX: number;
  fromY: number;
  toX: number;
  toY: number;
  // Where a piece that goes on runs straight to, past its rank's boxes.
  pastY: number | undefined;
}

export interface Layout {
  boxes: Map<string, Placed>;
  pieces: Piece[];
  width: number;
  height: number;
}

const GAP = 22;       // between boxes of a rank
const RANK_GAP = 34;  // between ranks
const MARGIN = 12;
const LINE_WIDTH = 10;  // of a line that passes a rank
const SWEEPS = 12;
// A line gives way to boxes: they stay in their column.
const LINE_WEIGHT = 1e-4;

// A box, or a place where the lines of a box pass a rank.
interface Item {
  box: Box | undefined;
  source: number;  // whose lines pass; of a box: itself
  rank: number;
  width: number;
  weight: number;
  x: number;
  order: number;
  up: Item[];
  down: Item[];
}

export function layOut(boxes: readonly Box[]): Layout {
  const ranks = makeRanks(boxes);
  orderRanks(ranks);
  placeInRanks(ranks);
  return measured(ranks);
}

function rankOf(boxes: readonly Box[], number: Map<string, number>): number[] {
  const ranks: number[] = [];
  for (const box of boxes) {
    ranks.push(Math.max(0, ...box.inputs.map((input) => ranks[number.get(input)!]! + 1)));
  }
  const bottom = Math.max(0, ...ranks);
  return ranks.map((rank, i) => boxes[i]!.last ? bottom : rank);
}

// The lines of a box that reach several ranks down are one, from which each box takes its own.
function makeRanks(boxes: readonly Box[]): Item[][] {
  const number = new Map(boxes.map((box, i) => [box.id, i]));
  const rank = rankOf(boxes, number);
  const ranks: Item[][] = Array.from({length: Math.max(0, ...rank.map((r) => r + 1))}, () => []);
  const items = boxes.map((box, i) => item(box, i, rank[i]!, box.width, 1));
  items.forEach((own) => ranks[own.rank]!.push(own));
  const lines: Item[][] = boxes.map(() => []);  // of each box, rank by rank
  boxes.forEach((box, i) => {
    for (const input of new Set(box.inputs.map((id) => number.get(id)!))) {
      const line = lines[input]!;
      for (let r = rank[input]! + 1 + line.length; r < rank[i]!; ++r) {
        const passing = item(undefined, input, r, LINE_WIDTH, LINE_WEIGHT);
        link(line.at(-1) ?? items[input]!, passing);
        line.push(passing);
        ranks[r]!.push(passing);
      }
      const from = rank[i]! - rank[input]! - 2;
      link(from < 0 ? items[input]! : line[from]!, items[i]!);
    }
  });
  for (const list of ranks) list.forEach((own, order) => { own.order = order; });
  return ranks;
}

function item(box: Box | undefined, source: number, rank: number, width: number, weight: number): Item {
  return {box, source, rank, width, weight, x: 0, order: 0, up: [], down: []};
}

function link(upper: Item, lower: Item): void {
  upper.down.push(lower);
  lower.up.push(upper);
}

// Sorts each rank by the mean place of its neighbours, downwards and upwards, and keeps the order with the fewest crossings.
function orderRanks(ranks: Item[][]): void {
  let best = ranks.map((rank) => [...rank]);
  let fewest = crossings(ranks);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; ++sweep) {
    const downwards = sweep % 2 === 0;
    for (const rank of downwards ? ranks.slice(1) : ranks.slice(0, -1).reverse()) {
      const place = new Map(rank.map((own) => [own, meanOrder(downwards ? own.up : own.down) ?? own.order]));
      rank.sort((a, b) => place.get(a)! - place.get(b)!);
      number(rank);
    }
    const count = crossings(ranks);
    if (count < fewest) {
      fewest = count;
      best = ranks.map((rank) => [...rank]);
    }
  }
  ranks.forEach((rank, r) => {
    rank.splice(0, rank.length, ...best[r]!);
    number(rank);
  });
}

function number(rank: Item[]): void {
  rank.forEach((own, order) => { own.order = order; });
}

function meanOrder(neighbours: readonly Item[]): number | undefined {
  return neighbours.length === 0 ? undefined : neighbours.reduce((sum, other) => sum + other.order, 0) / neighbours.length;
}

// Inversions between the ends of lines, counted in a tree of sums (Barth, Mutzel and Jünger, 2004).
function crossings(ranks: Item[][]): number {
  let count = 0;
  for (const [r, rank] of ranks.entries()) {
    const below = ranks[r + 1]?.length ?? 0;
    const sums = new Array<number>(below + 1).fill(0);
    let seen = 0;
    for (const upper of rank) {
      for (const end of upper.down.map((lower) => lower.order).sort((a, b) => b - a)) {
        let before = 0;
        for (let i = end + 1; i > 0; i -= i & -i) before += sums[i]!;
        count += seen - before;
      }
      for (const lower of upper.down) {
        for (let i = lower.order + 1; i <= below; i += i & -i) ++sums[i]!;
        ++seen;
      }
    }
  }
  return count;
}

// Each sweep moves the items of a rank as near to the mean of their neighbours as their widths allow.
function placeInRanks(ranks: Item[][]): void {
  for (const rank of ranks) spread(rank, rank.map(() => 0));
  for (let sweep = 0; sweep < SWEEPS; ++sweep) {
    const downwards = sweep % 2 === 0;
    for (const rank of downwards ? ranks : [...ranks].reverse()) {
      spread(rank, rank.map((own) => meanX(own, downwards ? own.up : own.down) ?? own.x));
    }
  }
  // At last the lines, where the boxes are.
  for (const rank of ranks) {
    spread(rank, rank.map((own) => own.box === undefined ? meanX(own, own.up) ?? own.x : own.x));
  }
}

// Boxes are drawn to boxes and lines to lines, where there are such.
function meanX(own: Item, neighbours: readonly Item[]): number | undefined {
  const alike = neighbours.filter((other) => (other.box === undefined) === (own.box === undefined));
  const of = alike.length > 0 ? alike : neighbours;
  return of.length === 0 ? undefined : of.reduce((sum, other) => sum + other.x, 0) / of.length;
}

// The places of least squared distance from the wished ones in which nothing overlaps: isotonic regression (pool adjacent violators).
function spread(rank: Item[], wished: readonly number[]): void {
  const offsets: number[] = [];
  let offset = 0;
  rank.forEach((own, i) => {
    if (i > 0) offset += (rank[i - 1]!.width + own.width) / 2 + GAP;
    offsets.push(offset);
  });
  const pools: {sum: number; weight: number; count: number}[] = [];
  rank.forEach((own, i) => {
    let pool = {sum: own.weight * (wished[i]! - offsets[i]!), weight: own.weight, count: 1};
    for (let last = pools.at(-1); last !== undefined && last.sum / last.weight > pool.sum / pool.weight; last = pools.at(-1)) {
      pool = {sum: pool.sum + last.sum, weight: pool.weight + last.weight, count: pool.count + last.count};
      pools.pop();
    }
    pools.push(pool);
  });
  let i = 0;
  for (const pool of pools) {
    for (let n = 0; n < pool.count; ++n, ++i) rank[i]!.x = pool.sum / pool.weight + offsets[i]!;
  }
}

function measured(ranks: Item[][]): Layout {
  const left = Math.min(0, ...ranks.flat().map((own) => own.x - own.width / 2)) - MARGIN;
  const tops: number[] = [];
  const bottoms: number[] = [];
  let y = MARGIN;
  for (const rank of ranks) {
    tops.push(y);
    y += Math.max(0, ...rank.map((own) => own.box?.height ?? 0));
    bottoms.push(y);
    y += RANK_GAP;
  }
  const boxes = new Map<string, Placed>();
  const sources = new Map<number, string>();
  for (const own of ranks.flat()) {
    own.x -= left;
    if (own.box === undefined) continue;
    boxes.set(own.box.id, {id: own.box.id, x: own.x, y: tops[own.rank]!, rank: own.rank});
    sources.set(own.source, own.box.id);
  }
  const pieces = ranks.flat().flatMap((upper) => upper.down.map((lower): Piece => ({
    source: sources.get(upper.source)!, target: lower.box?.id, rank: upper.rank, fromX: upper.x,
    fromY: upper.box === undefined ? bottoms[upper.rank]! : tops[upper.rank]! + upper.box.height, toX: lower.x, toY: tops[lower.rank]!,
    pastY: lower.box === undefined ? bottoms[lower.rank]! : undefined,
  })));
  const width = Math.max(0, ...ranks.flat().map((own) => own.x + own.width / 2)) + MARGIN;
  return {boxes, pieces, width, height: Math.max(y - RANK_GAP, MARGIN) + MARGIN};
}
