// The proof of the dashboard: a real job, watched with a browser while it runs, and its files afterwards.
// usage: node dashboard_test.mjs --bin=DIR --digits=DIR --screenshots=DIR   (run.sh calls it)

import assert from "node:assert/strict";
import {parseArgs} from "node:util";
import {Screenshots, startBrowser} from "./browser.mjs";
import {anyFailed, check, fail, summary} from "./checks.mjs";
import {afterwards} from "./file_checks.mjs";
import {Job, Processes, startBinaryJob, startClicksJob, startPairsJob, startVisitsJob} from "./job.mjs";
import {whileItRuns} from "./live_checks.mjs";

// More than are done in the time of the test, which ends the training itself.
const STEPS = 500_000;
const BINARY_STEPS = 500;
const WHOLE_TEST_MS = 420_000;

const {values: flags} = parseArgs({options: {bin: {type: "string"}, digits: {type: "string"}, screenshots: {type: "string"}}});
const processes = new Processes(flags.bin, flags.digits);
const started = [];
let browser;

async function test() {
  console.log(`dashboard: ${processes.data.length > 0 ? "real digits" : `generated digits, for ${flags.digits} is not there`}`);
  const screenshots = new Screenshots(flags.screenshots);
  const second = startBinaryJob(processes, BINARY_STEPS);
  const clicks = startClicksJob(processes);
  const pairs = startPairsJob(processes);
  const visits = startVisitsJob(processes);
  started.push("second", "clicks", "pairs", "visits");
  await check("a second run", async () => assert.equal(await second.exit, 0));
  await check("a run of a model of ids", async () => assert.equal(await clicks.exit, 0));
  await check("a run of two towers", async () => assert.equal(await pairs.exit, 0));
  await check("a run of a model of columns", async () => assert.equal(await visits.exit, 0));
  const job = await Job.start(processes, STEPS);
  started.push(...Object.keys(job.runs), "serve-only");
  browser = await startBrowser();
  await whileItRuns(browser, job, screenshots);
  await afterwards(processes, browser, job, {second, clicks, pairs, visits}, screenshots);
}

async function cleanUp() {
  await browser?.close();
  await processes.stopAll();
  if (anyFailed()) {
    for (const name of started) console.log(`--- ${name}\n${processes.log(name)}`);
  }
  processes.remove();
}

// Nothing is left behind, whatever happens.
function ending(test) {
  return new Promise((done) => {
    const timer = setTimeout(() => done(`not within ${WHOLE_TEST_MS / 1000} s`), WHOLE_TEST_MS);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => done(signal));
    void test.then(() => clearTimeout(timer)).then(() => done(undefined), (error) => done(error.message));
  });
}

const why = await ending(test());
if (why !== undefined) fail("the whole test", why);
await cleanUp();
console.log(summary());
process.exit(anyFailed() ? 1 : 0);
