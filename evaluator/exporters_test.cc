#include "evaluator/exporters.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/failing_file_system_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/config/train_config.h"
#include "core/model/spec/model_spec.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ExportersTest : public testing::Test {
 protected:
  ExportersTest() : model_dir_(FreshDirectory()), config_(TinyConfig(model_dir_)) {}

  void KeepLatest(int64_t keep) {
    config_.mutable_evaluation()->add_exporters()->mutable_latest()->set_keep(keep);
  }
  void KeepBest(const std::string& metric, int64_t keep) {
    auto* best = config_.mutable_evaluation()->add_exporters()->mutable_best();
    best->set_metric(metric);
    best->set_keep(keep);
  }
  void KeepFinal() { config_.mutable_evaluation()->add_exporters()->mutable_final_snapshot(); }

  std::unique_ptr<Exporters> Open(FileSystem* file_system = FileSystem::Real()) {
    return std::make_unique<Exporters>(config_, InferModelSpec(config_.model())->variables,
                                       file_system, &clock_);
  }
  // A snapshot whose scores are [step, 0].
  SnapshotInfo Commit(int64_t step) {
    CheckpointDirectory directory(FileSystem::Real(), model_dir_, &clock_);
    CommitTinySnapshot(&directory, step, static_cast<float>(step));
    return directory.List()->back();
  }
  static EvaluationRecord Record(int64_t step, double loss) {
    EvaluationRecord record;
    record.step = step;
    record.metrics = {{"loss", loss}, {"accuracy", 1 - loss}};
    return record;
  }
  void Offer(Exporters* exporters, int64_t step, double loss) {
    exporters->Offer(Commit(step), Record(step, loss));
  }

  std::string PathOf(const std::string& kind, int64_t step) const {
    return absl::StrCat(model_dir_, "/export/", kind, "/", step);
  }
  // What is in the directory of a kind, whatever it is.
  std::vector<std::string> Names(const std::string& kind) const {
    const std::string path = model_dir_ + "/export/" + kind;
    if (!FileExists(path)) return {};
    std::vector<std::string> names = *ListDirectory(path);
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string model_dir_;
  ManualClock clock_;
  v1::TrainConfig config_;
};

TEST_F(ExportersTest, AnExportIsAModelWithoutTheRest) {
  KeepLatest(1);
  Offer(Open().get(), 100, 0.25);
  const std::string path = PathOf("latest", 100);
  CheckpointDirectory exported(FileSystem::Real(), path, &clock_);
  const auto snapshots = exported.List();
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  ASSERT_EQ(snapshots->size(), 1u);
  EXPECT_EQ(snapshots->back().step, 100);
  const auto reader = BundleReader::Open(snapshots->back().prefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->VerifyAll().ok());
  EXPECT_THAT((*reader)->ReadTensor("scores/kernel")->span(), ElementsAre(100, 0, 0, 100));
  EXPECT_EQ(*(*reader)->ReadInt64("global_step"), 100);
  EXPECT_EQ((*reader)->List().size(), 3u);
  v1::TrainConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      ReadRawFile(path + "/train_config.textproto"), &config));
  EXPECT_EQ(ConfigHash(config), ConfigHash(config_));
  const auto json = nlohmann::json::parse(ReadRawFile(path + "/export.json"));
  EXPECT_EQ(json.at("step"), 100);
  EXPECT_EQ(json.at("kind"), "latest");
  EXPECT_EQ(json.at("time"), 1'700'000'000);
  EXPECT_EQ(json.at("metrics").at("loss"), 0.25);
  EXPECT_EQ(json.at("source"), model_dir_ + "/model.ckpt-100");
}

TEST_F(ExportersTest, KeepsTheLatest) {
  KeepLatest(2);
  const auto exporters = Open();
  EXPECT_TRUE(exporters->TakesAny());
  EXPECT_FALSE(exporters->TakesFinal());
  for (const int64_t step : {100, 200, 300}) Offer(exporters.get(), step, 1);
  EXPECT_THAT(Names("latest"), ElementsAre("200", "300"));
  // Scored late, by another evaluator.
  exporters->Offer({100, model_dir_ + "/model.ckpt-100", {}}, Record(100, 0));
  EXPECT_THAT(Names("latest"), ElementsAre("200", "300"));
  EXPECT_THAT(Names("best"), IsEmpty());
}

TEST_F(ExportersTest, KeepsTheBestByALoss) {
  KeepBest("loss", 2);
  const auto exporters = Open();
  Offer(exporters.get(), 100, 0.5);
  Offer(exporters.get(), 200, 0.3);
  Offer(exporters.get(), 300, 0.4);
  EXPECT_THAT(Names("best"), ElementsAre("200", "300"));
  Offer(exporters.get(), 400, 0.4);
  Offer(exporters.get(), 500, NAN);
  EXPECT_THAT(Names("best"), ElementsAre("200", "300")) << "no better than what there is";
  Offer(exporters.get(), 600, 0.1);
  EXPECT_THAT(Names("best"), ElementsAre("200", "600"));
}

