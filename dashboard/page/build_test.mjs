// Tests install.mjs and build.mjs; run by test.mjs, with the folder of installed packages in KEELSON_PAGE_WORK.

import {equal, match, ok} from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {createHash} from "node:crypto";
import {once} from "node:events";
import {appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {test} from "node:test";
import {fileURLToPath} from "node:url";
import {gunzipSync} from "node:zlib";

const page = dirname(fileURLToPath(import.meta.url));
const installed = process.env.KEELSON_PAGE_WORK;

function inFolder(body) {
  const folder = mkdtempSync(join(tmpdir(), "keelson-page-"));
  try {
    body(folder);
  } finally {
    rmSync(folder, {recursive: true});
  }
}

// A folder as install.mjs makes it, with sources of its own, which `change` may change.
function build(change, check) {
  inFolder((work) => {
    for (const file of ["package.json", "tsconfig.json"]) {
      cpSync(join(page, file), join(work, file));
    }
    symlinkSync(join(installed, "node_modules"), join(work, "node_modules"));
    cpSync(join(page, "src"), join(work, "src"), {recursive: true});
    change(work);
    const file = join(work, "embedded.cc");
    check(spawnSync(process.execPath, [join(page, "build.mjs"), work, file], {encoding: "utf8"}), file);
  });
}

function embeddedFiles(text) {
  const files = new Map();
  for (const [, path, type, literal, size] of
    text.matchAll(/assets\["([^"]+)"\] = Asset\{\s*"([^"]+)",\s*std::string\(([\\\d\s"]+),\s*(\d+)\)/g)) {
    const bytes = Buffer.from([...literal.matchAll(/\\(\d{3})/g)].map(([, octal]) => parseInt(octal, 8)));
    equal(bytes.length, Number(size));
    files.set(path, {type, text: gunzipSync(bytes).toString()});
  }
  return files;
}

function install(npm, check) {
  inFolder((folder) => {
    mkdirSync(join(folder, "bin"));
    if (npm !== undefined) writeFileSync(join(folder, "bin/npm"), npm, {mode: 0o755});
    check(spawnSync(process.execPath, [join(page, "install.mjs"), page, join(folder, "work")],
      {encoding: "utf8", env: {...process.env, PATH: join(folder, "bin")}}));
  });
}

// The package "small" as npm packs it, with `text` in it.
function pack(folder, text) {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({name: "small", version: "1.0.0"}));
  writeFileSync(join(folder, "index.js"), text);
  const packed = spawnSync("npm", ["pack"], {cwd: folder, encoding: "utf8"});
  equal(packed.status, 0, packed.stderr);
  return readFileSync(join(folder, "small-1.0.0.tgz"));
}

// install.mjs for a page whose lock names the package `locked`, from a registry that has `served`. The registry is the
// environment's, for the lock names none. `check` has the exit code, what was said, and the installed folder.
async function installFrom({locked, served}, folder, check) {
  const source = join(folder, "page");
  const root = {name: "page", dependencies: {small: "1.0.0"}};
  const integrity = `sha512-${createHash("sha512").update(locked).digest("base64")}`;
  const packages = {"": root, "node_modules/small": {version: "1.0.0", integrity}};
  mkdirSync(source);
  cpSync(join(page, ".npmrc"), join(source, ".npmrc"));
  writeFileSync(join(source, "tsconfig.json"), "{}");
  writeFileSync(join(source, "package.json"), JSON.stringify(root));
  writeFileSync(join(source, "package-lock.json"), JSON.stringify({...root, lockfileVersion: 3, requires: true, packages}));

  const server = createServer((request, response) => {
    const dist = {tarball: `http://127.0.0.1:${server.address().port}/small.tgz`};
    const versions = {"1.0.0": {name: "small", version: "1.0.0", dist}};
    const answers = {"/small": JSON.stringify({name: "small", "dist-tags": {latest: "1.0.0"}, versions}), "/small.tgz": served};
    response.statusCode = request.url in answers ? 200 : 404;
    response.end(answers[request.url]);
  }).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const env = {...process.env, NO_PROXY: "127.0.0.1", NPM_CONFIG_CACHE: join(folder, "cache"), NPM_CONFIG_FETCH_RETRIES: "0",
      NPM_CONFIG_REGISTRY: `http://127.0.0.1:${server.address().port}/`};
    const child = spawn(process.execPath, [join(page, "install.mjs"), source, join(folder, "work")], {env});
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => { said += text; });
    const [status] = await once(child, "close");
    check(status, said, join(folder, "work/node_modules/small"));
  } finally {
    server.close();
    rmSync(folder, {recursive: true});
  }
}

test("what is embedded is the page and what it names, and nothing comes from elsewhere", () => {
  build(() => {}, (result, file) => {
    equal(result.status, 0, result.stderr);
    const files = embeddedFiles(readFileSync(file, "utf8"));
    const index = files.get("/");
    equal(index.type, "text/html; charset=utf-8");
    const named = [...index.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path);
    equal(named.length, 3);
    for (const path of named) {
      match(path, /^\/assets\/\w+-[0-9A-Z]{8}\.(js|css|svg)$/);
      ok(files.has(path), path);
    }
    equal(files.size, named.length + 1);
    ok(!/<script(?![^>]* src=)|<style|\son\w+=/.test(index.text));
  });
});

test("a name changes with what is in the file", () => {
  const names = [];
  for (const change of [() => {}, (work) => appendFileSync(join(work, "src/style/base.css"), "\n.x { color: red; }\n")]) {
    build(change, (_, file) => names.push([...embeddedFiles(readFileSync(file, "utf8")).keys()].find((path) => path.endsWith(".css"))));
  }
  ok(names[0] !== names[1]);
});

test("types that do not fit end the build", () => {
  build((work) => appendFileSync(join(work, "src/main.ts"), "export const wrong: number = \"text\";\n"), (result) => {
    equal(result.status, 1);
    match(result.stderr, /the dashboard's page: its types do not fit\nsrc\/main\.ts.*not assignable/);
  });
});

test("a page that names what is not built ends the build", () => {
  build((work) => appendFileSync(join(work, "src/index.html"), "<img src=\"/assets/logo.png\">\n"), (result) => {
    equal(result.status, 1);
    match(result.stderr, /index\.html names \/assets\/logo\.png, found \/assets\/app-/);
  });
});

test("a page that is too large ends the build", () => {
  build((work) => {
    // Does not compress.
    const text = Array.from({length: 40_000}, (_, i) => Math.sin(i + 1).toString(36).slice(3)).join("");
    appendFileSync(join(work, "src/main.ts"), `(globalThis as {padding?: string}).padding = "${text}";\n`);
  }, (result) => {
    equal(result.status, 1);
    match(result.stderr, /expected at most 200000 bytes gzipped, found \d+ \(/);
  });
});

test("npm's failure is shown with what was wanted", () => {
  install("#!/bin/sh\necho 'npm error network' >&2\nexit 1\n", (result) => {
    equal(result.status, 1);
    match(result.stderr, /npm error network\nthe dashboard's page: npm cannot install what .*package-lock\.json names; expected npm's registry/);
  });
});

test("npm that is missing is said to be", () => {
  install(undefined, (result) => {
    equal(result.status, 1);
    match(result.stderr, /npm ENOENT\nthe dashboard's page: npm cannot install/);
  });
});

test("packages come from the registry that the environment names", async () => {
  const folder = mkdtempSync(join(tmpdir(), "keelson-page-"));
  const small = pack(join(folder, "small"), "// small\n");
  await installFrom({locked: small, served: small}, folder, (status, said, installedFolder) => {
    equal(status, 0, said);
    equal(readFileSync(join(installedFolder, "index.js"), "utf8"), "// small\n");
  });
});

test("a package that is not the one of the lock is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "keelson-page-"));
  const locked = pack(join(folder, "small"), "// small\n");
  const served = pack(join(folder, "other"), "// steals the token\n");
  await installFrom({locked, served}, folder, (status, said, installedFolder) => {
    equal(status, 1, said);
    match(said, /EINTEGRITY[^]*npm cannot install what .*package-lock\.json names/);
    ok(!existsSync(installedFolder));
  });
});
