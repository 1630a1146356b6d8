// A browser that remembers what should not have happened.

import {execFileSync} from "node:child_process";
import {mkdirSync} from "node:fs";
import {join} from "node:path";
import {chromium} from "playwright-core";
import {PATIENCE_MS} from "./job.mjs";

export const DESKTOP = {width: 1280, height: 900};
export const PHONE = {width: 390, height: 844};

export async function startBrowser() {
  const executablePath = execFileSync("/bin/sh", ["-c", "command -v chromium"], {encoding: "utf8"}).trim();
  // A container's root has no user namespaces for the sandbox; the pages are our own.
  return chromium.launch({executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"]});
}

// A page of `origin` in a context of its own. `problems`: what its console said wrong, `foreign`: requests that left the origin.
export async function openPage(browser, origin, options = {}) {
  const context = await browser.newContext({viewport: DESKTOP, ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const problems = [];
  const foreign = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      problems.push(`${message.text()} (${message.location().url})`);
    }
  });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => {
    problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:") && !url.startsWith("blob:")) {
      foreign.push(url);
    }
  });
  return {page, problems, foreign, close: () => context.close()};
}

export class Screenshots {
  constructor(folder) {
    this.folder = folder;
    mkdirSync(folder, {recursive: true});
  }

  async take(page, name, options = {}) {
    // What sticks to the window's edge would be in the middle of a whole page.
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({path: join(this.folder, `${name}.png`), animations: "disabled", ...options});
  }
}

export function byId(page, testid) {
  return page.locator(`[data-testid="${testid}"]`);
}

export async function showView(page, view) {
  await byId(page, `tab-${view}`).click();
  await page.locator(`[data-testid="tab-${view}"][aria-selected="true"]`).waitFor();
}

// How much wider than the window the page is.
export function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

// Draws over the pad: strokes of points in [0, 1].
export async function draw(page, strokes) {
  const pad = byId(page, "pad");
  await pad.scrollIntoViewIfNeeded();
  const box = await pad.boundingBox();
  for (const stroke of strokes) {
    const points = stroke.map(([x, y]) => [box.x + x * box.width, box.y + y * box.height]);
    await page.mouse.move(...points[0]);
    await page.mouse.down();
    for (const point of points.slice(1)) await page.mouse.move(...point, {steps: 3});
    await page.mouse.up();
  }
}

export const ONE = [[[0.54, 0.15], [0.5, 0.5], [0.46, 0.85]]];
export const ZERO = [Array.from({length: 33}, (_, i) => {
  const angle = 2 * Math.PI * i / 32 - Math.PI / 2;
  return [0.5 + 0.24 * Math.cos(angle), 0.5 + 0.34 * Math.sin(angle)];
})];
