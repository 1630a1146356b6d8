
#include "absl/strings/str_cat.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::StartsWith;

constexpr char kValid[] = R"(
  model {
    input_shape: 4
    layers { dense { units: 3 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.1 }
  train { batch_size: 8 max_steps: 10 }
)";

constexpr char kWithTable[] = R"(
  model {
    features { name: "user" id {} }
    tables { name: "users" dim: 4 }
    layers { embedding { table: "users" } }
    layers { dense { units: 3 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.1 }
  train { batch_size: 8 max_steps: 10 }
)";

// `change` is merged over the valid configuration.
struct BadConfig {
  const char* name;
  const char* change;
  const char* error;
};

absl::Status FinalizeWith(const std::string& change) {
  v1::TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kValid, &config));
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(change, &config));
  return FinalizeTrainConfig(&config);
}

class CheckTrainConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(CheckTrainConfigTest, TextBeginsWithTheField) {
  const absl::Status status = FinalizeWith(GetParam().change);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().error));
}

const BadConfig kBadConfigs[] = {
    {"Units", "model { layers { dense { units: -3 } } }",
     "model.layers[1].dense.units: expected > 0, found -3"},
    {"LayerKind", "model { layers {} }", "model.layers[1]"},
    {"NegativeBatch", "train { batch_size: -3 }", "train.batch_size: expected > 0, found -3"},
    {"NoBatch", "train { batch_size: 0 }", "train.batch_size: expected > 0, found 0"},
    {"NegativeSteps", "train { max_steps: -1 }", "train.max_steps: expected >= 0, found -1"},
    {"NegativeEpochs", "train { epochs: -1 }", "train.epochs: expected >= 0, found -1"},
    {"BothEnds", "train { epochs: 1 }",
     "train: expected exactly one of max_steps and epochs, found both"},
    {"NoEnd", "train { max_steps: 0 }",
     "train: expected exactly one of max_steps and epochs, found neither"},
    {"SummarySteps", "train { summary_steps: -1 }", "train.summary_steps: expected > 0, found -1"},
    {"MinWorkers", "collective { min_workers: -1 }",
     "collective.min_workers: expected >= 0, found -1"},
    {"HistogramSteps", "train { histogram_steps: -1 }",
     "train.histogram_steps: expected >= 0, found -1"},
    {"MaxLoss", "train { max_loss: -1 }", "train.max_loss: expected >= 0, found -1"},
    {"InitialValues", "initial_values { groups { variables: 'head/*' constant {} } }",
     "initial_values.groups[0].variables: expected a pattern that matches a variable, found"},
    {"RateZero", "learning_rate { base: 0 }", "learning_rate.base: expected > 0, found 0"},
    {"RateNegative", "learning_rate { base: -0.5 }",
     "learning_rate.base: expected > 0, found -0.5"},
    {"RateNan", "learning_rate { base: nan }", "learning_rate.base: expected > 0, found nan"},
    {"RateInfinite", "learning_rate { base: inf }", "learning_rate.base: expected > 0, found inf"},
    {"WarmUp", "learning_rate { warmup_steps: -1 }",
     "learning_rate.warmup_steps: expected >= 0, found -1"},
    {"NoBoundaries", "learning_rate { step { factor: 0.1 } }",
     "learning_rate.step.boundaries: expected at least one step, found none"},
    {"FirstBoundary", "learning_rate { step { boundaries: 0 factor: 0.1 } }",
     "learning_rate.step.boundaries[0]: expected > 0, found 0"},
    {"BoundaryOrder", "learning_rate { step { boundaries: [5, 5] factor: 0.1 } }",
     "learning_rate.step.boundaries[1]: expected > 5, found 5"},
    {"StepFactor", "learning_rate { step { boundaries: 5 } }",
     "learning_rate.step.factor: expected > 0, found 0"},
    {"ExponentialRate", "learning_rate { exponential { decay_steps: 5 } }",
     "learning_rate.exponential.rate: expected > 0, found 0"},
    {"ExponentialSteps", "learning_rate { exponential { rate: 0.5 } }",
     "learning_rate.exponential.decay_steps: expected > 0, found 0"},
    {"CosineSteps", "learning_rate { cosine { decay_steps: -1 } }",
     "learning_rate.cosine.decay_steps: expected >= 0, found -1"},
    {"CosineAlpha", "learning_rate { cosine { alpha: 1.5 } }",
     "learning_rate.cosine.alpha: expected in [0, 1], found 1.5"},
    {"Momentum", "optimizer { momentum { momentum: 1 } }",
     "optimizer.momentum.momentum: expected in [0, 1), found 1"},
    {"AdagradAccumulator", "optimizer { adagrad { initial_accumulator: -1 } }",
     "optimizer.adagrad.initial_accumulator: expected >= 0, found -1"},
    {"AdagradEpsilon", "optimizer { adagrad { epsilon: 0 } }",
     "optimizer.adagrad.epsilon: expected > 0, found 0"},
    {"RmsPropDecay", "optimizer { rmsprop { decay: 1.5 } }",
     "optimizer.rmsprop.decay: expected in [0, 1), found 1.5"},
    {"RmsPropMomentum", "optimizer { rmsprop { momentum: -0.5 } }",
     "optimizer.rmsprop.momentum: expected in [0, 1), found -0.5"},
    {"RmsPropEpsilon", "optimizer { rmsprop { epsilon: -1 } }",
     "optimizer.rmsprop.epsilon: expected > 0, found -1"},
    {"AdamBeta1", "optimizer { adam { beta1: 1 } }",
     "optimizer.adam.beta1: expected in [0, 1), found 1"},
    {"AdamBeta2", "optimizer { adam { beta2: -1 } }",
     "optimizer.adam.beta2: expected in [0, 1), found -1"},
    {"AdamEpsilon", "optimizer { adam { epsilon: 0 } }",
     "optimizer.adam.epsilon: expected > 0, found 0"},
    {"AdamWBeta", "optimizer { adamw { beta1: nan } }",
     "optimizer.adamw.beta1: expected in [0, 1), found nan"},
    {"WeightDecay", "optimizer { adamw { weight_decay: -1 } }",
     "optimizer.adamw.weight_decay: expected >= 0, found -1"},
    {"FtrlAccumulator", "optimizer { ftrl { initial_accumulator: -1 } }",
     "optimizer.ftrl.initial_accumulator: expected >= 0, found -1"},
    {"FtrlL1", "optimizer { ftrl { l1: -1 } }", "optimizer.ftrl.l1: expected >= 0, found -1"},
    {"FtrlL2", "optimizer { ftrl { l2: nan } }", "optimizer.ftrl.l2: expected >= 0, found nan"},
    {"FtrlShrinkage", "optimizer { ftrl { l2_shrinkage: inf } }",
     "optimizer.ftrl.l2_shrinkage: expected >= 0, found inf"},
    {"FtrlBeta", "optimizer { ftrl { beta: -1 } }", "optimizer.ftrl.beta: expected >= 0, found -1"},
    {"FtrlWithScaledRates",
     "optimizer { ftrl {} } consistency { stale_gradients { scale_learning_rate: true } }",
     "consistency.stale_gradients.scale_learning_rate: expected false with ftrl, whose rate scales "
     "the values, found true"},
    {"AdamExact", "optimizer { adam { beta1: 0.9 beta2: 0.5 exact: true } }",
     "optimizer.adam.beta1: expected below the square root of beta2 with exact, found 0.9"},
    {"RowWiseAccumulator", "optimizer { row_wise_adagrad { initial_accumulator: -1 } }",
     "optimizer.row_wise_adagrad.initial_accumulator: expected >= 0, found -1"},
    {"RowWiseEpsilon", "optimizer { row_wise_adagrad { epsilon: 0 } }",
     "optimizer.row_wise_adagrad.epsilon: expected > 0, found 0"},
    {"RowWiseVariable", "optimizer { row_wise_adagrad {} }",
     "optimizer.row_wise_adagrad: expected an algorithm for variables, found one for the rows of "
     "tables alone, and dense_1/kernel"},
    {"RowWiseVariableOfAGroup", "optimizer { groups { variables: '*/bias' row_wise_adagrad {} } }",
     "optimizer.groups[0].row_wise_adagrad: expected an algorithm for variables, found one for the "
     "rows of tables alone, and dense_1/bias"},
    {"GroupExactDecay", "optimizer { groups { variables: '*' exact_weight_decay: true } }",
     "optimizer.groups[0].weight_decay: expected > 0 with exact_weight_decay, found 0"},
    {"GroupPattern", "optimizer { groups {} }",
     "optimizer.groups[0].variables: expected a pattern such as \"*\" or \"dense_1/*\", found "
     "\"\""},
    {"GroupMatchesNothing",
     "optimizer { groups { variables: '*' } groups { variables: 'dense_2/*' } }",
     "optimizer.groups[1].variables: expected a pattern that matches a variable, found "
     "\"dense_2/*\""},
    {"GroupAfterAnother",
     "optimizer { groups { variables: 'dense_1/*' } groups { variables: '*/bias' } }",
     "optimizer.groups[1].variables: expected a pattern that matches a variable of no group before "
     "it, found \"*/bias\""},
    {"GroupRule", "optimizer { groups { variables: '*' adam { beta1: 1 } } }",
     "optimizer.groups[0].adam.beta1: expected in [0, 1), found 1"},
    {"GroupFtrl", "optimizer { groups { variables: '*' ftrl { l1: -1 } } }",
     "optimizer.groups[0].ftrl.l1: expected >= 0, found -1"},
    {"GroupRate", "optimizer { groups { variables: '*' learning_rate: 0 } }",
     "optimizer.groups[0].learning_rate: expected > 0, found 0"},
    {"GroupFactor", "optimizer { groups { variables: '*' learning_rate_factor: inf } }",
     "optimizer.groups[0].learning_rate_factor: expected > 0, found inf"},
    {"GroupDecay", "optimizer { groups { variables: '*' weight_decay: nan } }",
     "optimizer.groups[0].weight_decay: expected >= 0, found nan"},
    {"GroupDecayOfFtrl", "optimizer { groups { variables: '*' ftrl {} weight_decay: 0.5 } }",
     "optimizer.groups[0].weight_decay: expected none with ftrl (its l2), found 0.5"},
    {"GroupClip", "optimizer { groups { variables: '*' clip_value: -1 } }",
     "optimizer.groups[0].clip_value: expected >= 0, found -1"},
    {"GroupL2", "optimizer { groups { variables: '*' l2: inf } }",
     "optimizer.groups[0].l2: expected >= 0, found inf"},
    {"GroupFrozenAndMore", "optimizer { groups { variables: '*/bias' frozen: true l2: 0 } }",
     "optimizer.groups[0].frozen: expected no other setting of the group beside it, found some"},
    {"AllFrozen",
     "optimizer { groups { variables: '*/bias' frozen: true } groups { variables: '*' frozen: true "
     "} }",
     "optimizer.groups: expected a variable that is not frozen, found none"},
    {"GroupOfAverages",
     "model { layers { batch_norm {} } } "
     "optimizer { groups { variables: 'batch_norm_1/moving_*' frozen: true } }",
     "optimizer.groups[0].variables: expected a pattern that matches more than moving averages, "
     "found \"batch_norm_1/moving_*\""},
    {"FtrlGroupWithScaledRates",
     "optimizer { groups { variables: '*' ftrl {} } } "
     "consistency { stale_gradients { scale_learning_rate: true } }",
     "consistency.stale_gradients.scale_learning_rate: expected false with ftrl, whose rate scales "
     "the values, found true"},
    {"ClipNorm", "optimizer { clip_global_norm: -1 }",
     "optimizer.clip_global_norm: expected >= 0, found -1"},
    {"ClipValue", "optimizer { clip_value: -1 }", "optimizer.clip_value: expected >= 0, found -1"},
    {"L2", "optimizer { l2: -1 }", "optimizer.l2: expected >= 0, found -1"},
    {"TrainRecords", "data { generated { train_records: -1 } }",
     "data.generated.train_records: expected > 0, found -1"},
    {"EvalRecords", "data { generated { eval_records: -1 } }",
     "data.generated.eval_records: expected > 0, found -1"},
    {"SubsetBegin", "data { train_subset { begin: -1 } }",
     "data.train_subset.begin: expected >= 0, found -1"},
    {"SubsetEnd", "data { eval_subset { begin: 5 end: 5 } }",
     "data.eval_subset.end: expected 0 (all) or > 5 (its begin), found 5"},
    {"MaxBadRecords", "data { libsvm {} max_bad_records: -1 }",
     "data.max_bad_records: expected >= 0, found -1"},
    {"CsvSeparator", "data { csv { separator: '::' } }",
     "data.csv.separator: expected one character that ends no line and is no quotation mark, or "
     "\"tab\", found \"::\""},
    {"CsvSeparatorQuote", "data { csv { separator: '\"' } }", "data.csv.separator: expected one"},
    {"CsvSeparatorNewline", "data { csv { separator: '\\n' } }",
     "data.csv.separator: expected one"},
    {"CsvHeader", "data { csv { header: ['a', ''] } }",
     "data.csv.header[1]: expected a column's name, found \"\""},
    {"FeaturesOfColumns", "data { features { name: 'features' } }",
     "data.features: expected none without data.csv, tf_record, npz or parquet, found 1"},
    {"LabelsOfColumns", "data { libsvm {} labels { name: 'label' } }",
     "data.labels: expected none without data.csv, tf_record, npz or parquet, found 1"},
    {"ColumnsOfAFeature", "data { tf_record {} features { name: 'x' } }",
     "data.features[0].name: expected one of features, found \"x\""},
    {"TrainFiles", "data { train_files: 'a' }",
     "data.train_files: expected none without data.libsvm, libffm, criteo, csv, "
     "tf_record, npz, parquet or columnar, found 1"},
    {"EvalFiles", "data { eval_files: ['a', 'b'] }",
     "data.eval_files: expected none without data.libsvm, libffm, criteo, csv, "
     "tf_record, npz, parquet or columnar, found 2"},
    {"BadRecordsOfIdx", "data { max_bad_records: 3 }",
     "data.max_bad_records: expected none without data.libsvm, libffm, criteo, csv, "
     "tf_record, npz, parquet or columnar, found 3"},
    {"OrderGroup", "data { order_group: -1 }", "data.order_group: expected >= 0, found -1"},
    {"StreamOfIdx", "data { stream {} }",
     "data.stream: expected data.libsvm, libffm, criteo, csv or tf_record beside it, found another "
     "source"},
    {"StreamWithoutFiles", "data { libsvm {} stream {} }",
     "data.train_files: expected names of the files of data.stream, as in \"part-*\", found none"},
    {"StreamWithoutEvaluation", "data { libsvm {} stream {} train_files: 'a*' }",
     "data.eval_files: expected the files that evaluate, as the last fifth of data.stream is never "
     "known, found none"},
    {"StreamWithASubset",
     "data { libsvm {} stream {} train_files: 'a*' eval_files: 'b' train_subset { end: 5 } }",
     "data.train_subset: expected none beside data.stream, found one"},
    {"StreamEnd", "data { libsvm {} stream { end_file: '/x' } train_files: 'a*' eval_files: 'b' }",
     "data.stream.end_file: expected the name of a file in data_dir, found \"/x\""},
    {"StreamInEpochs",
     "data { libsvm {} stream {} train_files: 'a*' eval_files: 'b' } train { epochs: 2 }",
     "train.epochs: expected 0, as data.stream is visited once, found 2"},
    {"StreamInRounds",
     "data { libsvm {} stream {} train_files: 'a*' eval_files: 'b' } "
     "consistency { mode { synchronous { replicas_to_aggregate: 2 } } }",
     "consistency.mode: expected async or bounded_staleness with data.stream"},
    {"CtrRecords", "data { generated_ctr { train_records: -1 } }",
     "data.generated_ctr.train_records: expected > 0, found -1"},
    {"PairRecords", "data { generated_pairs { eval_records: -1 } }",
     "data.generated_pairs.eval_records: expected > 0, found -1"},
    {"SaveSeconds", "checkpoint { save_seconds: -1 }",
     "checkpoint.save_seconds: expected >= 0, found -1"},
    {"SaveSteps", "checkpoint { save_steps: -1 }",
     "checkpoint.save_steps: expected >= 0, found -1"},
    {"SaveBoth", "checkpoint { save_seconds: 1 save_steps: 1 }",
     "checkpoint: expected at most one of save_seconds and save_steps, found both"},
    {"KeepMax", "checkpoint { keep_max: -1 }", "checkpoint.keep_max: expected >= 0, found -1"},
    {"FullEvery", "checkpoint { full_every: -1 }",
     "checkpoint.full_every: expected >= 0, found -1"},
    {"FullEveryMost", "checkpoint { full_every: 101 }",
     "checkpoint.full_every: expected <= 100, found 101"},
    {"FullEveryTables", "checkpoint { full_every: 2 }",
     "checkpoint.full_every: expected at most 1 without model.tables, found 2"},
    {"KeepHours", "checkpoint { keep_every_n_hours: -1 }",
     "checkpoint.keep_every_n_hours: expected >= 0, found -1"},
    {"EvalBatch", "evaluation { batch_size: -1 }", "evaluation.batch_size: expected > 0, found -1"},
    {"EvalTimeout", "evaluation { final_timeout_seconds: -1 }",
     "evaluation.final_timeout_seconds: expected >= 0, found -1"},
    {"EvalSteps", "evaluation { steps: -1 }", "evaluation.steps: expected >= 0, found -1"},
    {"StartDelay", "evaluation { start_delay_seconds: -1 }",
     "evaluation.start_delay_seconds: expected >= 0, found -1"},
    {"Throttle", "evaluation { throttle_seconds: -1 }",
     "evaluation.throttle_seconds: expected >= 0, found -1"},
    {"NoPatience", "evaluation { early_stopping {} }",
     "evaluation.early_stopping.patience: expected > 0, found 0"},
    {"MinDelta", "evaluation { early_stopping { patience: 1 min_delta: nan } }",
     "evaluation.early_stopping.min_delta: expected >= 0, found nan"},
    {"MinSteps", "evaluation { early_stopping { patience: 1 min_steps: -1 } }",
     "evaluation.early_stopping.min_steps: expected >= 0, found -1"},
    {"UnknownStoppingMetric", "evaluation { early_stopping { patience: 1 metric: 'recall' } }",
     "evaluation.early_stopping.metric: expected one of \"loss\", \"accuracy\" (the metrics), "
     "found \"recall\""},
    {"NoExporterKind", "evaluation { exporters {} }",
     "evaluation.exporters[0]: expected one of final_snapshot, latest and best, found none"},
    {"KeepLatest", "evaluation { exporters { latest { keep: -1 } } }",
     "evaluation.exporters[0].latest.keep: expected > 0, found -1"},
    {"KeepBest", "evaluation { exporters { best { keep: -1 } } }",
     "evaluation.exporters[0].best.keep: expected > 0, found -1"},
    {"UnknownBestMetric", "evaluation { exporters { best { metric: 'auc' } } }",
     "evaluation.exporters[0].best.metric: expected one of \"loss\", \"accuracy\" (the metrics)"},
    {"ExporterTwice", "evaluation { exporters { latest {} } exporters { latest { keep: 2 } } }",
     "evaluation.exporters[1]: expected at most one exporter of each kind"},
    {"NoMetric", "evaluation { metrics {} }",
     "evaluation.metrics[0]: expected accuracy, top_k, auc, precision, recall, "
     "mean_squared_error, mean_absolute_error, normalized_entropy, calibration, group_auc or "
     "retrieval, found none"},
    {"RetrievalOfClasses", "evaluation { metrics { retrieval { k: 1 item_feature: 'item' } } }",
     "evaluation.metrics[0].retrieval: expected a model with the loss IN_BATCH_SOFTMAX, found "
     "SOFTMAX_CROSS_ENTROPY"},
    {"TopK", "evaluation { metrics { top_k { k: 4 } } }",
     "evaluation.metrics[0].top_k.k: expected 1..3 (the classes), found 4"},
    {"MetricTwice", "evaluation { metrics { recall {} } metrics { recall {} } }",
     "evaluation.metrics[1]: expected each metric once, found recall again"},
    {"AucOfClasses", "evaluation { metrics { auc {} } }",
     "evaluation.metrics[0].auc: expected a model with the loss SIGMOID_CROSS_ENTROPY, found "
     "SOFTMAX_CROSS_ENTROPY"},
    {"AccuracyOfRegression",
     "model { layers { dense { units: 1 } } loss { kind: MEAN_SQUARED_ERROR } }"
     "evaluation { metrics { accuracy {} } }",
     "evaluation.metrics[0].accuracy: expected a model with the loss SOFTMAX_CROSS_ENTROPY or "
     "SIGMOID_CROSS_ENTROPY or IN_BATCH_SOFTMAX, found MEAN_SQUARED_ERROR"},
    {"ClassNames", "data { class_names: ['a', 'b'] }",
     "data.class_names: expected 3 (the classes), found 2"},
    {"ClassNameTwice", "data { class_names: ['a', 'b', 'a'] }",
     "data.class_names[2]: expected a name of its own, found 'a'"},
    {"ClassNameEmpty", "data { class_names: ['a', '', 'c'] }",
     "data.class_names[1]: expected a name of its own, found ''"},
    {"ClassNamesOfRegression",
     "model { layers { dense { units: 1 } } loss { kind: MEAN_SQUARED_ERROR } }"
     "data { class_names: 'a' }",
     "data.class_names: expected none (the model's labels are numbers), found 1"},
    {"Depth", "transfer { depth: 3 }", "transfer.depth: expected 1 or 2, found 3"},
    {"GroupWithoutPattern", "transfer { groups { push: INT8 } }", "transfer.groups[0].variables"},
    {"PullOfGradientsFormat",
     "transfer { groups { variables: 'a' } groups { variables: '*' pull: INT8 } }",
     "transfer.groups[1].pull"},
    {"TopKFraction", "transfer { groups { variables: '*' push: TOP_K top_k_fraction: 1.5 } }",
     "transfer.groups[0].top_k_fraction"},
    {"Staleness", "consistency { mode { bounded_staleness { staleness: -1 } } }",
     "consistency.mode.bounded_staleness.staleness: expected 0..1073741824, found -1"},
    {"NoReplicas", "consistency { mode { synchronous {} } }",
     "consistency.mode.synchronous.replicas_to_aggregate: expected 1..1048576, found 0"},
    {"TotalReplicas",
     "consistency { mode { synchronous { replicas_to_aggregate: 4 total_replicas: 3 } } }",
     "consistency.mode.synchronous.total_replicas: expected 4 (replicas_to_aggregate)..1048576, "
     "found 3"},
    {"DeterministicAsync", "consistency { mode { async {} } deterministic_sum: true }",
     "consistency.deterministic_sum: expected false without synchronous steps"},
    {"DeterministicBackups",
     "consistency { mode { synchronous { replicas_to_aggregate: 2 total_replicas: 3 } } "
     "deterministic_sum: true }",
     "consistency.deterministic_sum: expected false with more total_replicas than "
     "replicas_to_aggregate"},
    {"DeterministicStream",
     "data { libsvm {} stream {} train_files: 'a*' eval_files: 'b' } "
     "consistency { deterministic_sum: true }",
     "consistency.deterministic_sum: expected false without synchronous steps"},
    {"DelayLambda", "consistency { stale_gradients { delay_compensation { lambda: -1 } } }",
     "consistency.stale_gradients.delay_compensation.lambda: expected >= 0, found -1"},
    {"DelayDecay", "consistency { stale_gradients { delay_compensation { decay: 1 } } }",
     "consistency.stale_gradients.delay_compensation.decay: expected in [0, 1), found 1"},
    {"DelayEpsilon", "consistency { stale_gradients { delay_compensation { epsilon: 0 } } }",
     "consistency.stale_gradients.delay_compensation.epsilon: expected > 0, found 0"},
    {"FormatOfAverages",
     "model { layers { batch_norm {} } } "
     "transfer { groups { variables: 'batch_norm_1/moving_mean' pull: BFLOAT16 } }",
     "transfer.groups[0]: expected push and pull FLOAT32 for \"batch_norm_1/moving_mean\", which "
     "matches moving averages alone, found push FLOAT32, pull BFLOAT16"},
    {"MinElements", "transfer { groups { variables: '*' push: INT8 min_elements: -1 } }",
     "transfer.groups[0].min_elements"},
};

