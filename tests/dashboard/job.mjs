// A job of real processes on this machine, in a folder of its own that is removed at the end.

import {spawn} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, openSync, closeSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createServer} from "node:net";
import {constants, setPriority, tmpdir} from "node:os";
import {join, resolve} from "node:path";

const POLL_MS = 50;
// A machine that is busy with other tests is slow.
export const PATIENCE_MS = 60_000;
const LOG_LINES = 15;

const DIGITS = {
  units: 10, loss: "SOFTMAX_CROSS_ENTROPY", metrics: "metrics { accuracy {} } metrics { top_k { k: 3 } }",
};
const BINARY = {units: 1, loss: "SIGMOID_CROSS_ENTROPY", metrics: "metrics { accuracy {} } metrics { auc {} }"};

// Small enough to learn most of the digits in seconds.
function config({units, loss, metrics}, steps) {
  return `
model {
  name: "mlp"
  input_shape: [28, 28, 1]
  layers { flatten {} }
  layers { name: "hidden" dense { units: 256 kernel_initializer: HE_NORMAL } }
  layers { relu {} }
  layers { name: "scores" dense { units: ${units} } }
  loss { kind: ${loss} }
}
optimizer { momentum { momentum: 0.9 } }
learning_rate { base: 0.005 }
train { batch_size: 128 max_steps: ${steps} seed: 1 summary_steps: 50 }
checkpoint { save_seconds: 3 }
evaluation { ${metrics} }
`;
}

const CLICKS = `
model {
  name: "clicks"
  features { name: "user" id {} }
  features { name: "item" id {} }
  features { name: "history" bag { weighted: true } }
  layers { name: "user_vector" inputs: "user" embedding { rows: 100 dim: 8 } }
  layers { name: "item_vector" inputs: "item" embedding { rows: 50 dim: 8 } }
  layers { name: "history_vector" inputs: "history" embedding_bag { rows: 50 dim: 8 } variables_of: "item_vector" }
  layers { name: "visitor" add {} inputs: "user_vector" inputs: "history_vector" }
  layers { name: "match" multiply {} inputs: "visitor" inputs: "item_vector" }
  layers { name: "click" dense { units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
}
optimizer { adam {} groups { variables: "click/*" frozen: true } }
learning_rate { base: 0.01 }
data { generated_clicks { train_records: 2000 eval_records: 500 } }
train { batch_size: 64 max_steps: 50 seed: 1 }
evaluation { metrics { auc {} } metrics { group_auc { feature: "user" } } }
`;

const PAIRS = `
model {
  name: "pairs"
  features { name: "user" id {} }
  features { name: "item" id {} }
  layers { name: "user_vector" inputs: "user" embedding { rows: 50 dim: 8 } }
  layers { name: "item_vector" inputs: "item" embedding { rows: 20 dim: 8 } }
  loss { kind: IN_BATCH_SOFTMAX queries: "user_vector" items: "item_vector" }
}
optimizer { adam {} }
learning_rate { base: 0.01 }
data { generated_pairs { users: 50 items: 20 train_records: 2000 eval_records: 500 } }
train { batch_size: 64 max_steps: 30 seed: 1 }
evaluation {
  metrics { retrieval { measure: RECALL k: 5 item_feature: "item" } }
  metrics { retrieval { measure: NDCG k: 5 item_feature: "item" query_feature: "user" } }
}
`;

// A table of people, of whom those with the tag "loyal" mostly buy.
const PEOPLE = 1000;
const VISITS = `
model {
  name: "visits"
  features { name: "age" dense { shape: 1 } }
  features { name: "tags" bag {} }
  features { name: "city" id {} }
  tables { name: "weights" dim: 1 }
  layers { name: "tags_sum" inputs: "tags" embedding_bag { table: "weights" combiner: SUM } }
  layers { name: "city_weight" inputs: "city" embedding { table: "weights" } }
  layers { name: "all" concat {} inputs: "age" inputs: "tags_sum" inputs: "city_weight" }
  layers { name: "score" dense { units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY label: "bought" }
}
optimizer { adam {} }
learning_rate { base: 0.05 }
data {
  csv {}
  features { name: "age" columns { number { mean: 40 stddev: 15 } } }
  features { name: "tags" columns { separator: "|" } }
  features { name: "city" columns { column: "home city" } }
}
train { batch_size: 64 max_steps: 60 seed: 1 }
evaluation { metrics { auc {} } }
`;

