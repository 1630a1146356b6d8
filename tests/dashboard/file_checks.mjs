// What the page shows afterwards, from the files alone.

import assert from "node:assert/strict";
import {appendFileSync} from "node:fs";
import {join} from "node:path";
import {byId, draw, ONE, openPage, showView} from "./browser.mjs";
import {check, json} from "./checks.mjs";
import {evaluationsOf, freePorts, until} from "./job.mjs";

// Markup wherever a run's files and flags can have text. An element made of it would also speak up, as a dialog or an
// error. (A name of --runs ends at the first "=".)
const HOSTILE = "<img onerror>";
const HOSTILE_METRIC = "<img src=x onerror=alert(1)>";

// `others`: runs that are over.
// Until the page has the probability of label 1 that the answer to this request has.
async function showsPrediction(page, url, request) {
  const {status, body} = await json(url, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(request)});
  assert.equal(status, 200, JSON.stringify(body));
  const expected = `${(100 * body.probabilities[1]).toFixed(2)} %`;
  await byId(page, "probability-1").waitFor();
  await until(`the probability is ${expected}`, async () => (await byId(page, "probability-1").textContent()).includes(expected));
}

export async function afterwards(processes, browser, job, others, screenshots) {
  const {second, clicks, pairs, visits} = others;
  plantMarkup(second.modelDir);
  const [port] = await freePorts(1);
  const origin = `http://127.0.0.1:${port}`;
  const server = processes.start("serve-only", "evaluator",
    ["--serve_only", `--dashboard_port=${port}`, `--runs=${HOSTILE}=${job.modelDir}`, `--runs=second=${second.modelDir}`,
      `--runs=clicks=${clicks.modelDir}`, `--runs=pairs=${pairs.modelDir}`, `--runs=visits=${visits.modelDir}`]);
  await until("the page of --serve_only", async () => (await fetch(`${origin}/api/v1/runs`)).ok);
  const opened = await openPage(browser, origin);
  const {page} = opened;
  const runs = (await json(`${origin}/api/v1/runs`)).body.runs;
  const hostile = runs.find((run) => run.name === HOSTILE);
  const other = runs.find((run) => run.name === "second");

  await check("serve_only: all runs, markup in a name is text", async () => {
    assert.equal(runs.length, 5);
    assert.ok(hostile !== undefined, `names: ${runs.map((run) => run.name).join(", ")}`);
    await page.goto(`${origin}/#/${encodeURIComponent(hostile.id)}/curves`);
    await byId(page, "run-select").waitFor();
    assert.ok((await byId(page, "run-select").textContent()).includes(HOSTILE));
    await until("the run's title", async () => (await page.title()).includes(HOSTILE));
    assert.equal(await page.locator("img, [onerror]").count(), 0);
    await until("the job's end", async () => await byId(page, "state").textContent() === "done");
  });
  await check("serve_only: markup in a metric's name is text", async () => {
    await page.goto(`${origin}/#/${encodeURIComponent(other.id)}/snapshots`);
    await byId(page, "snapshots").getByText(HOSTILE_METRIC).first().waitFor();
    await showView(page, "curves");
    await byId(page, "curves").getByText(HOSTILE_METRIC).first().waitFor();
    assert.equal(await page.locator("img, [onerror]").count(), 0);
    await page.goto(`${origin}/#/${encodeURIComponent(hostile.id)}/curves`);
  });
  await check("serve_only: how long ago a run has ended", async () => {
    const {time} = (await json(`${origin}/api/v1/runs`)).body;
    const {tasks} = (await json(`${origin}/api/v1/runs/${encodeURIComponent(other.id)}/cluster`)).body;
    await page.goto(`${origin}/#/${encodeURIComponent(other.id)}/cluster`);
    const chief = byId(page, "task-chief-0");
    await chief.waitFor();
    const [, minutes = 0, seconds = 0] = (await chief.textContent()).match(/since (?:(\d+) min)? ?(?:(\d+) s)?/);
    const least = Math.floor(time - tasks.find((task) => task.task === "chief-0").since) - 1;
    assert.ok(60 * Number(minutes) + Number(seconds) >= least, `${minutes} min ${seconds} s, at least ${least} s were expected`);
    await page.goto(`${origin}/#/${encodeURIComponent(hostile.id)}/curves`);
  });
  await check("serve_only: ROC, precision and recall, and calibration of a binary run", async () => {
    await page.goto(`${origin}/#/${encodeURIComponent(other.id)}/classification`);
    const step = Number(await page.locator(".report-head[data-step]").getAttribute("data-step"));
    const {auc} = evaluationsOf(second.modelDir).find((evaluation) => evaluation.step === step);
    assert.ok(auc > 0.5 && auc < 1, `AUC ${auc}`);
    const shown = Number(await byId(page, "report-AUC").textContent());
    assert.ok(Math.abs(shown - auc) < 0.01, `AUC: the page says ${shown}, metrics.jsonl ${auc}`);
    for (const plot of ["roc", "precision-recall", "calibration", "calibration-deciles", "scores"]) {
      await byId(page, plot).locator(".plot-line").first().waitFor({state: "attached"});
    }
    assert.equal(await byId(page, "scores").locator(".plot-line").count(), 2, "a line for each label");
    const entropy = Number(await byId(page, "report-normalized-entropy").textContent());
    assert.ok(entropy > 0 && entropy < 1, `normalized entropy ${entropy}`);
    await screenshots.take(page, "binary", {fullPage: true});
    await page.goto(`${origin}/#/${encodeURIComponent(hostile.id)}/curves`);
  });
  await check("serve_only: two runs side by side", async () => {
    await showView(page, "curves");
    await byId(page, `compare-${other.id}`).check();
    await until("both curves", async () => await page.locator('[data-testid^="chart-accuracy-last-"][data-value]').count() === 2);
    const last = job.evaluations().at(-1);
    assert.equal(Number(await byId(page, "chart-accuracy-last-eval/accuracy").getAttribute("data-value")), last.accuracy);
    await screenshots.take(page, "compare");
  });
  await check("serve_only: cluster, report and predictions are still there", async () => {
    await showView(page, "cluster");
    await byId(page, "task-worker-0").waitFor();
    await showView(page, "classification");
    await byId(page, "confusion").waitFor();
    await showView(page, "try");
    await draw(page, ONE);
    await until("the drawn 1 is taken for a 1", async () => await byId(page, "prediction").textContent() === "1");
  });
  await check("serve_only: the graph of a model of ids", async () => {
    await page.goto(`${origin}/#/clicks/model`);
    await byId(page, "model-layer:history_vector").focus();
    assert.match(await byId(page, "model-details").textContent(), /embedding_bag.*item_vector\/embeddings.*those of item_vector/s);
    assert.match(await byId(page, "model-layer:click").textContent(), /frozen/);
    assert.equal(await page.locator(".model-shared").count(), 1);
    await screenshots.take(page, "graph", {fullPage: true});
  });
  await check("serve_only: an example of ids is tried", async () => {
    await showView(page, "try");
    const note = (feature) => byId(page, `feature-note-${feature}`).textContent();
    await byId(page, "feature-user").fill("100");
    await until("an id that is out of range is named", async () => /0 to 99, found "100"/.test(await note("user")));
    await byId(page, "feature-user").fill("7");
    await byId(page, "feature-item").fill("49");
    await byId(page, "feature-history").fill("3:0.5, 12 x");
    await until("a word that is no id is named", async () => /id 3: .*"x"/.test(await note("history")));
    await byId(page, "feature-history").fill("3:0.5, 12");
    await showsPrediction(page, `${origin}/api/v1/runs/clicks/predict`,
      {features: {user: 7, item: 49, history: {ids: [3, 12], weights: [0.5, 1]}}});
    await screenshots.take(page, "try-ids");
  });
  await check("serve_only: a record of the evaluation begins an example of ids", async () => {
    const {body} = await json(`${origin}/api/v1/runs/clicks/form`);
    const {features, record, labels} = body.examples[0];
    await page.reload();
    await until("the first record is there", async () => await byId(page, "feature-user").inputValue() === features.user);
    const {ids, weights} = features.history;
    assert.equal(await byId(page, "feature-history").inputValue(), ids.map((id, i) => `${id}:${weights[i]}`).join(", "));
    assert.equal(await byId(page, "example-note").textContent(), `Record ${record} of the evaluation data, where clicked is ${labels.clicked}.`);
    await showsPrediction(page, `${origin}/api/v1/runs/clicks/predict`, {features});
  });
  await check("serve_only: a record of columns is tried, with the keyboard", async () => {
    const predict = `${origin}/api/v1/runs/visits/predict`;
    const {body} = await json(`${origin}/api/v1/runs/visits/form`);
    assert.deepEqual(body.examples.map(({record}) => record), [0, 25, 50, 75, 100, 125, 150, 175]);
    await page.goto(`${origin}/#/visits/try`);
    const fields = ["age", "tags", "home city"];
    const shows = async (person) => {
      const values = await Promise.all(fields.map((name) => byId(page, `column-${name}`).inputValue()));
      return values.every((value, i) => value === person[fields[i]]);
    };
    await until("the first record is there", () => shows(visits.people[0]));
    assert.equal(await byId(page, "example-note").textContent(), `Record 0 of the evaluation data, where bought is ${visits.people[0].bought}.`);
    await byId(page, "next-example").focus();
    await page.keyboard.press("Enter");
    await until("the next record is there", () => shows(visits.people[25]));
    await showsPrediction(page, predict, {columns: body.examples[1].columns});
    await page.keyboard.press("Tab");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("old");
    await until("the field says what is wrong", async () =>
      await byId(page, "column-note-age").textContent() === 'expected a number, found "old"');
    assert.equal(await byId(page, "column-age").getAttribute("aria-invalid"), "true");
    assert.match(await byId(page, "prediction").textContent(), /cannot be read/);
    await screenshots.take(page, "try-columns-error");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("33");
    await showsPrediction(page, predict, {columns: {...body.examples[1].columns, age: "33"}});
    assert.equal(await byId(page, "column-note-age").textContent(), "");
    assert.match(await byId(page, "example-note").textContent(), /^Changed from record 25 /);
    await screenshots.take(page, "try-columns");
    await byId(page, "clear").click();
    await until("nothing is predicted of nothing", async () => await byId(page, "prediction").textContent() === "Fill in the fields.");
  });
  await check("serve_only: wrong examples have what the file has in its columns", async () => {
    await page.goto(`${origin}/#/visits/classification`);
    const {body} = await json(`${origin}/api/v1/runs/visits/report`);
    const {record} = body.wrong[0];
    const {age, tags, "home city": city} = visits.people[record];
    const row = page.locator(`[data-testid="wrong-rows"] tr[data-record="${record}"]`);
    await row.waitFor();
    const cells = await row.locator("td").allTextContents();
    for (const value of [age, tags, city]) assert.ok(cells.includes(value === "" ? "missing" : value), `${value}: ${cells}`);
    await screenshots.take(page, "wrong-columns", {fullPage: true});
  });
  await check("serve_only: ranking within groups and wrong examples of a model of ids", async () => {
    await page.goto(`${origin}/#/clicks/classification`);
    const {body} = await json(`${origin}/api/v1/runs/clicks/report`);
    const [{auc, groups}] = body.group_auc;
    assert.match(await byId(page, "group-auc").textContent(), new RegExp(`user${auc.toFixed(4)}.*${groups}`));
    const slice = body.slices.find(({feature}) => feature === "item");
    await byId(page, "slice-feature").selectOption("item");
    assert.match(await byId(page, "slice-values").textContent(), new RegExp(`${slice.values[0].id}${slice.values[0].examples}`));
    assert.ok((await byId(page, "slice-frequencies").textContent()).includes(`(${slice.frequencies[0].ids} ids)`));
    const worst = body.wrong.find((example) => example.features[2].count > 0);
    const {ids, weights} = worst.features[2];
    const row = page.locator(`[data-testid="wrong-rows"] tr[data-record="${worst.record}"]`);
    const text = await row.textContent();
    assert.equal(await row.locator("td").count(), 6);
    assert.ok(text.includes(`${ids[0]} × ${Number(weights[0].toPrecision(4))}`), text);
    await screenshots.take(page, "clicks", {fullPage: true});
  });
  await check("serve_only: how many items two towers have ranked", async () => {
    await page.goto(`${origin}/#/pairs/classification`);
    const {body} = await json(`${origin}/api/v1/runs/pairs/report`);
    assert.deepEqual(body.retrieval.map(({metrics}) => metrics), [["recall@5"], ["ndcg@5"]]);
    assert.equal(body.retrieval[0].queries, 500);
    const shown = await byId(page, "retrieval").textContent();
    for (const {metrics, items, queries} of body.retrieval) assert.ok(shown.includes(`${metrics}${items}${queries}`), shown);
    await screenshots.take(page, "pairs", {fullPage: true});
  });
  await check("serve_only: the nearest items of a user", async () => {
    const {body: form} = await json(`${origin}/api/v1/runs/pairs/form`);
    assert.deepEqual(form.nearest, {item_feature: "item", features: ["user"]});
    const {user, item} = form.examples[0].features;
    await page.goto(`${origin}/#/pairs/try`);
    await until("the first record is there", async () => await byId(page, "feature-user").inputValue() === user);
    const shows = async (features, k) => {
      const {status, body} = await json(`${origin}/api/v1/runs/pairs/nearest`, {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({features, k})});
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body.nearest.length, Math.min(k, body.items));
      const ids = body.nearest.map(({id}) => id).join();
      await until(`the items ${ids}`, async () =>
        (await byId(page, "nearest-items").locator("code").allTextContents()).join() === ids);
    };
    await shows({user}, 10);
    await byId(page, "nearest-count").selectOption("20");
    await shows({user}, 20);
    assert.equal(await page.locator("tr.own code").textContent(), item);
    await byId(page, "feature-item").fill("");
    await byId(page, "feature-user").fill("3");
    await shows({user: 3}, 20);
    await screenshots.take(page, "try-nearest", {fullPage: true});
    await byId(page, "feature-user").fill("50");
    await until("the user's field says what is wrong", async () => /0 to 49, found "50"/.test(await byId(page, "feature-note-user").textContent()));
    await until("there are no items", async () => await byId(page, "nearest-note").textContent() === "Fill in user.");
  });
  await check("serve_only: nothing can be changed", async () => {
    const answer = await json(`${origin}/api/v1/runs/${encodeURIComponent(hostile.id)}/actions/end_training`, {
      method: "POST", headers: {"Content-Type": "application/json", "Authorization": `Bearer ${job.token}`}, body: "{}"});
    assert.equal(answer.status, 403);
  });
  await check("serve_only: no console errors, no request to another host", () => {
    // The browser reports the answer to a value that cannot be read.
    assert.deepEqual(opened.problems.filter((problem) => !/400.*visits\/predict/.test(problem)), []);
    assert.deepEqual(opened.foreign, []);
  });
  await opened.close();
  await check("serve_only: ends when asked to", async () => {
    server.child.kill("SIGTERM");
    assert.equal(await server.exit, 0);
  });
}

// An evaluation with one more metric.
function plantMarkup(modelDir) {
  const last = evaluationsOf(modelDir).at(-1);
  appendFileSync(join(modelDir, "eval", "metrics.jsonl"), `${JSON.stringify({...last, step: last.step + 1, [HOSTILE_METRIC]: 0.5})}\n`);
}
