// Boxes that are alike, side by side, as one: the embeddings of many features.

import {shortCount, type ModelNode} from "./model_graph";

const LEAST = 5;  // fewer are drawn one by one

// Layers of one kind whose inputs are features that only they take, and whose outputs are all taken by the same boxes, are one box,
// and so are their features. A group stands where its first box stood, and has its id.
export function grouped(nodes: readonly ModelNode[]): ModelNode[] {
  const outputs = new Map<string, string[]>();
  for (const node of nodes) {
    for (const input of new Set(node.inputs)) outputs.set(input, [...(outputs.get(input) ?? []), node.id]);
  }
  const features = new Map(nodes.filter((node) => node.what === "feature").map((node) => [node.id, node]));
  const alike = new Map<string, ModelNode[]>();
  for (const node of nodes) {
    const key = keyOf(node, features, outputs);
    if (key !== undefined) alike.set(key, [...(alike.get(key) ?? []), node]);
  }
  const heads = new Map<string, string>();  // of the group, by the id of a box in it
  const groups = new Map<string, ModelNode>();
  for (const group of alike.values()) {
    if (group.length < LEAST) continue;
    for (const members of [group, group.flatMap((node) => node.inputs.map((input) => features.get(input)!))]) {
      for (const member of members) heads.set(member.id, members[0]!.id);
      groups.set(members[0]!.id, groupOf(members));
    }
  }
  const head = (id: string) => heads.get(id) ?? id;
  return nodes.filter((node) => head(node.id) === node.id).map((node) => {
    const shown = groups.get(node.id) ?? node;
    const shared = shown.sharedWith === undefined ? undefined : head(shown.sharedWith);
    return {...shown, inputs: [...new Set(shown.inputs.map(head))], sharedWith: shared === node.id ? undefined : shared};
  });
}

// Boxes of one key are alike; undefined: it is of no group.
function keyOf(node: ModelNode, features: Map<string, ModelNode>, outputs: Map<string, string[]>): string | undefined {
  if (node.layer === undefined || node.inputs.length === 0) return undefined;
  const own = node.inputs.every((input) => features.has(input) && outputs.get(input)?.length === 1);
  if (!own) return undefined;
  return JSON.stringify([node.layer.kind, node.folded.map((layer) => layer.kind), node.frozen, node.inputs.map((input) => features.get(input)!.feature!.kind),
    [...(outputs.get(node.id) ?? [])].sort()]);
}

function groupOf(members: readonly ModelNode[]): ModelNode {
  const first = members[0]!;
  const names = `${first.name} … ${members.at(-1)!.name}`;
  const count = `${members.length}`;
  if (first.layer === undefined) return {...first, name: `${count} features`, lines: [names], members};
  const parameters = members.reduce((sum, member) => sum + member.layer!.parameters, 0);
  const lines = [names, ...(parameters === 0 ? [] : [`${shortCount(parameters)} parameters${first.frozen ? ", frozen" : ""}`]),
    ...first.folded.map((layer) => layer.kind)];
  return {...first, name: `${count} × ${first.layer.kind}`, lines, inputs: members.flatMap((member) => member.inputs), members};
}