TEST_F(ExportersTest, KeepsTheBestByAScore) {
  KeepBest("accuracy", 1);
  const auto exporters = Open();
  for (const auto& [step, loss] : std::map<int64_t, double>{{100, 0.5}, {200, 0.2}, {300, 0.4}}) {
    Offer(exporters.get(), step, loss);
  }
  EXPECT_THAT(Names("best"), ElementsAre("200"));
}

TEST_F(ExportersTest, GoesOnWhereAnEarlierLifeEnded) {
  KeepBest("loss", 1);
  KeepLatest(2);
  Offer(Open().get(), 100, 0.1);
  Offer(Open().get(), 200, 0.5);
  Offer(Open().get(), 300, 0.3);
  EXPECT_THAT(Names("best"), ElementsAre("100"));
  EXPECT_THAT(Names("latest"), ElementsAre("200", "300"));
  Open()->Offer({300, model_dir_ + "/model.ckpt-300", {}}, Record(300, 0.3));
  EXPECT_THAT(Names("latest"), ElementsAre("200", "300"));
}

TEST_F(ExportersTest, AnotherSnapshotOfAStepReplacesItsExports) {
  KeepBest("loss", 1);
  KeepLatest(1);
  KeepFinal();
  const auto exporters = Open();
  Offer(exporters.get(), 200, 0.1);
  exporters->OfferFinal(Commit(200), Record(200, 0.1));
  exporters->ForgetAfter(100);
  EXPECT_THAT(Names("latest"), IsEmpty());
  EXPECT_THAT(Names("best"), ElementsAre("200")) << "nothing better is there yet";
  EvaluationRecord again = Record(200, 0.3);
  again.snapshot_id = 7;
  exporters->Offer(Commit(200), again);
  exporters->OfferFinal(Commit(200), again);
  for (const char* kind : {"best", "latest", "final"}) {
    EXPECT_THAT(ReadRawFile(PathOf(kind, 200) + "/export.json"), HasSubstr("\"loss\": 0.3"));
  }
}

TEST_F(ExportersTest, ExportsTheFinalOneOnce) {
  KeepFinal();
  const auto exporters = Open();
  EXPECT_FALSE(exporters->TakesAny());
  EXPECT_TRUE(exporters->TakesFinal());
  const SnapshotInfo snapshot = Commit(100);
  exporters->Offer(snapshot, Record(100, 1));
  EXPECT_THAT(Names("final"), IsEmpty());
  exporters->OfferFinal(snapshot, Record(100, 1));
  const auto written = std::filesystem::last_write_time(PathOf("final", 100) + "/export.json");
  exporters->OfferFinal(snapshot, Record(100, 1));
  EXPECT_THAT(Names("final"), ElementsAre("100"));
  EXPECT_EQ(std::filesystem::last_write_time(PathOf("final", 100) + "/export.json"), written);
}

TEST_F(ExportersTest, RemovesWhatIsHalfWritten) {
  KeepLatest(3);
  Offer(Open().get(), 100, 1);
  for (const char* name : {"200.tempstate77", "300"}) {
    ASSERT_TRUE(CreateDirectories(model_dir_ + "/export/latest/" + name).ok());
  }
  WriteRawFile(model_dir_ + "/export/latest/notes.txt", "mine");
  Open();
  EXPECT_THAT(Names("latest"), ElementsAre("100", "notes.txt"));
}

TEST_F(ExportersTest, ADamagedSnapshotIsNotExported) {
  KeepLatest(3);
  const auto exporters = Open();
  const SnapshotInfo snapshot = Commit(100);
  DamageSnapshot(snapshot.prefix);
  testing::internal::CaptureStderr();
  exporters->Offer(snapshot, Record(100, 1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("exporting the snapshot of step 100: "));
  EXPECT_THAT(Names("latest"), IsEmpty());
}

TEST_F(ExportersTest, WhateverFailsLeavesNoPartAndIsMadeUpForLater) {
  KeepLatest(1);
  FailingFileSystem files;
  const auto exporters = Open(&files);
  int64_t step = 0;
  bool failed = true;
  for (int64_t operation = 0; failed; ++operation) {
    step += 100;
    const SnapshotInfo snapshot = Commit(step);
    const EvaluationRecord record = Record(step, 1);
    files.FailFrom(operation);
    testing::internal::CaptureStderr();
    exporters->Offer(snapshot, record);
    failed = files.has_failed();
    EXPECT_EQ(absl::StrContains(testing::internal::GetCapturedStderr(), ": read-only"), failed);
    files.FailFrom(std::numeric_limits<int64_t>::max());
    exporters->Offer(snapshot, record);
    const auto reopened = Open(&files);
    EXPECT_THAT(Names("latest"), ElementsAre(absl::StrCat(step))) << operation;
  }
  EXPECT_GT(step, 500) << "that few operations cannot be all";
}

}  // namespace
}  // namespace keelson
