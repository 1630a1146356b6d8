// What the page shows while the job runs.

import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {loadavg} from "node:os";
import {byId, draw, ONE, openPage, overflow, PHONE, showView, ZERO} from "./browser.mjs";
import {check, json} from "./checks.mjs";
import {PATIENCE_MS, until} from "./job.mjs";

const VISITS = 3;
const VIEWS = ["curves", "snapshots", "cluster", "classification", "model", "try"];

export async function whileItRuns(browser, job, screenshots) {
  const opened = await openPage(browser, job.url);
  const {page} = opened;
  await until("the dashboard answers", async () => (await fetch(`${job.url}/api/v1/runs`)).ok);
  await page.goto(job.url);
  await check("first paint and size", () => figures(browser, job.url));
  await check("two snapshots are listed", () => twoSnapshots(page, job));
  await check("the curve's last value is that of metrics.jsonl", () => curveIsMetrics(page, job));
  await check("curves are saved as CSV and PNG", () => saved(page, job));
  await check("the cluster, its figures and its variables", () => cluster(page));
  await check("a killed worker is lost, then back", () => workerLostAndBack(page, job));
  await check("confusion matrix, classes and wrong examples", () => classification(page, job));
  await check("the model's graph, with the keyboard, and its table", () => graph(page));
  await check("drawn digits are recognised, by newer snapshots too", () => digits(page));
  await check("an uploaded picture", () => uploaded(page));
  await check("a pasted row, with the keyboard alone", () => pastedRow(page));
  await check("all tabs are in reach of the keyboard", () => keyboard(page));
  await check("dark mode", () => dark(page, screenshots));
  await check("dark mode of the system", () => systemIsDark(browser, job));
  await check("390 pixels wide", () => phone(page, screenshots));
  await check("screenshots", () => pictures(page, screenshots));
  await check("a killed chief is down, what was known stays; then it is back", () => chiefDownAndBack(page, job));
  await check("no console errors, no request to another host", () => {
    assert.deepEqual(opened.problems, []);
    assert.deepEqual(opened.foreign, []);
  });
  const run = await runOf(page);
  await check("a killed evaluator is missed; the page goes on with its successor", () => evaluatorGoneAndBack(browser, job));
  await check("training ends with the token only", () => actions(job, run));
  await check("the job finishes", () => endOfJob(job));
  await opened.close();
}

