// A model as a graph: boxes for features, layers and losses, and what is taken from where.

import type {Model, ModelFeature, ModelLayer, ModelLoss} from "../api";
import {formatCount, formatNumber, formatShape} from "../format";

export interface ModelNode {
  id: string;  // "feature:user", "layer:dense_1", "loss:0"
  name: string;
  what: "feature" | "layer" | "loss";
  lines: string[];     // below the name
  inputs: string[];    // ids
  frozen: boolean;
  sharedWith: string | undefined;  // id of the box whose variables it has
  feature?: ModelFeature;
  layer?: ModelLayer;
  loss?: ModelLoss;
  // Layers behind it, in the order of computation, that are drawn in its box.
  folded: ModelLayer[];
  // Of a group of boxes that are alike (model_groups.ts): each of them, the first one too.
  members?: readonly ModelNode[];
}

const MANY = 10_000;

// In the order of computation: each box comes after those of its inputs. `fold`: a layer without variables that is the only one to
// take the layer before it, and takes nothing else, is drawn in that one's box.
export function modelNodes(model: Model, fold: boolean): ModelNode[] {
  const ids = new Map<string, string>();  // of the box in which a feature or layer is, by name
  const byId = new Map<string, ModelNode>();
  const uses = countUses(model);
  const nodes: ModelNode[] = [];
  const add = (node: ModelNode) => {
    nodes.push(node);
    byId.set(node.id, node);
  };
  for (const feature of model.features) {
    ids.set(feature.name, `feature:${feature.name}`);
    add({id: `feature:${feature.name}`, name: feature.name, what: "feature", lines: [featureText(feature)], inputs: [],
         frozen: false, sharedWith: undefined, feature, folded: []});
  }
  for (const layer of model.layers) {
    const host = fold ? hostOf(layer, ids, byId, uses) : undefined;
    if (host !== undefined) {
      host.folded.push(layer);
      ids.set(layer.name, host.id);
      continue;
    }
    ids.set(layer.name, `layer:${layer.name}`);
    add({id: `layer:${layer.name}`, name: layer.name, what: "layer", lines: [], inputs: boxes(layer.inputs, ids),
         frozen: isFrozen(layer), sharedWith: layer.variables_of === undefined ? undefined : ids.get(layer.variables_of), layer, folded: []});
  }
  for (const [i, loss] of model.losses.entries()) {
    add({id: `loss:${i}`, name: lossName(loss), what: "loss", lines: [`of ${loss.label}${weightText(loss)}`], inputs: boxes(loss.inputs, ids),
         frozen: false, sharedWith: undefined, loss, folded: []});
  }
  for (const node of nodes) {
    if (node.layer !== undefined) node.lines = layerLines(node.layer, node.folded);
  }
  return nodes;
}

// How often each feature and layer is taken, by layers and losses.
function countUses(model: Model): Map<string, number> {
  const uses = new Map<string, number>();
  const used = [...model.layers.flatMap((layer) => layer.inputs), ...model.losses.flatMap((loss) => loss.inputs)];
  for (const name of used) uses.set(name, (uses.get(name) ?? 0) + 1);
  return uses;
}

function hostOf(layer: ModelLayer, ids: Map<string, string>, byId: Map<string, ModelNode>, uses: Map<string, number>): ModelNode | undefined {
  const [input, ...others] = layer.inputs;
  if (input === undefined || others.length > 0 || layer.variables.length > 0 || uses.get(input) !== 1) return undefined;
  const host = byId.get(ids.get(input) ?? "");
  return host?.what === "layer" ? host : undefined;
}

function boxes(names: readonly string[], ids: Map<string, string>): string[] {
  return names.flatMap((name) => ids.get(name) ?? []);
}

function layerLines(layer: ModelLayer, folded: readonly ModelLayer[]): string[] {
  const lines = [layer.output_shape === undefined ? layer.kind : `${layer.kind} → ${formatShape(layer.output_shape)}`];
  const parameters = parametersText(layer);
  if (parameters !== "") lines.push(parameters);
  for (const other of folded) {
    const same = String(other.output_shape) === String(layer.output_shape);
    lines.push(same ? other.kind : `${other.kind} → ${formatShape(other.output_shape ?? [])}`);
  }
  return lines;
}

// "200,960 parameters", "shared with tower", "rows of users", or nothing.
function parametersText(layer: ModelLayer): string {
  const frozen = isFrozen(layer) ? ", frozen" : "";
  if (layer.table !== undefined) return `rows of ${layer.table}`;
  if (layer.variables_of !== undefined) return `shared with ${layer.variables_of}${frozen}`;
  return layer.parameters === 0 ? "" : `${shortCount(layer.parameters)} ${layer.parameters === 1 ? "parameter" : "parameters"}${frozen}`;
}

export function isFrozen(layer: ModelLayer): boolean {
  const trained = layer.variables.filter((variable) => variable.update !== "average");
  return trained.length > 0 && trained.every((variable) => variable.update === "frozen");
}

export function featureText(feature: ModelFeature): string {
  switch (feature.kind) {
    case "numbers": return formatShape(feature.shape);
    case "id": return feature.ids === undefined ? "any id" : `id of ${formatCount(feature.ids)}`;
    case "bag": return `${feature.weighted ? "weighted bag" : "bag"} of ${feature.ids === undefined ? "any" : formatCount(feature.ids)} ids`;
  }
}

// SOFTMAX_CROSS_ENTROPY as "softmax cross entropy".
export function lossName(loss: ModelLoss): string {
  return loss.kind.toLowerCase().replaceAll("_", " ");
}

function weightText(loss: ModelLoss): string {
  return loss.weight === 1 ? "" : `, weight ${formatNumber(loss.weight)}`;
}

// 1234567 as 1.23 million, at most 10,000 as it is.
export function shortCount(count: number): string {
  if (count <= MANY) return formatCount(count);
  if (count < 999_500) return `${formatNumber(count / 1e3, 3)} thousand`;
  return count < 999_500_000 ? `${formatNumber(count / 1e6, 3)} million` : `${formatNumber(count / 1e9, 3)} billion`;
}
