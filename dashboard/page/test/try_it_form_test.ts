import {deepEqual, equal} from "node:assert/strict";
import {test} from "node:test";
import {exampleText} from "../src/views/try_it_examples";
import {fieldOfError} from "../src/views/try_it_field";

test("an error belongs to the field that it names", () => {
  const names = ["age", "age.group", "seen", "Credit Score"];
  deepEqual(fieldOfError('columns.age: expected a number, found "x"', "columns", names),
    {name: "age", text: 'expected a number, found "x"'});
  deepEqual(fieldOfError("columns.age.group: expected one value, found 2", "columns", names),
    {name: "age.group", text: "expected one value, found 2"});
  deepEqual(fieldOfError("columns.Credit Score: expected a number, found none", "columns", names),
    {name: "Credit Score", text: "expected a number, found none"});
  deepEqual(fieldOfError("features.seen.ids[1]: expected an id, found -1", "features", names),
    {name: "seen", text: "ids[1]: expected an id, found -1"});
});

test("other errors belong to none", () => {
  for (const message of ["columns: expected an object, found 3", "columns.aged: expected a number, found 3", "the dashboard does not answer"]) {
    equal(fieldOfError(message, "columns", ["age"]), null);
  }
});

test("what a record is", () => {
  equal(exampleText({record: 1203, labels: {bought: "1", price: 3.5}}),
    "Record 1,203 of the evaluation data, where bought is 1 and price is 3.5.");
  equal(exampleText({record: 0, labels: {}}), "Record 0 of the evaluation data.");
});