INSTANTIATE_TEST_SUITE_P(All, CheckTrainConfigTest, testing::ValuesIn(kBadConfigs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FinalizeTrainConfigSectionsTest, TheUnchangedConfigIsValid) {
  const absl::Status status = FinalizeWith("");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(FinalizeTrainConfigSectionsTest, EverySectionIsRequiredWhereItHasNoDefault) {
  v1::TrainConfig config;
  EXPECT_THAT(std::string(FinalizeTrainConfig(&config).message()), StartsWith("model."));
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kValid, &config));
  config.clear_optimizer();
  EXPECT_EQ(FinalizeTrainConfig(&config).message(),
            "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl and "
            "row_wise_adagrad, found "
            "none");
}

TEST(FinalizeTrainConfigSectionsTest, TablesExcludeSomeSettings) {
  const BadConfig all[] = {
      {"DelayCompensation", "consistency { stale_gradients { delay_compensation {} } }",
       "consistency.stale_gradients.delay_compensation: expected none of a model with tables, "
       "whose rows have no earlier values, found some"},
      {"Depth", "transfer { depth: 2 }", "transfer.depth: expected 1 of a model with tables"},
      {"TopK", "transfer { groups { variables: '*' push: TOP_K } }",
       "transfer.groups[0].push: expected FLOAT32, FLOAT16, BFLOAT16 or INT8 for the table "
       "\"users\", found TOP_K"},
      {"InitialValues", "initial_values { groups { variables: 'users' he_normal {} } }",
       "initial_values.groups[0]: expected constant, uniform, normal or truncated_normal for the "
       "table \"users\", found he_normal"},
  };
  for (const BadConfig& bad : all) {
    v1::TrainConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kWithTable, &config));
    ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(bad.change, &config));
    const absl::Status status = FinalizeTrainConfig(&config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.name;
    EXPECT_THAT(std::string(status.message()), StartsWith(bad.error));
  }
}

