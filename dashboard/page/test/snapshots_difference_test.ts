import {equal} from "node:assert/strict";
import {test} from "node:test";
import {whyNoVariables} from "../src/views/snapshots_difference";

test("why the variables of two snapshots are not compared", () => {
  equal(whyNoVariables({}), "Variables cannot be compared, for one of the snapshots is deleted.");
  equal(whyNoVariables({error: "model.ckpt-100.index: expected a table, found 3 bytes"}),
    "Variables cannot be compared: model.ckpt-100.index: expected a table, found 3 bytes");
});
