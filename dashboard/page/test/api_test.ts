import {equal} from "node:assert/strict";
import {test} from "node:test";
import {ApiError, errorText, isMisshapen, type Placement} from "../src/api";
import {shardPieces} from "../src/views/cluster_model";

// What `f` throws.
function thrown(f: () => unknown): unknown {
  try {
    f();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("an answer of another shape is said to be one, without the words of the language", () => {
  for (const shards of [undefined, null, "none", 3, {}]) {
    const error = thrown(() => shardPieces({run: "r", balance: 1, shards, variables: []} as unknown as Placement));
    equal(isMisshapen(error), true);
    equal(errorText(error), "This cannot be shown: what the dashboard answered is not as expected");
  }
});

test("the server's own words are shown", () => {
  const error = new ApiError(404, "there is no report yet");
  equal(isMisshapen(error), false);
  equal(errorText(error), "there is no report yet");
});