TEST(OptimizerGroupsTest, AGroupHasOneAlgorithmAndOneRate) {
  for (const char* two : {"sgd {} adam {}", "learning_rate: 1 learning_rate_factor: 1"}) {
    const std::string text = absl::StrCat("optimizer { groups { variables: '*' ", two, " } }");
    const absl::Status status = ParseTrainConfig(text, "job").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), StartsWith("job:1:")) << text;
  }
}

TEST(OptimizerGroupsTest, GoodGroupsGetTheirDefaults) {
  v1::TrainConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kValid, &config));
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      "optimizer { groups { variables: '*/kernel' ftrl {} learning_rate: 0.5 clip_value: 0 }"
      " groups { variables: '*/bias' adamw {} learning_rate_factor: 2 weight_decay: 0 } }",
      &config));
  const absl::Status status = FinalizeTrainConfig(&config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FLOAT_EQ(config.optimizer().groups(0).ftrl().initial_accumulator(), 0.1f);
  EXPECT_FLOAT_EQ(config.optimizer().groups(1).adamw().beta2(), 0.999f);
}

constexpr char kExternal[] = R"(
  model { external { variables { name: "w" shape: 3 } } }
  data { external { train_records: 100 } }
  optimizer { adam { corrected_epsilon: true } }
  learning_rate { base: 0.1 }
  train { batch_size: 8 epochs: 2 }
)";

