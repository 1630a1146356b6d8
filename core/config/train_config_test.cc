#include "core/config/train_config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kMinimal[] = R"(
  model {
    input_shape: [6, 6, 1]
    layers { conv2d { filters: 2 kernel_size: 3 } }
    layers { max_pool { size: 2 } }
    layers { flatten {} }
    layers { dense { units: 4 } }
    layers { relu {} }
    layers { dense { units: 3 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.1 }
  train { batch_size: 8 max_steps: 10 }
)";

v1::TrainConfig Finalized(absl::string_view text) {
  auto config = ParseTrainConfig(text, "test");
  EXPECT_TRUE(config.ok()) << config.status();
  const absl::Status status = FinalizeTrainConfig(&*config);
  EXPECT_TRUE(status.ok()) << status;
  return *config;
}

TEST(ParseTrainConfigTest, ErrorsHaveFileLineAndColumn) {
  const auto unknown = ParseTrainConfig("train {\n  batch_sice: 3\n}\n", "job.textproto");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), StartsWith("job.textproto:2:13: "));
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("batch_sice"));

  const auto syntax = ParseTrainConfig("train { batch_size: ", "job.textproto");
  EXPECT_THAT(std::string(syntax.status().message()), StartsWith("job.textproto:1:21: "));

  const auto type = ParseTrainConfig("train { batch_size: 2.5 }", "job.textproto");
  EXPECT_THAT(std::string(type.status().message()), StartsWith("job.textproto:1:21: "));
}

TEST(LoadTrainConfigTest, ReadsAFileAndNamesAMissingOne) {
  const std::string path = testing::TempDir() + "/keelson_config_" + std::to_string(getpid());
  ASSERT_TRUE(WriteFileAtomically(path, kMinimal).ok());
  const auto config = LoadTrainConfig(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->train().batch_size(), 8);
  ASSERT_TRUE(WriteFileAtomically(path, "nonsense").ok());
  EXPECT_THAT(std::string(LoadTrainConfig(path).status().message()), StartsWith(path + ":1:"));
  ASSERT_TRUE(RemoveFile(path).ok());
  EXPECT_EQ(LoadTrainConfig(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadTrainConfig(path).status().message()), HasSubstr(path));
}

TEST(LoadTrainConfigTest, AFileThatIsTooLargeIsNotRead) {
  const std::string path = JoinPath(FreshDirectory(), "train_config.textproto");
  std::ofstream(path) << "model {}";
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  EXPECT_EQ(LoadTrainConfig(path).status(),
            absl::DataLossError(path + ": expected at most 16777216 bytes, found 1099511627776"));
}