// Requests of visitors who have nothing of the page yet.
async function figures(browser, url) {
  for (let visit = 0; visit < VISITS; ++visit) {
    const {page, close} = await openPage(browser, url);
    await page.goto(url);
    await byId(page, "state").waitFor();
    const paint = await until("the first contentful paint", () =>
      page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
    const bytes = await page.evaluate(() => [
      ...performance.getEntriesByType("navigation"),
      ...performance.getEntriesByType("resource").filter((entry) => entry.name.includes("/assets/")),
    ].reduce((sum, entry) => sum + entry.encodedBodySize, 0));
    await close();
    console.log(`        first contentful paint after ${paint.toFixed(0)} ms with a load of ${loadavg()[0].toFixed(1)}, ${bytes} bytes of page`);
    assert.ok(bytes > 0 && bytes < 200_000, `${bytes} bytes of page`);
  }
  const index = await fetch(url);
  assert.equal(index.status, 200);
  assert.match(index.headers.get("content-security-policy") ?? "", /default-src '(none|self)'/);
}

async function twoSnapshots(page, job) {
  await until("two evaluations", () => job.evaluations().length >= 2);
  await showView(page, "snapshots");
  for (const evaluation of job.evaluations().slice(0, 2)) {
    await byId(page, `snapshot-${evaluation.step}`).waitFor();
  }
}

// The curve's last value is the record of that step; and it is the newest record soon after it was written.
async function curveIsMetrics(page, job) {
  await showView(page, "curves");
  const last = page.locator('[data-testid^="chart-accuracy-last-"]').first();
  await last.waitFor();
  // Both at once: the next evaluation may come in between.
  const shown = () => last.evaluate((element) => ({
    step: Number(element.getAttribute("data-x")), value: Number(element.getAttribute("data-value"))}));
  const newest = job.evaluations().at(-1).step;
  const next = await until("a new evaluation", () => job.evaluations().find((evaluation) => evaluation.step > newest));
  const written = performance.now();
  await until("the new evaluation in the curve", async () => (await shown()).step >= next.step);
  console.log(`        a new evaluation was drawn ${((performance.now() - written) / 1000).toFixed(2)} s after it was seen in the file`);
  const {step, value} = await shown();
  const record = job.evaluations().find((evaluation) => evaluation.step === step);
  assert.ok(record !== undefined, `step ${step} is not in metrics.jsonl`);
  assert.equal(value, record.accuracy);
}

// What is saved is what is drawn.
async function saved(page, job) {
  await showView(page, "curves");
  const save = async (kind) => {
    const [download] = await Promise.all([page.waitForEvent("download"), byId(page, `chart-accuracy-${kind}`).click()]);
    return readFileSync(await download.path());
  };
  const [head, ...rows] = (await save("csv")).toString().trim().split("\n");
  assert.equal(head, "series,step,time,value");
  assert.ok(rows.length >= 2, `${rows.length} rows`);
  for (const row of rows) {
    const [series, step, , value] = row.split(",");
    assert.equal(series, "eval/accuracy");
    assert.equal(Number(value), job.evaluations().find((evaluation) => evaluation.step === Number(step))?.accuracy);
  }
  const png = await save("png");
  assert.equal(png.toString("latin1", 1, 4), "PNG");
  assert.ok(png.readUInt32BE(16) > 300, "its width");
}

async function workerLostAndBack(page, job) {
  await showView(page, "cluster");
  const row = byId(page, "task-worker-1");
  const state = (wanted) => page.locator(`[data-testid="task-worker-1"][data-state="${wanted}"]`).waitFor();
  await state("alive");
  const killed = job.runs["worker-1"];
  killed.child.kill("SIGKILL");
  assert.equal(await killed.exit, "SIGKILL");
  await state("lost");
  assert.match(await row.textContent(), /lost\s*since \d/);
  await byId(page, "attention-only").check();
  await byId(page, "task-ps-0").waitFor({state: "hidden"});
  await row.waitFor();
  await byId(page, "attention-only").uncheck();
  job.runs["worker-1"] = job.startTask("worker", 1);
  await state("alive");
  await until("a restart", async () => await row.locator('[data-title="Restarts"]').textContent() === "1");
}

export async function cluster(page) {
  await showView(page, "cluster");
  for (const task of ["chief-0", "ps-0", "ps-1", "worker-0", "worker-1", "evaluator-0"]) {
    await page.locator(`[data-testid="task-${task}"][data-state="alive"]`).waitFor();
  }
  await byId(page, "task-worker-0").locator('[data-testid="step-bar"] .part').first().waitFor();
  await byId(page, "task-worker-0").locator('[data-testid="step-bar"]').focus();
  assert.match(await page.locator(".tip:not([hidden])").textContent(), /parameters.*input.*compute.*push/s);
  await byId(page, "variables").locator("tbody tr").nth(3).waitFor();
  await byId(page, "open-worker-0").click();
  await byId(page, "detail-worker-0").waitFor();
  assert.match(await byId(page, "detail-worker-0").textContent(), /in this state since/);
}

async function chiefDownAndBack(page, job) {
  await showView(page, "cluster");
  const state = (wanted) => page.locator(`[data-testid="task-chief-0"][data-state="${wanted}"]`).waitFor();
  const killed = job.runs["chief-0"];
  killed.child.kill("SIGKILL");
  assert.equal(await killed.exit, "SIGKILL");
  await state("down");
  assert.match(await byId(page, "cluster-note").textContent(), /has not written since/);
  await until("another state of the run", async () => await byId(page, "state").textContent() === "restarting");
  await byId(page, "task-worker-0").waitFor();
  await showView(page, "curves");
  await settled(page, "curves");
  await showView(page, "cluster");
  job.runs["chief-0"] = job.startTask("chief", 0);
  await state("alive");
  await until("the run goes on", async () => await byId(page, "state").textContent() === "running");
}

// Requests to an absent server are errors on the page's console, so this check has its own.
async function evaluatorGoneAndBack(browser, job) {
  const opened = await openPage(browser, job.url);
  const {page} = opened;
  await page.goto(job.url);
  await settled(page, "curves");
  assert.equal(await byId(page, "connection").isVisible(), false);
  const killed = job.runs["evaluator-0"];
  killed.child.kill("SIGKILL");
  assert.equal(await killed.exit, "SIGKILL");
  await byId(page, "connection").waitFor();
  const newest = job.evaluations().at(-1).step;
  job.runs["evaluator-0"] = job.startTask("evaluator", 0);
  await byId(page, "connection").waitFor({state: "hidden"});
  const last = page.locator('[data-testid^="chart-accuracy-last-"]').first();
  await until("the successor's first evaluation", async () => Number(await last.getAttribute("data-x")) > newest);
  assert.deepEqual(opened.foreign, []);
  await opened.close();
}

export async function classification(page, job) {
  await showView(page, "classification");
  const matrix = byId(page, "confusion");
  await matrix.waitFor();
  await matrix.focus();
  await page.keyboard.press("ArrowRight");
  const readout = await byId(page, "confusion-readout").textContent();
  assert.match(readout, /^label 0, predicted 1: \d+ examples?, /);
  assert.equal(await byId(page, "per-class").locator("tbody tr").count(), 10);
  await byId(page, "wrong-example").first().locator("canvas").waitFor();
  const step = Number(await page.locator(".report-head").getAttribute("data-step"));
  const record = job.evaluations().find((evaluation) => evaluation.step === step);
  assert.equal(await byId(page, "report-accuracy").textContent(), `${(100 * record.accuracy).toFixed(2)} %`);
}

// The chain of the digits' model.
export async function graph(page) {
  await showView(page, "model");
  const details = byId(page, "model-details");
  await byId(page, "model-layer:flatten_1").focus();
  await page.keyboard.press("ArrowDown");
  await page.locator('[data-testid="model-layer:hidden"]:focus').waitFor();
  assert.match(await details.textContent(), /hidden.*y = x W \+ b.*units: 256.*200,960.*hidden\/kernel/s);
  await page.keyboard.press("End");
  assert.match(await details.textContent(), /softmax cross entropy.*scores/s);
  await byId(page, "model-layer:scores").hover();
  assert.match(await details.textContent(), /2,570/);
  await byId(page, "model-fold").check();
  await byId(page, "model-layer:relu_1").waitFor({state: "hidden"});
  assert.match(await byId(page, "model-layer:hidden").textContent(), /relu/);
  await byId(page, "model-fold").uncheck();
  await byId(page, "model-layer:relu_1").waitFor();
  const rows = byId(page, "model-layers").locator("tbody tr");
  assert.equal(await rows.count(), 6);
  assert.match(await rows.nth(2).textContent(), /hidden.*dense.*flatten_1.*256.*200,960/);
  const width = async () => Number(await byId(page, "model-graph").getAttribute("width"));
  const before = await width();
  await byId(page, "model-larger").click();
  assert.ok(await width() > before);
}

export async function digits(page) {
  await showView(page, "try");
  for (const [digit, strokes] of [["1", ONE], ["0", ZERO]]) {
    await byId(page, "clear").click();
    await draw(page, strokes);
    await until(`the drawn ${digit} is taken for a ${digit}`, async () => await byId(page, "prediction").textContent() === digit);
  }
  const step = async () => Number((await byId(page, "prediction-step").textContent()).match(/step ([\d,]+)/)[1].replaceAll(",", ""));
  const first = await step();
  await until("the answer of a newer snapshot", async () => await step() > first);
}

// What was drawn, dark on bright as on paper: the page inverts it by itself.
export async function uploaded(page) {
  await showView(page, "try");
  await byId(page, "clear").click();
  await draw(page, ONE);
  const png = await byId(page, "pad").evaluate((pad) => {
    const paper = document.createElement("canvas");
    paper.width = pad.width;
    paper.height = pad.height;
    const context = paper.getContext("2d");
    context.filter = "invert(1)";
    context.drawImage(pad, 0, 0);
    return paper.toDataURL("image/png").split(",")[1];
  });
  await byId(page, "source-upload").check({force: true});
  await byId(page, "upload").setInputFiles({name: "one.txt", mimeType: "image/png", buffer: Buffer.from("no picture")});
  await until("what is no image is refused", async () => /one\.txt: not an image/.test(await byId(page, "upload-note").textContent()));
  await byId(page, "upload").setInputFiles({name: "one.png", mimeType: "image/png", buffer: Buffer.from(png, "base64")});
  await until("the picture is inverted", async () => await byId(page, "invert").isChecked());
  await until("the picture of a 1 is taken for a 1", async () => await byId(page, "prediction").textContent() === "1");
}

export async function pastedRow(page) {
  await showView(page, "try");
  await byId(page, "source-paste").focus();
  await page.keyboard.press("Space");
  await byId(page, "paste").fill("1 2 three");
  await until("a word that is no number is named", async () => /value 3.*three/.test(await byId(page, "paste-note").textContent()));
  await byId(page, "paste").fill(new Array(28 * 28).fill("0.5").join(","));
  await byId(page, "probability-9").waitFor();
}

export async function keyboard(page) {
  await page.reload();
  await byId(page, `tab-${VIEWS[0]}`).waitFor();
  await showView(page, VIEWS[0]);
  await page.evaluate(() => document.activeElement?.blur());
  await until("the tabs have the focus", async () => {
    await page.keyboard.press("Tab");
    return page.evaluate(() => document.activeElement?.getAttribute("role") === "tab");
  });
  for (const view of [...VIEWS.slice(1), VIEWS[0]]) {
    await page.keyboard.press("ArrowRight");
    await page.locator(`[data-testid="tab-${view}"][aria-selected="true"]:focus`).waitFor();
  }
}

export async function dark(page, screenshots) {
  await showView(page, "curves");
  const surface = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await surface();
  await byId(page, "theme-switch").click();
  await until("other colours", async () => await surface() !== before);
  for (const view of VIEWS) {
    await showView(page, view);
    await settled(page, view);
    await screenshots.take(page, `dark-${view}`);
  }
  await page.reload();
  await byId(page, "state").waitFor();
  assert.notEqual(await surface(), before, "the choice is forgotten");
  await byId(page, "theme-switch").click();
}

async function systemIsDark(browser, job) {
  const opened = await openPage(browser, job.url, {colorScheme: "dark"});
  await opened.page.goto(job.url);
  await byId(opened.page, "state").waitFor();
  assert.equal(await opened.page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  await opened.close();
}

export async function phone(page, screenshots) {
  const size = page.viewportSize();
  await page.setViewportSize(PHONE);
  try {
    for (const view of VIEWS) {
      await showView(page, view);
      await settled(page, view);
      await screenshots.take(page, `phone-${view}`, {fullPage: true});
      assert.equal(await overflow(page), 0, `${view} is wider than the window`);
    }
  } finally {
    await page.setViewportSize(size);
  }
}

// Until what the view is about is there.
async function settled(page, view) {
  const sign = {
    curves: '[data-testid^="chart-accuracy-last-"][data-value]', snapshots: '[data-testid="snapshots"] tbody tr',
    cluster: '[data-testid="task-worker-0"]', classification: '[data-testid="wrong-examples"]', model: '[data-testid="model-graph"] .model-box', try: '[data-testid="pad"]',
  }[view];
  await page.locator(sign).first().waitFor();
}

export async function pictures(page, screenshots) {
  for (const view of VIEWS) {
    await showView(page, view);
    await settled(page, view);
    if (view === "try") {
      await draw(page, ZERO);
      await byId(page, "probability-0").waitFor();
    }
    await screenshots.take(page, view);
    await screenshots.take(page, `${view}-whole`, {fullPage: true});
  }
  // The README's.
  await showView(page, "curves");
  await byId(page, "chart-loss-log").click();
  await settled(page, "curves");
  await screenshots.take(page, "dashboard");
  await byId(page, "chart-loss-log").click();
}

async function actions(job, run) {
  const url = `${job.url}/api/v1/runs/${encodeURIComponent(run)}/actions/end_training`;
  const end = (headers) => json(url, {
    method: "POST", headers: {"Content-Type": "application/json", ...headers}, body: JSON.stringify({reason: "good enough"})});
  assert.equal((await end({})).status, 401);
  assert.equal((await end({Authorization: "Bearer something-else-altogether"})).status, 401);
  assert.equal((await end({Authorization: `Bearer ${job.token}`})).status, 202);
}

async function endOfJob(job) {
  for (const [name, run] of Object.entries(job.runs)) {
    const code = await Promise.race([run.exit, new Promise((done) => setTimeout(() => done("still there"), PATIENCE_MS).unref())]);
    assert.equal(code, 0, `${name} ends`);
  }
}

function runOf(page) {
  return page.evaluate(() => decodeURIComponent(location.hash.split("/")[1]));
}
