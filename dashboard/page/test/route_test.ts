import {deepEqual} from "node:assert/strict";
import {test} from "node:test";
import {formatRoute, parseRoute} from "../src/route";

test("a route comes back, whatever a run is called", () => {
  for (const run of ["mnist", "a/b#c", "50 %", "<b>", "ü"]) {
    deepEqual(parseRoute(formatRoute(run, "curves")), {run, view: "curves"});
  }
});

test("an address that is none names nothing", () => {
  deepEqual(parseRoute(""), {run: undefined, view: undefined});
  deepEqual(parseRoute("#"), {run: undefined, view: undefined});
  deepEqual(parseRoute("#/mnist"), {run: "mnist", view: undefined});
  deepEqual(parseRoute("#/%zz/x"), {run: "%zz", view: "x"});
});