TEST(DefaultTrainConfigTest, TheCompiledInTextAndTheExamplesAreComplete) {
  EXPECT_EQ(Finalized(DefaultTrainConfigText()).model().name(), "mnist_mlp");
  for (const char* path :
       {"configs/mnist_mlp.textproto", "configs/mnist_cnn.textproto",
        "configs/mnist_cnn_batch_norm.textproto", "configs/mnist_early_stopping.textproto",
        "configs/mnist_residual.textproto", "configs/regression_mlp.textproto",
        "configs/textures_residual.textproto", "configs/two_towers.textproto",
        "configs/two_towers_pairs.textproto", "configs/clicks_embeddings.textproto",
        "configs/dlrm_toy.textproto"}) {
    auto config = LoadTrainConfig(path);
    ASSERT_TRUE(config.ok()) << config.status();
    const absl::Status status = FinalizeTrainConfig(&*config);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(FinalizeTrainConfigTest, EarlyStoppingAndExportersKnowMetricsOfRetrieval) {
  const auto config = LoadTrainConfig("configs/two_towers_pairs.textproto");
  ASSERT_TRUE(config.ok()) << config.status();
  v1::TrainConfig by_recall = *config;
  auto* const stopping = by_recall.mutable_evaluation()->mutable_early_stopping();
  stopping->set_metric("recall@10");
  stopping->set_patience(3);
  by_recall.mutable_evaluation()->add_exporters()->mutable_best()->set_metric("ndcg@10");
  v1::TrainConfig by_another = by_recall;
  EXPECT_TRUE(FinalizeTrainConfig(&by_recall).ok());
  by_another.mutable_evaluation()->mutable_early_stopping()->set_metric("recall@20");
  EXPECT_THAT(std::string(FinalizeTrainConfig(&by_another).message()),
              HasSubstr("expected one of \"loss\", \"recall@10\", \"ndcg@10\", \"recall@50\""));
}

TEST(FinalizeTrainConfigTest, FillsTheDefaultsThatTheProtoNames) {
  const v1::TrainConfig config = Finalized(kMinimal);
  const auto& layers = config.model().layers();
  EXPECT_EQ(layers[0].name(), "conv2d_1");
  EXPECT_EQ(layers[3].name(), "dense_1");
  EXPECT_EQ(layers[5].name(), "dense_2");
  EXPECT_EQ(layers[0].conv2d().stride(), 1);
  EXPECT_EQ(layers[0].conv2d().padding(), v1::VALID);
  EXPECT_EQ(layers[0].conv2d().kernel_initializer(), v1::GLOROT_UNIFORM);
  EXPECT_EQ(layers[1].max_pool().stride(), 2);
  EXPECT_EQ(layers[3].dense().kernel_initializer(), v1::GLOROT_UNIFORM);
  EXPECT_TRUE(config.learning_rate().has_constant());
  EXPECT_EQ(config.data().generated().train_records(), 20000);
  EXPECT_EQ(config.data().generated().eval_records(), 4000);
  EXPECT_EQ(config.train().summary_steps(), 100);
  EXPECT_EQ(config.checkpoint().save_seconds(), 600);
  EXPECT_EQ(config.checkpoint().save_steps(), 0);
  EXPECT_EQ(config.checkpoint().keep_max(), 5);
  EXPECT_EQ(config.evaluation().batch_size(), 500);
  EXPECT_EQ(config.evaluation().final_timeout_seconds(), 600);
  ASSERT_EQ(config.evaluation().metrics_size(), 1);
  EXPECT_TRUE(config.evaluation().metrics(0).has_accuracy());
  EXPECT_EQ(config.transfer().depth(), 1);
  EXPECT_EQ(config.consistency().mode().mode_case(), v1::ConsistencyMode::MODE_NOT_SET);
  EXPECT_FALSE(config.consistency().stale_gradients().has_delay_compensation());
}

ClusterSpec ClusterOf(int servers, int workers) {
  ClusterSpec cluster;
  cluster.self = {Role::kWorker, 0};
  cluster.distributed = true;
  for (int i = 0; i < servers; ++i) cluster.ps[i] = absl::StrCat("ps:", i + 1);
  for (int i = 0; i < workers; ++i) cluster.workers[i] = absl::StrCat("worker:", i + 1);
  return cluster;
}

TEST(TrainConfigModeTest, TheClusterDecidesWhatTheConfigLeavesOpen) {
  const v1::TrainConfig config = Finalized(kMinimal);
  EXPECT_TRUE(WithModeOf(config, ClusterOf(2, 3)).consistency().mode().has_async());
  const v1::TrainConfig collective = WithModeOf(config, ClusterOf(0, 3));
  EXPECT_EQ(collective.consistency().mode().synchronous().replicas_to_aggregate(), 3);
  EXPECT_EQ(collective.consistency().mode().synchronous().total_replicas(), 3);
}

TEST(TrainConfigReplicasTest, ThreeHostsHaveReplicasUnlessTheConfigSaysOtherwise) {
  v1::TrainConfig config = Finalized(kMinimal);
  EXPECT_FALSE(WantsReplicas(config, ClusterOf(2, 3)));
  EXPECT_FALSE(WantsReplicas(config, ClusterOf(0, 2)));
  EXPECT_TRUE(WantsReplicas(config, ClusterOf(0, 3)));
  config.mutable_collective()->set_replicas(v1::CollectiveConfig::NEVER);
  EXPECT_FALSE(WantsReplicas(config, ClusterOf(0, 3)));
  config.mutable_collective()->set_replicas(v1::CollectiveConfig::ALWAYS);
  EXPECT_TRUE(WantsReplicas(config, ClusterOf(0, 2)));
  EXPECT_FALSE(WantsReplicas(config, ClusterOf(0, 1)));
  EXPECT_FALSE(WantsReplicas(config, ClusterOf(2, 3)));
}

TEST(TrainConfigModeTest, WhatTheConfigSaysStays) {
  v1::TrainConfig config = Finalized(kMinimal);
  config.mutable_consistency()->mutable_mode()->mutable_bounded_staleness()->set_staleness(2);
  const v1::TrainConfig collective = WithModeOf(config, ClusterOf(0, 3));
  EXPECT_EQ(collective.consistency().mode().bounded_staleness().staleness(), 2);
}

TEST(TrainConfigModeTest, TheHashIsThatOfTheAsynchronousMode) {
  const v1::TrainConfig open = Finalized(kMinimal);
  v1::TrainConfig async = open;
  async.mutable_consistency()->mutable_mode()->mutable_async();
  EXPECT_EQ(ConfigHash(open), ConfigHash(async));
}

TEST(TrainConfigClusterTest, TablesNeedServers) {
  const v1::TrainConfig dense = Finalized(kMinimal);
  v1::TrainConfig tables = dense;
  for (const char* name : {"users", "items"}) tables.mutable_model()->add_tables()->set_name(name);
  v1::TrainConfig script = dense;
  script.mutable_model()->mutable_external();
  for (const v1::TrainConfig& config : {dense, tables, script}) {
    EXPECT_EQ(CheckFitsCluster(config, ClusterOf(2, 3)), absl::OkStatus());
    EXPECT_EQ(CheckFitsCluster(config, ClusterSpec()), absl::OkStatus());
  }
  EXPECT_EQ(CheckFitsCluster(dense, ClusterOf(0, 3)), absl::OkStatus());
  EXPECT_EQ(CheckFitsCluster(script, ClusterOf(0, 3)), absl::OkStatus());
  EXPECT_EQ(CheckFitsCluster(tables, ClusterOf(0, 3)),
            absl::InvalidArgumentError(
                "model.tables: expected none in a cluster without parameter servers (TF_CONFIG "
                "cluster.ps or --ps_hosts), found 2, the first \"users\""));
}

TEST(TrainConfigClusterTest, DeterministicSumsAreThoseOfSynchronousSteps) {
  v1::TrainConfig config = Finalized(kMinimal);
  config.mutable_consistency()->set_deterministic_sum(true);
  EXPECT_EQ(CheckFitsCluster(config, ClusterOf(0, 3)), absl::OkStatus());
  const absl::Status with_servers = CheckFitsCluster(config, ClusterOf(2, 3));
  EXPECT_EQ(with_servers,
            absl::InvalidArgumentError(
                "consistency.deterministic_sum: expected false, as this cluster's mode is async "
                "where consistency.mode says none, found true"));
  EXPECT_EQ(CheckFitsCluster(config, ClusterSpec()), with_servers);
  config.mutable_consistency()->mutable_mode()->mutable_synchronous()->set_replicas_to_aggregate(3);
  EXPECT_EQ(CheckFitsCluster(config, ClusterOf(2, 3)), absl::OkStatus());
}

TEST(TrainConfigClusterTest, OneProcessIsNotTwo) {
  v1::TrainConfig config = Finalized(kMinimal);
  config.mutable_collective()->set_min_workers(2);
  EXPECT_EQ(CheckFitsCluster(config, ClusterOf(0, 3)), absl::OkStatus());
  EXPECT_EQ(CheckFitsCluster(config, ClusterOf(2, 1)), absl::OkStatus());
  EXPECT_EQ(CheckFitsCluster(config, ClusterSpec()),
            absl::InvalidArgumentError(
                "collective.min_workers: expected at most 1 in a job of one process, found 2"));
}

TEST(FinalizeTrainConfigTest, LayersThatShareVariablesGetNoInitializer) {
  const v1::TrainConfig config = Finalized(R"(
    model {
      input_shape: [6, 6, 2]
      layers { name: "a" conv2d { filters: 2 kernel_size: 3 padding: SAME } }
      layers { conv2d { filters: 2 kernel_size: 3 padding: SAME } variables_of: "a" }
      layers { flatten {} }
      layers { name: "b" dense { units: 72 } }
      layers { dense { units: 72 } variables_of: "b" }
      loss { kind: SOFTMAX_CROSS_ENTROPY }
    }
    optimizer { sgd {} }
    learning_rate { base: 0.1 }
    train { batch_size: 8 max_steps: 10 }
  )");
  EXPECT_EQ(config.model().layers(0).conv2d().kernel_initializer(), v1::GLOROT_UNIFORM);
  EXPECT_EQ(config.model().layers(1).conv2d().kernel_initializer(),
            v1::KERNEL_INITIALIZER_UNSPECIFIED);
  EXPECT_EQ(config.model().layers(1).conv2d().stride(), 1);
  EXPECT_EQ(config.model().layers(4).dense().kernel_initializer(),
            v1::KERNEL_INITIALIZER_UNSPECIFIED);
}

TEST(FinalizeTrainConfigTest, FillsTheCombinerAndTheNumbersOfClicks) {
  const auto config = LoadTrainConfig("configs/clicks_embeddings.textproto");
  ASSERT_TRUE(config.ok()) << config.status();
  v1::TrainConfig changed = *config;
  changed.mutable_model()->mutable_layers(2)->mutable_embedding_bag()->clear_combiner();
  changed.mutable_data()->mutable_generated_clicks()->Clear();
  ASSERT_TRUE(FinalizeTrainConfig(&changed).ok());
  EXPECT_EQ(changed.model().layers(2).embedding_bag().combiner(), v1::EmbeddingBag::MEAN);
  EXPECT_EQ(changed.data().generated_clicks().train_records(), 20000);
  EXPECT_EQ(changed.data().generated_clicks().eval_records(), 4000);
  changed.mutable_data()->mutable_generated_clicks()->set_eval_records(-1);
  EXPECT_THAT(std::string(FinalizeTrainConfig(&changed).message()),
              HasSubstr("data.generated_clicks.eval_records"));
}

TEST(FinalizeTrainConfigTest, FillsEvaluationDefaults) {
  v1::TrainConfig config = Finalized(DefaultTrainConfigText());
  v1::EvaluationConfig* evaluation = config.mutable_evaluation();
  EXPECT_FALSE(evaluation->has_early_stopping());
  evaluation->mutable_early_stopping()->set_patience(3);
  evaluation->add_exporters()->mutable_final_snapshot();
  evaluation->add_exporters()->mutable_latest();
  evaluation->add_exporters()->mutable_best();
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  EXPECT_EQ(evaluation->early_stopping().metric(), "loss");
  EXPECT_EQ(evaluation->exporters(1).latest().keep(), 5);
  EXPECT_EQ(evaluation->exporters(2).best().metric(), "loss");
  EXPECT_EQ(evaluation->exporters(2).best().keep(), 1);
}

TEST(FinalizeTrainConfigTest, FillsConsistencyDefaults) {
  const v1::TrainConfig config =
      Finalized(std::string(kMinimal) +
                "consistency { mode { synchronous { replicas_to_aggregate: 3 } } "
                "stale_gradients { delay_compensation {} } }");
  EXPECT_EQ(config.consistency().mode().synchronous().total_replicas(), 3);
  const auto& delay = config.consistency().stale_gradients().delay_compensation();
  EXPECT_FLOAT_EQ(delay.lambda(), 2);
  EXPECT_FLOAT_EQ(delay.decay(), 0.95f);
  EXPECT_FLOAT_EQ(delay.epsilon(), 1e-7f);
}

TEST(FinalizeTrainConfigTest, FillsTransferDefaults) {
  const v1::TrainConfig config =
      Finalized(std::string(kMinimal) + "transfer { groups { variables: '*' push: TOP_K } }");
  EXPECT_FLOAT_EQ(config.transfer().groups(0).top_k_fraction(), 0.01f);
  EXPECT_EQ(config.transfer().groups(0).min_elements(), 1024);
  EXPECT_EQ(config.transfer().groups(0).pull(), v1::FLOAT32);
}

TEST(FinalizeTrainConfigTest, FillsOptimizerDefaults) {
  auto optimizer = [](const std::string& kind) {
    std::string text = kMinimal;
    text.replace(text.find("sgd"), 3, kind);
    return Finalized(text).optimizer();
  };
  EXPECT_FLOAT_EQ(optimizer("momentum").momentum().momentum(), 0.9f);
  EXPECT_FLOAT_EQ(optimizer("adagrad").adagrad().initial_accumulator(), 0.1f);
  EXPECT_FLOAT_EQ(optimizer("adagrad").adagrad().epsilon(), 1e-7f);
  EXPECT_FLOAT_EQ(optimizer("rmsprop").rmsprop().decay(), 0.9f);
  EXPECT_TRUE(optimizer("rmsprop").rmsprop().has_momentum());
  EXPECT_FLOAT_EQ(optimizer("rmsprop").rmsprop().epsilon(), 1e-10f);
  EXPECT_FLOAT_EQ(optimizer("adam").adam().beta1(), 0.9f);
  EXPECT_FLOAT_EQ(optimizer("adam").adam().beta2(), 0.999f);
  EXPECT_FLOAT_EQ(optimizer("adamw").adamw().epsilon(), 1e-8f);
  EXPECT_FLOAT_EQ(optimizer("adamw").adamw().weight_decay(), 0.01f);
  EXPECT_FLOAT_EQ(optimizer("ftrl").ftrl().initial_accumulator(), 0.1f);
  // With it as the job's algorithm each variable has a group.
  const auto row_wise = optimizer("groups { variables: '*' sgd {} } row_wise_adagrad");
  EXPECT_TRUE(row_wise.row_wise_adagrad().has_initial_accumulator());
  EXPECT_FLOAT_EQ(row_wise.row_wise_adagrad().epsilon(), 1e-8f);
}

TEST(FinalizeTrainConfigTest, FillsBatchNormDefaults) {
  std::string text = kMinimal;
  text.replace(text.find("relu {}"), 7, "batch_norm { no_scale: true }");
  const v1::LayerConfig layer = Finalized(text).model().layers(4);
  EXPECT_EQ(layer.name(), "batch_norm_1");
  EXPECT_FLOAT_EQ(layer.batch_norm().momentum(), 0.99f);
  EXPECT_FLOAT_EQ(layer.batch_norm().epsilon(), 1e-3f);
  text.replace(text.find("no_scale"), 8, "momentum: 0 epsilon: 0.5 no_scale");
  EXPECT_EQ(Finalized(text).model().layers(4).batch_norm().momentum(), 0);
  EXPECT_EQ(Finalized(text).model().layers(4).batch_norm().epsilon(), 0.5f);
}

TEST(FinalizeTrainConfigTest, KeepsWhatIsGiven) {
  const v1::TrainConfig config = Finalized(std::string(kMinimal) + R"(
      checkpoint { save_steps: 7 keep_max: 0 }
      evaluation { metrics { top_k { k: 2 } } batch_size: 3 }
      data { generated { train_records: 11 } })");
  EXPECT_EQ(config.checkpoint().save_seconds(), 0);
  EXPECT_EQ(config.checkpoint().save_steps(), 7);
  EXPECT_EQ(config.checkpoint().keep_max(), 0);
  EXPECT_EQ(config.evaluation().metrics_size(), 1);
  EXPECT_EQ(config.evaluation().batch_size(), 3);
  EXPECT_EQ(config.data().generated().train_records(), 11);
}

TEST(FinalizeTrainConfigTest, KeepsASourceThatIsFiles) {
  const v1::TrainConfig config = Finalized(
      std::string(kMinimal) + "data { criteo {} train_files: 'day_*' max_bad_records: 3 }");
  EXPECT_TRUE(config.data().has_criteo());
  EXPECT_EQ(config.data().max_bad_records(), 3);
  EXPECT_TRUE(Finalized(std::string(kMinimal) + "data { libsvm {} }").data().has_libsvm());
  EXPECT_TRUE(Finalized(std::string(kMinimal) + "data { tf_record {} }").data().has_tf_record());
}

TEST(FinalizeTrainConfigTest, AStreamNeedsNoEndAndIsReadInOrder) {
  const std::string data = "data { libsvm {} stream {} train_files: 'a*' eval_files: 'b' }";
  const v1::TrainConfig endless =
      Finalized(absl::StrCat(absl::StrReplaceAll(kMinimal, {{"max_steps: 10", ""}}), data));
  EXPECT_EQ(endless.data().stream().end_file(), "_END");
  EXPECT_TRUE(endless.data().sequential());
  EXPECT_EQ(Finalized(absl::StrCat(kMinimal, data)).train().max_steps(), 10);
}

TEST(FinalizeTrainConfigTest, TwiceIsOnce) {
  const v1::TrainConfig once = Finalized(kMinimal);
  v1::TrainConfig twice = once;
  ASSERT_TRUE(FinalizeTrainConfig(&twice).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(once, twice));
}

TEST(RequireModelDirTest, NamesTheFieldAndTheFlag) {
  v1::TrainConfig config = Finalized(kMinimal);
  EXPECT_EQ(RequireModelDir(config).message(),
            "checkpoint.model_dir: expected a directory that all roles share (--model_dir), found "
            "none");
  EXPECT_EQ(RequireModelDir(config).code(), absl::StatusCode::kInvalidArgument);
  config.mutable_checkpoint()->set_model_dir("m");
  EXPECT_TRUE(RequireModelDir(config).ok());
}

TEST(ConfigHashTest, IgnoresTheDirectoriesAndNothingElse) {
  const v1::TrainConfig base = Finalized(kMinimal);
  EXPECT_EQ(ConfigHash(Finalized(std::string(kMinimal) + "data { data_dir: 'd' } "
                                                         "checkpoint { model_dir: 'm' }")),
            ConfigHash(base));
  v1::TrainConfig other = base;
  other.mutable_train()->set_batch_size(9);
  EXPECT_NE(ConfigHash(other), ConfigHash(base));
  other = base;
  other.mutable_model()->mutable_layers(3)->mutable_dense()->set_units(5);
  EXPECT_NE(ConfigHash(other), ConfigHash(base));
  other = base;
  other.mutable_data()->mutable_train_subset()->set_end(5);
  EXPECT_NE(ConfigHash(other), ConfigHash(base));
  other = base;
  other.mutable_checkpoint()->set_keep_max(2);
  EXPECT_NE(ConfigHash(other), ConfigHash(base));
  other = base;
  other.mutable_transfer()->set_depth(2);
  EXPECT_NE(ConfigHash(other), ConfigHash(base));
}

TEST(ConfigHashTest, AGivenDefaultHashesLikeAnAbsentOne) {
  EXPECT_EQ(ConfigHash(Finalized(std::string(kMinimal) + "checkpoint { keep_max: 5 }")),
            ConfigHash(Finalized(kMinimal)));
  EXPECT_EQ(ConfigHash(Finalized(std::string(kMinimal) + "checkpoint { full_every: 1 }")),
            ConfigHash(Finalized(kMinimal)));
}

// Jobs that builds before these fields began go on with this build.
TEST(ConfigHashTest, FieldsThatAreNotUsedDoNotCount) {
  EXPECT_EQ(HashToString(ConfigHash(Finalized(DefaultTrainConfigText()))), "4cf47e7e2dede77f");
  for (const char* unused : {"initial_values {}", "placement {}", "collective {}"}) {
    EXPECT_EQ(ConfigHash(Finalized(std::string(kMinimal) + unused)),
              ConfigHash(Finalized(kMinimal)))
        << unused;
  }
  const std::string groups = "initial_values { groups { variables: '*' constant {} } }";
  EXPECT_NE(ConfigHash(Finalized(kMinimal + groups)), ConfigHash(Finalized(kMinimal)));
  const auto from = [](const std::string& missing) {
    return ConfigHash(Finalized(std::string(kMinimal) +
                                "initial_values { groups { variables: '*' from { path: 'a' " +
                                missing + " } } }"));
  };
  EXPECT_EQ(from(""), from("missing: ERROR"));
  EXPECT_NE(from(""), from("missing: INITIALIZE"));
}

TEST(ConfigHashTest, HasSixteenDigits) {
  EXPECT_EQ(HashToString(0xabcull), "0000000000000abc");
  EXPECT_EQ(HashToString(~0ull), "ffffffffffffffff");
}

TEST(ConfigMismatchTest, HasBothHashes) {
  const absl::Status status = ConfigMismatch(0x12, 0x34, "worker-1");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "configuration of worker-1: expected the hash 0000000000000012, found "
            "0000000000000034; start all tasks of a job with the same --config and flags");
}

}  // namespace
}  // namespace keelson
