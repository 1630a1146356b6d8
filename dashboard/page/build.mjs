// Checks the types and bundles the page. usage: node build.mjs WORK_FOLDER CC_FILE
// WORK_FOLDER is what install.mjs has made. Its out/ gets the page's files, and CC_FILE these, compressed, as C++.

import {spawnSync} from "node:child_process";
import {createHash} from "node:crypto";
import {readFileSync, rmSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {basename, extname, join} from "node:path";
import {gzipSync} from "node:zlib";

const MAX_GZIPPED_BYTES = 200 * 1000;
// Lines are short enough for every compiler.
const BYTES_PER_LINE = 64;
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const [work, ccFile] = process.argv.slice(2);
const {build} = createRequire(join(work, "package.json"))("esbuild");

function fail(text) {
  console.error(`the dashboard's page: ${text}`);
  process.exit(1);
}

function checkTypes() {
  const tsc = spawnSync(join(work, "node_modules/.bin/tsc"), [], {cwd: work, encoding: "utf8"});
  if (tsc.status !== 0) fail(`its types do not fit\n${tsc.error?.message ?? tsc.stdout}`);
}

// The files that the page loads: [path, bytes]. Their names change with what is in them, so that no browser puts an old
// one beside a new one.
async function bundle() {
  const result = await build({
    absWorkingDir: work,
    entryPoints: {app: "src/main.ts"},
    outdir: "out",
    entryNames: "assets/[name]-[hash]",
    write: false,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022", "chrome109", "firefox115", "safari16.4"],
    preserveSymlinks: true,
    legalComments: "inline",
    logLevel: "warning",
  });
  return result.outputFiles.map((file) => [`/assets/${basename(file.path)}`, Buffer.from(file.contents)]);
}

function icon() {
  const bytes = readFileSync(join(work, "src/icon.svg"));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 8).toUpperCase();
  return [`/assets/icon-${hash}.svg`, bytes];
}

// index.html, which names the files without their hashes: /assets/app.js.
function indexWith(assets) {
  const text = readFileSync(join(work, "src/index.html"), "utf8");
  return text.replace(/\/assets\/[\w.]+/g, (plain) => {
    const found = assets.find(([path]) => path.replace(/-[0-9A-Z]{8}(?=\.)/, "") === plain);
    return found?.[0] ?? fail(`index.html names ${plain}, found ${assets.map(([path]) => path).join(", ")}`);
  });
}

// Octal, for it ends after three digits whatever comes next.
function literal(bytes) {
  const lines = [];
  for (let begin = 0; begin < bytes.length; begin += BYTES_PER_LINE) {
    const octal = [...bytes.subarray(begin, begin + BYTES_PER_LINE)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`);
    lines.push(`          "${octal.join("")}"`);
  }
  return lines.join("\n");
}

function source(assets) {
  const entries = assets.map(([path, , packed]) => `  assets["${path}"] = Asset{
      "${TYPES[extname(path) || ".html"]}",
      std::string(
${literal(packed)},
          ${packed.length}),
      /*gzipped=*/true};`);
  return `// Made by dashboard/page/build.mjs.
#include <string>

#include "dashboard/assets.h"

namespace keelson {

AssetTable EmbeddedDashboardAssets() {
  AssetTable assets;
${entries.join("\n")}
  return assets;
}

}  // namespace keelson
`;
}

checkTypes();
const files = [...await bundle(), icon()];
const assets = [["/", Buffer.from(indexWith(files))], ...files].map(([path, bytes]) => [path, bytes, gzipSync(bytes, {level: 9})]);
const total = assets.reduce((sum, [, , packed]) => sum + packed.length, 0);
const sizes = assets.map(([path, , packed]) => `${path} ${packed.length}`).join(", ");
if (total > MAX_GZIPPED_BYTES) {
  fail(`expected at most ${MAX_GZIPPED_BYTES} bytes gzipped, found ${total} (${sizes})`);
}
rmSync(ccFile, {force: true});
writeFileSync(ccFile, source(assets));
console.log(`the dashboard's page: ${total} bytes gzipped (${sizes})`);
