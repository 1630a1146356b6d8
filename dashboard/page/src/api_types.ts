// The JSON of docs/dashboard-api.md. Times are seconds since the epoch, durations seconds, sizes bytes;
// null is a number that is not finite, an absent field one that does not apply.

export type Value = number | null;

export interface RunSummary {
  id: string;
  name: string;
  model_dir: string;
  live: boolean;
  state: RunState;
}

export interface Runs {
  runs: RunSummary[];
  read_only: boolean;
  version: string;
  time: number;
}

export type RunState =
  "waiting" | "running" | "restarting" | "stopped" | "finishing" | "evaluating" | "done" | "failed";

export interface MetricAt {
  step: number;
  value: Value;
}

export interface RunMetric {
  name: string;
  higher_is_better?: boolean;
  best_at?: number;  // in its place: the closer to this, the better
  last?: MetricAt;
  best?: MetricAt;
}

export type TaskKind = "classification" | "binary" | "regression" | "retrieval";

export interface ModelTask {
  kind?: TaskKind;  // not of a script's model
  classes?: string[];
  input_shape?: number[];  // of a model that takes one feature, of numbers
  parameters: number;
}

export interface RunStatus {
  run: string;
  name: string;
  model_dir: string;
  live: boolean;
  state: RunState;
  state_text: string;
  error: string;
  end_reason: string;
  updated?: number;
  started?: number;
  step?: number;
  max_steps?: number;
  epoch?: Value;
  stream?: {file: string; done_records: number; known_records: number; ended: boolean};  // of a stream
  steps_per_epoch?: Value;
  mode?: string;
  loss?: Value;
  learning_rate?: Value;
  steps_per_second?: Value;
  examples_per_second?: Value;
  staleness?: Value;
  eta_seconds?: Value;
  best?: {metric: string; value: Value; step: number; exists: boolean};
  metrics?: RunMetric[];
  snapshot?: {
    step?: number;
    age_seconds?: Value;
    bytes?: number;
    write_seconds?: Value;
    failures?: number;
    error?: string;
  };
  task?: ModelTask;
}

export interface SeriesEntry {
  name: string;
  points: number;
  last?: {step: number; time: number; value: Value};
}

export interface SeriesList {
  run: string;
  series: SeriesEntry[];
}

// Equally long columns, in the order of steps.
export interface SeriesPoints {
  name: string;
  total?: number;
  step: number[];
  time: number[];
  value: Value[];
}

export interface SeriesData {
  run: string;
  x?: "step" | "time";
  series: SeriesPoints[];
}

export interface Snapshot {
  step: number;
  time?: number;
  bytes?: number;
  exists: boolean;
  evaluated?: number;
  evaluation_seconds?: number;
  examples?: number;
  metrics?: Record<string, Value>;
  best?: string[];
  exported?: string[];
}

export interface Snapshots {
  run: string;
  total: number; // also those that are left out
  snapshots: Snapshot[];
}

export interface SnapshotComparison {
  run: string;
  a: number;
  b: number;
  metrics: {name: string; a: Value; b: Value; change: Value}[];
  error?: string; // why there are no variables, where a snapshot cannot be read
  variables?: {
    name: string;
    shape: number[];
    norm_a: Value;
    norm_b: Value;
    norm_change: Value;
    max_change: Value;
    relative_change: Value;
  }[];
}

export type TaskState = "waiting" | "alive" | "away" | "restoring" | "lost" | "left" | "down";
export type TaskRole = "chief" | "ps" | "worker" | "evaluator";

export interface ClusterTask {
  task: string;
  role: TaskRole;
  index: number;
  state: TaskState;
  since?: number;
  restarts?: number;
  peer?: string;
  address?: string;
  // Who hosts the shard that `task` numbers, where that is no parameter server.
  host?: string;
  device?: string;
  shard_step?: number;
  value_bytes?: number;
  slot_bytes?: number;
  clients?: number;
  steps?: number;
  steps_per_second?: Value;
  examples_per_second?: Value;
  pushed_bytes_per_second?: Value;
  pulled_bytes_per_second?: Value;
  staleness?: {mean: Value; max: Value; bounds: number[]; counts: number[]};
  step_seconds?: {input: Value; pull: Value; compute: Value; push: Value};
  remarks?: {kind: "straggler" | "skew" | "stale" | "waiting"; text: string}[];
}

// A figure of the tasks that train; "staleness.max" is the key of a task's `staleness.max`.
export interface Figure {
  key: string;
  label: string;
  unit: string;
  help: string;
}

export interface Cluster {
  run: string;
  updated?: number;
  stale: boolean;
  figures: Figure[];
  tasks: ClusterTask[];
  tables?: ClusterTable[];
}

// An embedding table over all servers; `balance` is the most rows of a server over their mean.
export interface ClusterTable {
  name: string;
  dim?: number;
  rows?: number;
  bytes?: number;
  servers?: {task: string; rows?: number; bytes?: number}[];
  ghosts?: number;
  refused_rows?: number;
  admitted_rows?: number;
  expired_rows?: number;
  evicted_rows?: number;
  looked_up?: number;
  looked_up_absent?: number;
  row_ids?: {all?: number; distinct?: number};
  hottest?: {id: string; pushes?: number}[];
  balance?: Value;
}

export interface Placement {
  run: string;
  balance: Value;
  shards: {task: string; host?: string; bytes: number}[];
  variables: {
    name: string;
    shape: number[];
    bytes: number;
    partitions: {shard: number; row_begin: number; row_end: number; bytes: number}[];
  }[];
}

// The first values that an example has of a feature, of `count`: numbers, or ids; of a column of its file: texts.
export interface ExampleFeature {
  name: string;
  count: number;
  numbers?: Value[];
  ids?: string[];
  weights?: Value[];
  texts?: string[];
}

