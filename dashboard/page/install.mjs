// Installs what package-lock.json names, each package by its hash. usage: node install.mjs SOURCE_FOLDER WORK_FOLDER
// The packages go to WORK_FOLDER/node_modules, and src and test of SOURCE_FOLDER are linked beside them; nothing is
// written into SOURCE_FOLDER.

import {spawnSync} from "node:child_process";
import {copyFileSync, mkdirSync, rmSync, symlinkSync} from "node:fs";
import {join} from "node:path";

const [source, work] = process.argv.slice(2);
mkdirSync(work, {recursive: true});
for (const file of ["package.json", "package-lock.json", ".npmrc", "tsconfig.json"]) {
  copyFileSync(join(source, file), join(work, file));
}
for (const folder of ["src", "test"]) {
  rmSync(join(work, folder), {force: true});
  symlinkSync(join(source, folder), join(work, folder));
}
const npm = spawnSync("npm", ["ci", "--no-progress", "--prefer-offline"], {cwd: work, encoding: "utf8"});
if (npm.status !== 0) {
  const said = npm.error?.message ?? npm.stderr.trim().split("\n").slice(-20).join("\n");
  console.error(`${said}\nthe dashboard's page: npm cannot install what ${join(source, "package-lock.json")} names; expected npm's ` +
    "registry, or a mirror or cache, that has just that, or -DKEELSON_DASHBOARD_PAGE=OFF");
  process.exit(1);
}