absl::Status FinalizeExternal(const std::string& change) {
  v1::TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kExternal, &config));
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(change, &config));
  return FinalizeTrainConfig(&config);
}

TEST(ExternalModelTest, NeedsNothingButVariablesAndRecords) {
  EXPECT_EQ(FinalizeExternal(""), absl::OkStatus());
  for (const char* metrics : {"accuracy {} } metrics { top_k { k: 5 }",
                              "auc {} } metrics { calibration {}", "mean_absolute_error {}"}) {
    EXPECT_EQ(FinalizeExternal(absl::StrCat("evaluation { metrics { ", metrics, " } }")),
              absl::OkStatus())
        << metrics;
  }
  EXPECT_EQ(FinalizeExternal("consistency { mode { bounded_staleness { staleness: 2 } } }"),
            absl::OkStatus());
}

class CheckExternalModelTest : public testing::TestWithParam<BadConfig> {};

TEST_P(CheckExternalModelTest, TextBeginsWithTheField) {
  const absl::Status status = FinalizeExternal(GetParam().change);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().error));
}

const BadConfig kBadExternal[] = {
    {"Variable", "model { external { variables { shape: 3 } } }",
     "model.external.variables[1].name: expected a name"},
    {"NoRecords", "data { external { train_records: -1 } }",
     "data.external.train_records: expected > 0, found -1"},
    {"OtherRecords", "data { generated {} }", "data: expected external beside model.external"},
    {"Files", "data { train_files: 'a' }", "data.train_files: expected none without data."},
    {"Stream", "data { stream {} } train { epochs: 0 }", "data.stream: expected data.libsvm, "},
    {"Classes", "data { class_names: 'a' }", "data: expected neither features, labels nor "},
    {"Subset", "data { train_subset { end: 5 } }", "data: expected neither train_subset nor "},
    {"Clip", "optimizer { clip_global_norm: 1 }",
     "optimizer.clip_global_norm: expected 0 with model.external, whose script clips, found 1"},
    {"Histograms", "train { histogram_steps: 10 }",
     "train.histogram_steps: expected 0 with model.external, found 10"},
    {"Depth", "transfer { depth: 2 }", "transfer.depth: expected 1 with model.external, found 2"},
    {"Groups", "evaluation { metrics { group_auc { feature: 'user' } } }",
     "evaluation.metrics[0].group_auc: expected a model with the loss SIGMOID_CROSS_ENTROPY"},
    {"MetricsOfTwoKinds", "evaluation { metrics { auc {} } metrics { top_k { k: 2 } } }",
     "evaluation.metrics[0].auc: expected a model with the loss SIGMOID_CROSS_ENTROPY, found "
     "SOFTMAX_CROSS_ENTROPY"},
    {"StopsByNoMetric", "evaluation { early_stopping { metric: 'auc' patience: 1 } }",
     "evaluation.early_stopping.metric: expected one of \"loss\", \"accuracy\" (the metrics)"},
};

