// Runs the tests of the page's pure functions and of its build. usage: node test.mjs WORK_FOLDER
// WORK_FOLDER is what install.mjs has made. Exit code: 1 when one fails.

import {spawnSync} from "node:child_process";
import {readdirSync, rmSync} from "node:fs";
import {createRequire} from "node:module";
import {dirname, join, resolve} from "node:path";
import {fileURLToPath} from "node:url";

const [work] = process.argv.slice(2);
const {build} = createRequire(join(work, "package.json"))("esbuild");
const folder = join(work, "test-out");
const names = readdirSync(join(work, "test")).filter((name) => name.endsWith("_test.ts"));

rmSync(folder, {recursive: true, force: true});
await build({
  absWorkingDir: work,
  entryPoints: names.map((name) => `test/${name}`),
  outdir: folder,
  outExtension: {".js": ".mjs"},
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node18",
  preserveSymlinks: true,
  logLevel: "warning",
});
const files = [join(dirname(fileURLToPath(import.meta.url)), "build_test.mjs"),
  ...names.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")))];
const env = {...process.env, TZ: "UTC", KEELSON_PAGE_WORK: resolve(work)};
const result = spawnSync(process.execPath, ["--test", ...files], {stdio: "inherit", env});
process.exit(result.status ?? 1);