export interface WrongExample {
  record: number;
  label?: number;
  predicted?: number;
  confidence?: Value;
  label_probability?: Value;
  target?: Value;
  prediction?: Value;
  input?: {shape: number[]; values: number[]};
  features?: ExampleFeature[];  // of a model that takes several, or ids
  columns?: ExampleFeature[];  // of a record that is made of columns
}

export interface CalibrationBin {
  from: number;
  to: number;
  count: number;
  confidence: Value;
  accuracy: Value;
}

// The examples of label 0 and of label 1 with a score in [from, to).
export interface ScoreBin {
  from: number;
  to: number;
  counts: [number, number];
}

// The ranking within the groups of examples that have the same id of a feature.
export interface GroupAuc {
  feature: string;
  auc: Value;
  mean_auc: Value;
  groups: number;
  examples: number;
  one_label_groups: number;
  sampled: number;
}

// What metrics of retrieval are of; those together that rank alike.
export interface Ranking {
  metrics: string[];
  items: number;
  queries: number;
}

export interface SliceTotals {
  examples: number;
  share: Value;
  probability: Value;
  loss: Value;
  normalized_entropy: Value;
}

export interface Slice {
  feature: string;
  ids: number;
  values: (SliceTotals & {id: string})[];
  frequencies: (SliceTotals & {from: number; to: number; ids: number})[];
  others?: SliceTotals;
}

export interface Report {
  run: string;
  steps: number[];
  step: number;
  time: number;
  kind: TaskKind;
  examples: number;
  classes?: string[];
  accuracy?: Value;
  confusion?: number[][];
  per_class?: {precision: Value; recall: Value; f1: Value; support: number}[];
  calibration?: CalibrationBin[];
  calibration_error?: Value;
  calibration_ratio?: Value;
  normalized_entropy?: Value;
  calibration_deciles?: CalibrationBin[];
  scores?: ScoreBin[];
  group_auc?: GroupAuc[];
  retrieval?: Ranking[];
  slices?: Slice[];
  roc?: [number, number][];
  auc?: Value;
  precision_recall?: [number, number][];
  auc_pr?: Value;
  mean_squared_error?: Value;
  mean_absolute_error?: Value;
  pairs?: [Value, Value][];
  wrong: WrongExample[];
}

// A feature of a model: numbers of one shape, one id, or a bag of any number of ids. Ids are from 0 to below `ids`; without that they
// are any of 64 bits.
export type ModelFeature =
  {name: string; kind: "numbers"; shape: number[]} |
  {name: string; kind: "id"; ids?: number} |
  {name: string; kind: "bag"; ids?: number; weighted: boolean};

export interface ModelVariable {
  name: string;
  shape: number[];
  update: "optimizer" | "frozen" | "average";
}

export interface ModelLayer {
  name: string;
  kind: string;
  settings?: string;
  inputs: string[];  // features, and layers that come before
  output_shape?: number[];  // not of a module of a script's model
  parameters: number;  // without those of `variables_of`
  operations: number;
  variables: ModelVariable[];
  variables_of?: string;  // an earlier layer, whose variables this one shares
  table?: string;  // the embedding table whose rows it has in place of variables
}

// An embedding table: rows for any ids.
export interface ModelTable {
  name: string;
  dim: number;
}

export interface ModelLoss {
  kind: string;
  inputs: string[];  // layers
  label: string;
  weight: Value;
  delta?: Value;
  temperature?: Value;
  log_probability_label?: string;
  record_weights?: string;
}

export interface Model {
  run: string;
  name: string;
  parameters: number;
  operations: number;
  features: ModelFeature[];
  layers: ModelLayer[];
  tables: ModelTable[];
  losses: ModelLoss[];
  formulas: Record<string, string>;  // by kind of layer
  config: string;
}

// The values of an example: of a model with one feature, of numbers, these alone; else by the features' names.
// An id is a number, or a text where a number does not hold it exactly.
export type Id = number | string;
export type ExampleValue = Id | Id[] | {ids: Id[]; weights?: number[]};
export type Example = number[] | Record<string, ExampleValue>;

// What a record has in a column of its file: a text, or a list of them; null: it is missing.
export type ColumnValue = string | string[] | null;
export type PredictRequest = {features: Example} | {columns: Record<string, ColumnValue>};

// A column that a form asks for. A list with a separator is one text.
export interface FormColumn {
  name: string;
  kind: "number" | "integer" | "text";
  list: boolean;
  separator?: string;
  weight_separator?: string;
  values?: string[];
}

// A record of the evaluation: what a request has for it, and its labels.
export interface FormExample {
  record: number;
  columns?: Record<string, ColumnValue>;
  features?: Record<string, ExampleValue>;
  labels: Record<string, string | number>;
}

export interface Form {
  run: string;
  columns?: FormColumn[];  // of records that are made of columns
  examples: FormExample[];
  nearest?: NearestForm;  // of a model of two towers that finds items
}

// What of a form a request for the nearest items has: columns, or else features.
export interface NearestForm {
  item_feature: string;
  columns?: string[];
  features?: string[];
}

// The items of a query, the best first; ids are texts.
export interface Nearest {
  run: string;
  step: number;
  items: number;  // of which these are the nearest
  nearest: {id: string; score: Value}[];
  seconds: number;
}

export interface Prediction {
  run: string;
  step: number;
  kind: TaskKind;
  predicted?: number;
  class?: string;
  probabilities?: Value[];
  prediction?: Value;
  seconds: number;
}

// The events of the stream /api/v1/events.
export interface StreamEvents {
  hello: {time: number};
  status: RunStatus;
  cluster: Cluster;
  series: SeriesData;
  snapshots: Snapshots;
}