// Asks `condition` again and again; its first answer that is neither false nor undefined nor null.
export async function until(what, condition) {
  const end = performance.now() + PATIENCE_MS;
  let last;
  for (;;) {
    try {
      const answer = await condition();
      if (answer !== false && answer !== undefined && answer !== null) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) {
      throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s${last === undefined ? "" : ` (${last.message})`}`);
    }
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

export async function freePorts(count) {
  const servers = await Promise.all(Array.from({length: count}, () => new Promise((done, fail) => {
    const server = createServer().once("error", fail).listen(0, "127.0.0.1", () => done(server));
  })));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

export class Processes {
  constructor(binaries, digits) {
    this.binaries = resolve(binaries);
    this.folder = mkdtempSync(join(tmpdir(), "keelson-dashboard-"));
    this.data = existsSync(digits) ? [`--data_dir=${resolve(digits)}`] : [];
    this.running = new Map();
  }

  // What a name like "worker-1" stands for is in `log(name)`.
  start(name, program, flags, {nice = 0} = {}) {
    const log = openSync(join(this.folder, `${name}.log`), "a");
    const child = spawn(join(this.binaries, program), flags, {stdio: ["ignore", log, log], cwd: this.folder, env: {...process.env, TF_CONFIG: ""}});
    closeSync(log);
    const run = {child, exit: new Promise((done) => child.once("exit", (code, signal) => done(signal ?? code)))};
    child.once("error", (error) => writeFileSync(join(this.folder, `${name}.log`), `${error.message}\n`));
    if (nice > 0 && child.pid !== undefined) {
      // So that the browser gets its share of a small machine.
      setPriority(child.pid, Math.min(nice, constants.priority.PRIORITY_LOW));
    }
    this.running.set(name, run);
    void run.exit.then(() => this.running.get(name) === run && this.running.delete(name));
    return run;
  }

  log(name) {
    const file = join(this.folder, `${name}.log`);
    return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-LOG_LINES).join("\n") : "";
  }

  async stopAll() {
    const all = [...this.running.values()];
    for (const run of all) run.child.kill("SIGKILL");
    await Promise.all(all.map((run) => run.exit));
  }

  remove() {
    rmSync(this.folder, {recursive: true, force: true});
  }
}

// 2 servers, 2 workers, chief and evaluator.
export class Job {
  static async start(processes, steps) {
    const job = new Job(processes);
    const [chief, ps0, ps1, worker0, worker1, dashboard] = await freePorts(6);
    const at = (...ports) => ports.map((port) => `127.0.0.1:${port}`).join(",");
    job.modelDir = join(processes.folder, processes.data.length > 0 ? "mnist" : "digits");
    mkdirSync(job.modelDir);
    const file = join(processes.folder, "job.textproto");
    writeFileSync(file, config(DIGITS, steps));
    job.token = "a-token-of-the-browser-test";
    job.tokenFile = join(processes.folder, "token");
    writeFileSync(job.tokenFile, `${job.token}\n`, {mode: 0o600});
    job.url = `http://127.0.0.1:${dashboard}`;
    job.common = [
      `--config=${file}`, `--model_dir=${job.modelDir}`, ...processes.data,
      `--chief_hosts=${at(chief)}`, `--ps_hosts=${at(ps0, ps1)}`, `--worker_hosts=${at(worker0, worker1)}`,
    ];
    job.own = {
      evaluator: [`--dashboard_port=${dashboard}`, `--auth_token_file=${job.tokenFile}`],
      // A short lease: that a worker is lost is known soon.
      chief: ["--lease=2", `--auth_token_file=${job.tokenFile}`],
    };
    job.runs = {
      "evaluator-0": job.startTask("evaluator", 0), "chief-0": job.startTask("chief", 0),
      "ps-0": job.startTask("ps", 0), "ps-1": job.startTask("ps", 1),
      "worker-0": job.startTask("worker", 0), "worker-1": job.startTask("worker", 1),
    };
    return job;
  }

  constructor(processes) {
    this.processes = processes;
  }

  startTask(role, index) {
    const program = role === "ps" ? "ps_server" : role;
    const computes = role === "worker" || role === "evaluator" ? ["--device=cpu", "--compute_threads=1"] : [];
    return this.processes.start(`${role}-${index}`, program,
      [...this.common, `--job_name=${role}`, `--task_index=${index}`, ...computes, ...(this.own[role] ?? [])], {nice: role === "worker" ? 15 : 0});
  }

  evaluations() {
    return evaluationsOf(this.modelDir);
  }
}

// The records of eval/metrics.jsonl whose line is complete.
export function evaluationsOf(modelDir) {
  const file = join(modelDir, "eval", "metrics.jsonl");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1).map((line) => JSON.parse(line)) : [];
}

