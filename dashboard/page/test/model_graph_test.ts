import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import type {Model, ModelLayer} from "../src/api";
import {grouped} from "../src/views/model_groups";
import {featureText, isFrozen, modelNodes, shortCount} from "../src/views/model_graph";

function layer(name: string, kind: string, inputs: string[], parameters = 0, more: Partial<ModelLayer> = {}): ModelLayer {
  const variables = parameters === 0 ? [] : [{name: `${name}/kernel`, shape: [parameters], update: "optimizer" as const}];
  return {name, kind, inputs, output_shape: [4], parameters, operations: 8, variables, ...more};
}

function model(layers: ModelLayer[], scores: string, features = ["features"]): Model {
  return {
    run: "r", name: "m", parameters: 0, operations: 0, formulas: {}, config: "", tables: [], layers,
    features: features.map((name) => ({name, kind: "numbers", shape: [4]})),
    losses: [{kind: "HUBER", inputs: [scores], label: "price", weight: 0.5}],
  };
}

const CHAIN = model([layer("a", "dense", ["features"], 20), layer("r", "relu", ["a"]), layer("d", "dropout", ["r"]), layer("b", "dense", ["d"], 5)], "b");

test("each feature, layer and loss is a box, and takes what its inputs name", () => {
  deepEqual(modelNodes(CHAIN, false).map((node) => [node.id, node.inputs]), [
    ["feature:features", []], ["layer:a", ["feature:features"]], ["layer:r", ["layer:a"]], ["layer:d", ["layer:r"]],
    ["layer:b", ["layer:d"]], ["loss:0", ["layer:b"]]]);
});

test("layers without variables are folded into the box before them", () => {
  const nodes = modelNodes(CHAIN, true);
  deepEqual(nodes.map((node) => [node.id, node.inputs]), [
    ["feature:features", []], ["layer:a", ["feature:features"]], ["layer:b", ["layer:a"]], ["loss:0", ["layer:b"]]]);
  deepEqual(nodes[1]!.lines, ["dense → 4", "20 parameters", "relu", "dropout"]);
  deepEqual(nodes[1]!.folded.map((folded) => folded.name), ["r", "d"]);
});

test("a layer that others take, that takes several, or that takes a feature is not folded", () => {
  const residual = model([
    layer("f", "flatten", ["features"]), layer("a", "dense", ["f"], 20), layer("r", "relu", ["a"]), layer("s", "add", ["a", "r"])], "s");
  deepEqual(modelNodes(residual, true).map((node) => node.id), ["feature:features", "layer:f", "layer:a", "layer:r", "layer:s", "loss:0"]);
});

test("what shares variables, and what is frozen", () => {
  const update = "frozen" as const;
  const frozen = layer("a", "dense", ["left"], 20, {variables: [{name: "a/kernel", shape: [20], update}]});
  const nodes = modelNodes(model([frozen, layer("b", "dense", ["right"], 0, {variables: frozen.variables, variables_of: "a"}),
    layer("s", "add", ["a", "b"])], "s", ["left", "right"]), true);
  deepEqual(nodes.map((node) => node.frozen), [false, false, true, true, false, false]);
  equal(nodes[3]!.sharedWith, "layer:a");
  deepEqual(nodes[2]!.lines, ["dense → 4", "20 parameters, frozen"]);
  deepEqual(nodes[3]!.lines, ["dense → 4", "shared with a, frozen"]);
  equal(isFrozen(layer("n", "batch_norm", ["a"], 4, {variables: [{name: "n/mean", shape: [4], update: "average"}]})), false);
});

test("a layer over a table says which", () => {
  const nodes = modelNodes(model([layer("u", "embedding", ["user"], 0, {table: "people"})], "u", ["user"]), true);
  deepEqual(nodes[1]!.lines, ["embedding → 4", "rows of people"]);
});

test("a loss says its label and its weight", () => {
  const loss = modelNodes(CHAIN, false).at(-1)!;
  equal(loss.name, "huber");
  deepEqual(loss.lines, ["of price, weight 0.5"]);
});

test("a loss may take several layers", () => {
  const towers = {...CHAIN, layers: [layer("q", "dense", ["features"], 20), layer("v", "dense", ["features"], 20)],
    losses: [{kind: "IN_BATCH_SOFTMAX", inputs: ["q", "v"], temperature: 0.5, label: "label", weight: 1}]};
  const loss = modelNodes(towers, true).at(-1)!;
  equal(loss.name, "in batch softmax");
  deepEqual(loss.inputs, ["layer:q", "layer:v"]);
});

test("texts of features and counts", () => {
  equal(featureText({name: "f", kind: "numbers", shape: [28, 28, 1]}), "28 × 28 × 1");
  equal(featureText({name: "f", kind: "id", ids: 1000}), "id of 1,000");
  equal(featureText({name: "f", kind: "bag", ids: 50, weighted: true}), "weighted bag of 50 ids");
  equal(featureText({name: "f", kind: "id"}), "any id");
  equal(featureText({name: "f", kind: "bag", weighted: false}), "bag of any ids");
  deepEqual([0, 9999, 10_000, 235_146, 999_499, 999_500, 25_600_000, 7e9].map(shortCount),
    ["0", "9,999", "10,000", "235 thousand", "999 thousand", "1 million", "25.6 million", "7 billion"]);
});

// A tower of each of `count` features, which two layers take, and one of another kind.
function wide(count: number): Model {
  const features = Array.from({length: count}, (_, i) => `f${i}`);
  const towers = features.map((name, i) => layer(`e${i}`, "embedding", [name], 10));
  return model([layer("bottom", "dense", ["numbers"], 7), ...towers, layer("pairs", "dot_interaction", ["bottom", ...towers.map((tower) => tower.name)]),
    layer("all", "concat", ["pairs", ...towers.map((tower) => tower.name)])], "all", ["numbers", ...features]);
}

test("many boxes that are alike are one, and so are their features", () => {
  const nodes = grouped(modelNodes(wide(6), true));
  deepEqual(nodes.map((node) => [node.id, node.name, node.inputs]), [
    ["feature:numbers", "numbers", []], ["feature:f0", "6 features", []], ["layer:bottom", "bottom", ["feature:numbers"]],
    ["layer:e0", "6 × embedding", ["feature:f0"]], ["layer:pairs", "pairs", ["layer:bottom", "layer:e0"]],
    ["layer:all", "all", ["layer:pairs", "layer:e0"]], ["loss:0", "huber", ["layer:all"]]]);
  deepEqual(nodes[3]!.lines, ["e0 … e5", "60 parameters"]);
  equal(nodes[3]!.members?.length, 6);
});

test("a few boxes, or some of a feature that others take too, stay as they are", () => {
  equal(grouped(modelNodes(wide(4), true)).length, modelNodes(wide(4), true).length);
  const shared = model([...Array.from({length: 6}, (_, i) => layer(`a${i}`, "dense", ["features"], 3)),
    layer("sum", "add", Array.from({length: 6}, (_, i) => `a${i}`))], "sum");
  equal(grouped(modelNodes(shared, true)).length, 9);
});