INSTANTIATE_TEST_SUITE_P(External, CheckExternalModelTest, testing::ValuesIn(kBadExternal),
                         [](const auto& info) { return info.param.name; });

TEST(ExternalModelTest, ItsRecordsAreOfNoOtherModel) {
  EXPECT_THAT(std::string(FinalizeWith("data { external { train_records: 5 } }").message()),
              StartsWith("data.external: expected records that the model can read"));
}

TEST(OptimizerGroupsTest, TablesHaveNoCorrectedEpsilon) {
  v1::TrainConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kWithTable, &config));
  config.mutable_optimizer()->mutable_adam()->set_corrected_epsilon(true);
  EXPECT_EQ(FinalizeTrainConfig(&config).message(),
            "optimizer.adam.corrected_epsilon: expected false for tables, found true, and users");
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      "optimizer { groups { variables: 'users' adamw { corrected_epsilon: true } } }", &config));
  EXPECT_EQ(FinalizeTrainConfig(&config).message(),
            "optimizer.groups[0].adamw.corrected_epsilon: expected false for tables, found true, "
            "and users");
}

TEST(OptimizerGroupsTest, AJobWithoutGroupsHasTheHashThatItHadBefore) {
  v1::TrainConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kValid, &config));
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  EXPECT_EQ(HashToString(ConfigHash(config)), "cc196f47405b662c");
}

TEST(FinalizeTrainConfigSectionsTest, RegressionHasNoDefaultMetric) {
  v1::TrainConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kValid, &config));
  config.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(1);
  config.mutable_model()->mutable_loss()->set_kind(v1::LossConfig::MEAN_SQUARED_ERROR);
  const absl::Status status = FinalizeTrainConfig(&config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.evaluation().metrics_size(), 0);
}

}  // namespace
}  // namespace keelson
