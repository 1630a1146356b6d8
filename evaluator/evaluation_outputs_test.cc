#include "evaluator/evaluation_outputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/model/spec/model_spec.h"
#include "core/summary/tf_record.h"
#include "dashboard/runs/evaluations.h"
#include "evaluator/report_file.h"
#include "gmock/gmock.h"
#include "keelson/v1/event.pb.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EvaluationOutputsTest : public testing::Test {
 protected:
  EvaluationOutputsTest()
      : model_dir_(FreshDirectory()), directory_(FileSystem::Real(), model_dir_, &clock_) {
    config_ = TinyConfig(model_dir_);
    config_.mutable_evaluation()->add_exporters()->mutable_latest()->set_keep(5);
    config_.mutable_evaluation()->add_exporters()->mutable_final_snapshot();
  }

  std::unique_ptr<EvaluationOutputs> Open(int index = 0) {
    EvaluationOutputs::Options options;
    options.self = {Role::kEvaluator, index};
    options.config = config_;
    options.variables = InferModelSpec(config_.model())->variables;
    auto outputs = EvaluationOutputs::Open(std::move(options), &directory_, &clock_);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return *std::move(outputs);
  }
  SnapshotInfo Commit(int64_t step) {
    CommitTinySnapshot(&directory_, step);
    return directory_.List()->back();
  }
  static ScoredSnapshot Scored(int64_t step, double loss) {
    ScoredSnapshot scored;
    scored.record.step = step;
    scored.record.metrics = {{"accuracy", 1 - loss}, {"loss", loss}};
    scored.report = "{\"step\":" + std::to_string(step) + "}\n";
    return scored;
  }
  static void Publish(EvaluationOutputs* outputs, const SnapshotInfo& snapshot, double loss,
                      const WeightHistograms& histograms = {}) {
    const absl::Status status = outputs->Publish(snapshot, Scored(snapshot.step, loss), histograms);
    EXPECT_TRUE(status.ok()) << status;
  }

  // The tags of the summaries as "step tag", in the order of the file.
  std::vector<std::string> Tags(const std::string& directory) const {
    std::vector<std::string> tags;
    const std::vector<std::string> names = *ListDirectory(model_dir_ + "/" + directory);
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, "events.out.tfevents.")) continue;
      const auto records = ReadTfRecords(model_dir_ + "/" + directory + "/" + name);
      EXPECT_TRUE(records.ok()) << records.status();
      for (const std::string& record : *records) {
        v1::Event event;
        EXPECT_TRUE(event.ParseFromString(record));
        for (const auto& value : event.summary().value()) {
          tags.push_back(std::to_string(event.step()) + " " + value.tag());
        }
      }
    }
    return tags;
  }
  std::vector<std::string> Exports(const std::string& kind) const {
    const std::string path = model_dir_ + "/export/" + kind;
    std::vector<std::string> names;
    if (FileExists(path)) names = *ListDirectory(path);
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string model_dir_;
  ManualClock clock_;
  CheckpointDirectory directory_;
  v1::TrainConfig config_;
};

TEST_F(EvaluationOutputsTest, AnEvaluationIsInAllFilesAtOnce) {
  const auto outputs = Open();
  const SnapshotInfo snapshot = Commit(100);
  WeightHistograms histograms(1);
  histograms[0].first = "weights/scores/kernel";
  histograms[0].second.Add(std::vector<float>{1, 2});
  Publish(outputs.get(), snapshot, 0.25, histograms);
  EXPECT_THAT(ReadRawFile(model_dir_ + "/eval/metrics.jsonl"), HasSubstr("{\"step\":100,"));
  EXPECT_EQ(ReadRawFile(ReportPath(model_dir_, 100)), "{\"step\":100}\n");
  EXPECT_THAT(Tags("eval"), ElementsAre("100 loss", "100 accuracy", "100 weights/scores/kernel"));
  EXPECT_THAT(Exports("latest"), ElementsAre("100"));
  EXPECT_EQ(outputs->Find(100)->metrics.at("loss"), 0.25);
}

TEST_F(EvaluationOutputsTest, EvaluatorZeroSeesToWhatOthersHaveScored) {
  const auto first = Open(0);
  const auto second = Open(1);
  WeightHistograms histograms(1);
  histograms[0].first = "weights/scores/kernel";
  Publish(second.get(), Commit(100), 0.5, histograms);
  EXPECT_THAT(Exports("latest"), IsEmpty());
  EXPECT_THAT(Tags("eval"), IsEmpty());
  const auto others = first->TakeOthers();
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->size(), 1u);
  EXPECT_THAT(ReadRawFile(model_dir_ + "/eval/metrics.jsonl"), HasSubstr("{\"step\":100,"));
  // All in one file, which is what TensorBoard takes for one run.
  EXPECT_THAT(Tags("eval"), ElementsAre("100 loss", "100 accuracy", "100 weights/scores/kernel"));
  EXPECT_THAT(Exports("latest"), ElementsAre("100"));
  EXPECT_THAT(*first->TakeOthers(), IsEmpty());
  EXPECT_THAT(*second->TakeOthers(), IsEmpty());
}

