import {deepEqual, equal, ok} from "node:assert/strict";
import {test} from "node:test";
import {className, featureText, probabilityOf, rangeOf, rowShares, scoreShares, sliceRows, ticks, topConfusions} from "../src/views/classification_model";

test("classes without a name are called by their number", () => {
  equal(className(["cat", "dog"], 1), "dog");
  equal(className(["cat", "dog"], 2), "2");
  equal(className(undefined, 7), "7");
  equal(className(["cat"], undefined), "–");
});

test("rows become shares of their label", () => {
  deepEqual(rowShares([[3, 1], [0, 0]]), [[0.75, 0.25], [0, 0]]);
});

test("the most frequent mistakes come first, of two as frequent the larger share", () => {
  const confusion = [[90, 5, 0], [5, 5, 2], [0, 0, 10]];
  deepEqual(topConfusions(confusion, 2), [
    {label: 1, predicted: 0, count: 5, share: 5 / 12}, {label: 0, predicted: 1, count: 5, share: 5 / 95}]);
  equal(topConfusions(confusion, 10).length, 3);
  deepEqual(topConfusions([[4, 0], [0, 4]], 5), []);
});

test("scores become shares of their label", () => {
  const bins = [{from: -1, to: 0, counts: [6, 1]}, {from: 0, to: 1, counts: [2, 0]}] as {from: number; to: number; counts: [number, number]}[];
  deepEqual(scoreShares(bins, 0), [{score: -0.5, count: 6, share: 0.75}, {score: 0.5, count: 2, share: 0.25}]);
  deepEqual(scoreShares(bins, 1), [{score: -0.5, count: 1, share: 1}, {score: 0.5, count: 0, share: 0}]);
  deepEqual(scoreShares([{from: 0, to: 0, counts: [3, 0]}], 1), []);
  equal(probabilityOf(0), 0.5);
  equal(probabilityOf(-800), 0);
});

test("a feature's values are numbers, or ids with their weights", () => {
  equal(featureText({name: "price", count: 2, numbers: [0.5, null]}, 8), "0.5, –");
  equal(featureText({name: "user", count: 1, ids: ["18446744073709551615"]}, 8), "18446744073709551615");
  equal(featureText({name: "seen", count: 40, ids: ["3", "4", "5"], weights: [1, 0.25, 2]}, 2), "3 × 1, 4 × 0.25 and 38 more");
  equal(featureText({name: "seen", count: 0, ids: []}, 8), "none");
  equal(featureText({name: "tags", count: 3, texts: ["a", "b", "c"]}, 2), "a, b and 1 more");
  equal(featureText({name: "age", count: 0, texts: []}, 8), "missing");
});

test("slices have a row for each id, and for each range of frequencies", () => {
  const totals = {examples: 3, share: 0.5, probability: 0.4, loss: 0.7, normalized_entropy: null};
  const slice = {feature: "user", ids: 2, values: [{id: "7", ...totals}], frequencies: [{from: 1, to: 1, ids: 1, ...totals}, {from: 1024, to: 2047, ids: 1, ...totals}]};
  const {values, frequencies} = sliceRows(slice);
  deepEqual(values.map(({name, order, examples}) => [name, order, examples]), [["7", 0, 3]]);
  deepEqual(frequencies.map(({name}) => name), ["1 (1 ids)", "1,024 to 2,047 (1 ids)"]);
  deepEqual(sliceRows({...slice, others: totals}).frequencies.at(-1)?.name, "ids that were not kept");
});

test("ticks are round numbers within the range", () => {
  deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  deepEqual(ticks(-3, 12, 5), [0, 5, 10]);
  deepEqual(ticks(1e-6, 5e-6, 4), [1e-6, 2e-6, 3e-6, 4e-6, 5e-6]);
  deepEqual(ticks(3, 3, 5), [3]);
});

test("a range has all finite values and is never empty", () => {
  const [low, high] = rangeOf([1, null, 3, Infinity]);
  ok(low < 1 && low > 0.8 && high > 3 && high < 3.2);
  deepEqual(rangeOf([5, 5]), [4.5, 5.5]);
  deepEqual(rangeOf([0]), [-1, 1]);
  deepEqual(rangeOf([null]), [0, 1]);
});
