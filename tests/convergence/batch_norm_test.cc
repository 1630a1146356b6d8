// A small convolutional network with batch norm on real digits, trained by two asynchronous workers
// with the real programs. What the evaluator knows of the statistics it has from the servers, to
// which both workers push. Prints the figures.
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/config/config_flags.h"
#include "core/data/open_datasets.h"
#include "core/device/factory/device_factory.h"
#include "core/model/model.h"
#include "gtest/gtest.h"
#include "tests/convergence/jobs.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr char kConfigPath[] = "configs/mnist_cnn_batch_norm.textproto";

// Runs the job to its end; its last evaluation.
std::optional<EvaluationLine> Train(const std::string& what, Job* job) {
  // Two passes over the data: after more, both networks are as good as 8000 records let them be.
  job->AddFlag("--training_steps=250");
  job->AddFlag(absl::StrCat("--data_dir=", kRealDigits));
  job->StartAll();
  job->ExpectAllDone(kHangLimit);
  const auto evaluations = ReadEvaluations(job->model_dir());
  EXPECT_TRUE(evaluations.ok()) << evaluations.status();
  if (!evaluations.ok()) return std::nullopt;
  const EvaluationLine& last = evaluations->back();
  EXPECT_EQ(last.step, *DoneStep(job->model_dir()));
  std::printf("%s: accuracy %.4f, loss %.4f, step %ld\n", what.c_str(), last.metrics.at("accuracy"),
              last.metrics.at("loss"), static_cast<long>(last.step));
  std::fflush(stdout);
  return last;
}

// The snapshot's loss on the evaluation records, each batch of 500 normalized by its own
// statistics.
double LossByBatchStatistics(const std::string& snapshot) {
  v1::TrainConfig config = ResolveTrainConfig(kConfigPath, {}).value();
  config.mutable_data()->set_data_dir(kRealDigits);
  const std::unique_ptr<Device> device = CreateDevice("cpu", {.threads = 1}).value();
  const std::unique_ptr<Model> model = Model::Create(config.model(), device.get()).value();
  const auto bundle = BundleReader::Open(snapshot);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  if (!bundle.ok()) return 0;
  std::vector<std::vector<float>> gradients;
  std::vector<absl::Span<float>> spans;
  for (size_t v = 0; v < model->variables().size(); ++v) {
    const Tensor values = (*bundle)->ReadTensor(model->variables()[v].name).value();
    EXPECT_TRUE(model->SetVariable(v, values.span()).ok());
    gradients.emplace_back(values.span().size());
  }
  for (std::vector<float>& gradient : gradients) spans.push_back(absl::MakeSpan(gradient));
  const auto data = OpenDatasets(config.data(), model->spec().records, 1);
  EXPECT_TRUE(data.ok()) << data.status();
  double sum = 0;
  int64_t batches = 0;
  Batch batch;
  std::vector<int64_t> records(500);
  for (; (batches + 1) * 500 <= data->eval->num_records(); ++batches) {
    std::iota(records.begin(), records.end(), batches * 500);
    EXPECT_TRUE(data->eval->Read(records, &batch).ok());
    const auto result = model->ComputeGradients(batch, {}, {.arrays = spans}, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    sum += result.ok() ? result->loss : 0;
  }
  return sum / static_cast<double>(batches);
}

TEST(BatchNormTest, TwoWorkersReachWhatTheNetworkWithoutItReaches) {
  if (!FileExists(kRealDigits)) GTEST_SKIP() << "skipped: no ../shared/data";
  const std::string with = ReadFile(kConfigPath).value_or("");
  const std::string without = absl::StrReplaceAll(
      with, {{"  layers { batch_norm { momentum: 0.9 } }\n", ""}, {" no_bias: true", ""}});
  ASSERT_FALSE(absl::StrContains(without, "layers { batch_norm"));
  Job normalized_job(kCluster, with);
  const auto normalized = Train("small CNN with batch norm", &normalized_job);
  Job plain_job(kCluster, without);
  const auto plain = Train("small CNN without batch norm", &plain_job);
  ASSERT_TRUE(normalized.has_value() && plain.has_value());
  EXPECT_GE(normalized->metrics.at("accuracy"), plain->metrics.at("accuracy"));
  EXPECT_GE(normalized->metrics.at("accuracy"), 0.96);

  const double by_batch = LossByBatchStatistics(
      absl::StrCat(normalized_job.model_dir(), "/model.ckpt-", normalized->step));
  std::printf("by the batches' own statistics: loss %.4f\n", by_batch);
  EXPECT_NEAR(normalized->metrics.at("loss"), by_batch, 0.015);
}

}  // namespace
}  // namespace keelson