// Weight histograms are not essential, and the next look takes them.
TEST_F(EvaluationOutputsTest, HistogramsOfOthersThatCannotBeReadEndNothing) {
  const auto first = Open(0);
  const auto second = Open(1);
  WeightHistograms histograms(1);
  histograms[0].first = "weights/scores/kernel";
  Publish(second.get(), Commit(100), 0.5, histograms);
  // It is read before the one that was handed over.
  const std::string unreadable = model_dir_ + "/eval/histograms/0.event";
  ASSERT_EQ(CreateDirectories(unreadable), absl::OkStatus());
  const auto others = first->TakeOthers();
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->size(), 1u);
  EXPECT_THAT(Tags("eval"), ElementsAre("100 loss", "100 accuracy"));
  ASSERT_TRUE(std::filesystem::remove(unreadable));
  EXPECT_TRUE(first->TakeOthers().ok());
  EXPECT_THAT(Tags("eval"), ElementsAre("100 loss", "100 accuracy", "100 weights/scores/kernel"));
}

TEST_F(EvaluationOutputsTest, OffersAgainWhatAnEarlierLifeMayNotHaveExported) {
  Publish(Open(1).get(), Commit(100), 0.5);
  EXPECT_THAT(Exports("latest"), IsEmpty());
  Open(0);
  EXPECT_THAT(Exports("latest"), ElementsAre("100"));
  EXPECT_THAT(*ListLeases(FileSystem::Real(), model_dir_), IsEmpty());
}

TEST_F(EvaluationOutputsTest, ExportsTheFinalSnapshotOnce) {
  const auto outputs = Open();
  Publish(outputs.get(), Commit(100), 0.5);
  EXPECT_THAT(Exports("final"), IsEmpty());
  outputs->TakeFinal(100);
  outputs->TakeFinal(100);
  EXPECT_THAT(Exports("final"), ElementsAre("100"));
}

TEST_F(EvaluationOutputsTest, AFinalSnapshotThatIsGoneIsReported) {
  const auto outputs = Open();
  testing::internal::CaptureStderr();
  outputs->TakeFinal(100);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the final snapshot, of step 100, is not exported"));
}

TEST_F(EvaluationOutputsTest, AReportThatCannotBeWrittenStopsNothing) {
  const auto outputs = Open();
  WriteRawFile(model_dir_ + "/eval/reports", "in the way");
  testing::internal::CaptureStderr();
  Publish(outputs.get(), Commit(100), 0.5);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the report of step 100: "));
  EXPECT_NE(outputs->Find(100), nullptr);
}

TEST_F(EvaluationOutputsTest, KeepsTheReportsOfTheBest) {
  config_.mutable_evaluation()->clear_exporters();
  const auto outputs = Open();
  const int64_t last = 100 * (static_cast<int64_t>(kKeptReports) + 5);
  for (int64_t step = 100; step <= last; step += 100) {
    Publish(outputs.get(), Commit(step), step == 200 ? 0.1 : 0.5);
  }
  EXPECT_FALSE(FileExists(ReportPath(model_dir_, 100)));
  EXPECT_TRUE(FileExists(ReportPath(model_dir_, 200)));
  EXPECT_FALSE(FileExists(ReportPath(model_dir_, 300)));
  EXPECT_TRUE(FileExists(ReportPath(model_dir_, last)));
}

TEST_F(EvaluationOutputsTest, TheBestThatIsShownHasAReportAndIsExported) {
  config_.mutable_evaluation()->clear_exporters();
  auto* best = config_.mutable_evaluation()->add_exporters()->mutable_best();
  best->set_metric("accuracy");
  best->set_keep(1);
  const auto outputs = Open();
  const int64_t last = 100 * (static_cast<int64_t>(kKeptReports) + 5);
  for (int64_t step = 100; step <= last; step += 100) {
    // Both metrics of the first evaluation are beyond all others, and not finite.
    const double loss = step == 100 ? -INFINITY : step == 200 ? 0.1 : 0.5;
    Publish(outputs.get(), Commit(step), loss);
  }
  MetricFigures shown;
  const std::string log = ReadRawFile(model_dir_ + "/eval/metrics.jsonl");
  for (const absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    const std::optional<Evaluation> evaluation = ParseEvaluation(line);
    ASSERT_TRUE(evaluation.has_value()) << line;
    TakeMetrics(*evaluation, &shown);
  }
  EXPECT_EQ(shown.at("loss").last_step, last);
  EXPECT_EQ(shown.at("accuracy").best->step, 200);
  EXPECT_EQ(shown.at("loss").best->step, 200);
  EXPECT_THAT(Exports("best"), ElementsAre("200"));
  EXPECT_TRUE(FileExists(ReportPath(model_dir_, 200)));
  EXPECT_FALSE(FileExists(ReportPath(model_dir_, 100)));
}

}  // namespace
}  // namespace keelson
