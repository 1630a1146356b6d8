import {deepEqual, equal, ok, throws} from "node:assert/strict";
import {test} from "node:test";
import {
  columnText, columnValue, featureText, greyFeatures, imageRgba, isImage, normalizeDigit, parseBag, parseId, parseRow, rgbaFeatures,
} from "../src/views/try_it_input";

// A bright rectangle in a dark square.
function rectangle(side: number, left: number, top: number, width: number, height: number) {
  const values = new Float32Array(side * side);
  for (let y = top; y < top + height; ++y) values.fill(1, y * side + left, y * side + left + width);
  return {width: side, height: side, values};
}

// Rows and columns with something in them: first and one past the last.
function extent(image: {width: number; height: number; values: Float32Array}) {
  const rows: number[] = [];
  const columns: number[] = [];
  image.values.forEach((value, i) => {
    if (value > 0.5) {
      rows.push(Math.floor(i / image.width));
      columns.push(i % image.width);
    }
  });
  return {top: Math.min(...rows), bottom: Math.max(...rows) + 1, left: Math.min(...columns), right: Math.max(...columns) + 1};
}

test("a drawing is scaled to 20 of 28 parts and centred, wherever and however large it is", () => {
  const expected = {top: 4, bottom: 24, left: 9, right: 19};
  deepEqual(extent(normalizeDigit(rectangle(280, 10, 20, 50, 100), 28, 28)!), expected);
  deepEqual(extent(normalizeDigit(rectangle(280, 150, 60, 100, 200), 28, 28)!), expected);
});

test("the centre is the centre of mass, not that of the box", () => {
  const drawing = rectangle(280, 40, 40, 100, 20);
  for (let y = 60; y < 240; ++y) drawing.values.fill(1, y * 280 + 40, y * 280 + 60);
  const digit = normalizeDigit(drawing, 28, 28)!;
  let x = 0;
  let y = 0;
  let mass = 0;
  digit.values.forEach((value, i) => {
    x += value * (i % 28 + 0.5);
    y += value * (Math.floor(i / 28) + 0.5);
    mass += value;
  });
  ok(Math.abs(x / mass - 14) < 0.1 && Math.abs(y / mass - 14) < 0.1);
});

test("without ink there is no digit", () => {
  equal(normalizeDigit(rectangle(280, 0, 0, 0, 0), 28, 28), null);
});

test("grey values go into each channel", () => {
  const image = {width: 2, height: 1, values: new Float32Array([0, 1])};
  deepEqual(greyFeatures(image, 1), [0, 1]);
  deepEqual(greyFeatures(image, 3), [0, 0, 0, 1, 1, 1]);
});

test("bytes of a canvas become features", () => {
  const rgba = [255, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0];
  deepEqual(rgbaFeatures(rgba, 3, false), [1, 0, 0, 1, 1, 1, 0, 0, 0]);
  deepEqual(rgbaFeatures(rgba, 3, true), [0, 1, 1, 0, 0, 0, 0, 0, 0]);
  deepEqual(rgbaFeatures(rgba, 1, false).map((value) => Number(value.toFixed(3))), [0.299, 1, 0]);
});

test("features become bytes of a canvas", () => {
  deepEqual([...imageRgba([0, 1], 1, 1)], [0, 0, 0, 255, 255, 255, 255, 255]);
  deepEqual([...imageRgba([255, 0, 51], 3, 255)], [255, 0, 51, 255]);
});

test("images have height, width and 1 or 3 channels", () => {
  deepEqual([[28, 28, 1], [32, 32, 3], [784], [28, 28], [8, 8, 2]].map(isImage), [true, true, false, false, false]);
});

test("a row of numbers, however they are separated", () => {
  deepEqual(parseRow("[1, 2.5;\n-3e2]", false), {features: [1, 2.5, -300], divided: false});
  deepEqual(parseRow("", false).features, []);
});

test("an image's bytes become 0 to 1; what may be either stays", () => {
  deepEqual(parseRow("0 51 255", true), {features: [0, 0.2, 1], divided: true});
  deepEqual(parseRow("0 51 255", false), {features: [0, 51, 255], divided: false});
  deepEqual(parseRow("0 1", true), {features: [0, 1], divided: false});
  deepEqual(parseRow("0.5 200", true), {features: [0.5, 200], divided: false});
});

test("a word that is no number is named with its place", () => {
  throws(() => parseRow("1 2 three", false), {message: 'value 3: expected a number, found "three"'});
  throws(() => parseRow("1 NaN", false), {message: 'value 2: expected a number, found "NaN"'});
});

test("an id, or nothing", () => {
  equal(parseId(" 42 ", 43), 42);
  equal(parseId("", 43), null);
  for (const text of ["43", "-1", "1.5", "1e1", "anna", "99999999999999999999"]) {
    throws(() => parseId(text, 43), {message: `expected an id from 0 to 42, found "${text}"`});
  }
});

test("ids of 64 bits are texts where a number does not hold them exactly", () => {
  equal(parseId("9007199254740991", undefined), 9007199254740991);
  equal(parseId("9007199254740992", undefined), "9007199254740992");
  equal(parseId("18446744073709551615", undefined), "18446744073709551615");
  throws(() => parseId("18446744073709551616", undefined),
    {message: 'expected an id from 0 to 18446744073709551615, found "18446744073709551616"'});
  deepEqual(parseBag("18446744073709551615:2 7", undefined, true), {ids: ["18446744073709551615", 7], weights: [2, 1]});
});

test("a feature's value becomes the text that is read as it", () => {
  equal(featureText("18446744073709551615"), "18446744073709551615");
  deepEqual(parseRow(featureText([0.5, 3]), false).features, [0.5, 3]);
  const bag = {ids: [3, 12], weights: [0.5, 2]};
  deepEqual(parseBag(featureText(bag), 13, true), bag);
  deepEqual(parseBag(featureText({ids: ["3"]}), 13, false), {ids: [3]});
  equal(featureText([]), "");
});

test("a column's value is a text, or a list with a value on each line", () => {
  equal(columnValue(" 39 ", {list: false}), " 39 ");
  equal(columnValue(" ", {list: false}), null);
  equal(columnValue("a|b", {list: true, separator: "|"}), "a|b");
  deepEqual(columnValue("a, b\n\n c \n", {list: true}), ["a, b", "c"]);
  equal(columnValue("\n", {list: true}), null);
});

test("and becomes the text that is read as it", () => {
  equal(columnText(null, {list: true}), "");
  equal(columnText("a|b", {list: true, separator: "|"}), "a|b");
  deepEqual(columnValue(columnText(["a, b", "c"], {list: true}), {list: true}), ["a, b", "c"]);
});

test("bags of ids, with weights where there are some", () => {
  deepEqual(parseBag("3, 7;12 3", 13, false), {ids: [3, 7, 12, 3]});
  deepEqual(parseBag("3:0.5 7 12:-2", 13, true), {ids: [3, 7, 12], weights: [0.5, 1, -2]});
  deepEqual(parseBag("", 13, true), {ids: [], weights: []});
  throws(() => parseBag("1 13", 13, false), {message: 'id 2: expected an id from 0 to 12, found "13"'});
  throws(() => parseBag("1:2", 13, false), {message: 'id 1: expected no weight, found "1:2"'});
  for (const word of ["1:", "1:a", "1:2:3"]) {
    throws(() => parseBag(word, 13, true), {message: `id 1: expected a number behind the colon, found "${word}"`});
  }
});