// A whole job in one process, on generated records.
function startSmallJob(processes, name, config, flags = []) {
  const modelDir = join(processes.folder, name);
  mkdirSync(modelDir);
  const file = join(processes.folder, `${name}.textproto`);
  writeFileSync(file, config);
  return {modelDir, ...processes.start(name, "chief", [`--config=${file}`, `--model_dir=${modelDir}`, "--device=cpu", "--compute_threads=1", ...flags])};
}

// A run of a model of the columns of a CSV file, of which the last fifth evaluates: `people` are its rows.
export function startVisitsJob(processes) {
  const dataDir = join(processes.folder, "people");
  mkdirSync(dataDir);
  const people = Array.from({length: PEOPLE}, (_, i) => {
    const loyal = i % 3 === 0;
    return {
      age: i % 11 === 0 ? "" : String(18 + i % 60), tags: [...(loyal ? ["loyal"] : []), `t${i % 7}`].join("|"),
      "home city": ["Oslo", "São Paulo", "Rome, Italy"][i % 4] ?? "", bought: loyal && i % 10 !== 0 ? "1" : "0",
    };
  });
  const line = (values) => values.map((value) => value.includes(",") ? `"${value}"` : value).join(",");
  writeFileSync(join(dataDir, "people.csv"), [line(Object.keys(people[0])), ...people.map((person) => line(Object.values(person)))].join("\n"));
  return {people: people.slice(PEOPLE * 4 / 5), ...startSmallJob(processes, "visits", VISITS, [`--data_dir=${dataDir}`])};
}

// A run of a model of two ids and a weighted bag of ids.
export function startClicksJob(processes) {
  return startSmallJob(processes, "clicks", CLICKS);
}

// A run of two towers.
export function startPairsJob(processes) {
  return startSmallJob(processes, "pairs", PAIRS);
}

// A second run for comparisons, with labels of two kinds: a whole job in one process.
export function startBinaryJob(processes, steps) {
  const modelDir = join(processes.folder, "second");
  const dataDir = join(processes.folder, "patches");
  mkdirSync(modelDir);
  mkdirSync(dataDir);
  writePatches(dataDir, 2000);
  const file = join(processes.folder, "second.textproto");
  writeFileSync(file, config(BINARY, steps));
  return {modelDir, ...processes.start("second", "chief",
    [`--config=${file}`, `--model_dir=${modelDir}`, `--data_dir=${dataDir}`, "--device=cpu", "--compute_threads=1"])};
}

// IDX files: a patch in noise, mostly the brighter one where the label is 1.
function writePatches(folder, count) {
  const side = 28;
  const labels = Buffer.alloc(8 + count);
  labels.writeUInt32BE(0x801, 0);
  labels.writeUInt32BE(count, 4);
  const images = Buffer.alloc(16 + count * side * side);
  [0x803, count, side, side].forEach((value, i) => images.writeUInt32BE(value, 4 * i));
  let state = 1;
  const random = () => (state = (state * 48271) % 0x7fffffff) / 0x7fffffff;
  for (let record = 0; record < count; ++record) {
    const label = random() < 0.5 ? 0 : 1;
    labels[8 + record] = label;
    const brightness = 60 + 60 * label + 90 * random();
    for (let y = 0; y < side; ++y) {
      for (let x = 0; x < side; ++x) {
        const inPatch = Math.abs(x - 14) < 5 && Math.abs(y - 14) < 5;
        images[16 + (record * side + y) * side + x] = (inPatch ? brightness : 0) + 30 * random();
      }
    }
  }
  writeFileSync(join(folder, "patches-labels-idx1-ubyte"), labels);
  writeFileSync(join(folder, "patches-images-idx3-ubyte"), images);
}
