#include "evaluator/evaluator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/failing_file_system_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/mutex.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/device/factory/device_factory.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "keelson/v1/event.pb.h"
#include "testing/services/faulty_chief_service.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kConfigHash = 0xabc;

// Each reading of this clock advances it.
class TickingClock : public Clock {
 public:
  absl::Time Now() const override { return clock_.Now(); }
  absl::Duration Monotonic() const override {
    clock_.Advance(absl::Seconds(20));
    return clock_.Monotonic();
  }

 private:
  mutable ManualClock clock_;
};

class EvaluatorTest : public testing::Test {
 protected:
  EvaluatorTest()
      : device_(*CreateDevice("cpu", {.threads = 1})),
        model_dir_(FreshDirectory()),
        directory_(FileSystem::Real(), model_dir_, &clock_) {
    options_.self = {Role::kEvaluator, 0};
    options_.new_membership = [] { return MembershipId{3, 4}; };
    options_.config = TinyConfig(model_dir_);
    options_.config_hash = kConfigHash;
    options_.poll_interval = absl::Milliseconds(1);
    options_.heartbeat_interval = absl::Milliseconds(1);
    SetPhase(v1::TRAINING);
  }

  // What the chief answers from now on.
  void SetPhase(v1::JobPhase phase, int64_t snapshot_step = 0) {
    chief_.Answer(&ChiefService::GetJobStatus, [=](const auto&, auto* response) {
      response->set_phase(phase);
      response->set_snapshot_step(snapshot_step);
      return absl::OkStatus();
    });
    chief_.Answer(&ChiefService::Heartbeat, [=](const auto&, auto* response) {
      response->set_phase(phase);
      response->set_error("out of luck");
      return absl::OkStatus();
    });
  }
  // `action` is called on the evaluator's thread for the chief.
  void OnHeartbeat(std::function<void()> action) {
    chief_.After(&ChiefService::Heartbeat, [=](const auto&, auto*) {
      action();
      return absl::OkStatus();
    });
  }
  void OnAcknowledge(std::function<void(int64_t step)> action) {
    chief_.After(&ChiefService::AcknowledgeEvaluation, [=](const auto& request, auto*) {
      action(request.step());
      return absl::OkStatus();
    });
  }
  int leaves() const { return chief_.Count(&ChiefService::Leave); }

  absl::Status Run(ChiefService* chief, const Clock* clock = nullptr) {
    return Evaluator(options_, chief, device_.get(), &records_, clock == nullptr ? &clock_ : clock,
                     &stop_)
        .Run();
  }
  void Commit(int64_t step, float scale = 1, uint64_t snapshot_id = 0) {
    clock_.Advance(absl::Seconds(1));
    CommitTinySnapshot(&directory_, step, scale, snapshot_id);
  }
  void MarkDone(int64_t step, uint64_t hash = kConfigHash) {
    ASSERT_TRUE(directory_.WriteDoneMarker(step, hash).ok());
  }
  void Damage(int64_t step) { DamageSnapshot(directory_.SnapshotPrefix(step)); }

  std::string MetricsPath() const { return model_dir_ + "/eval/metrics.jsonl"; }
  // In the order of the file; -1: not a line of the expected form.
  std::vector<int64_t> ScoredSteps() const {
    std::vector<int64_t> steps;
    for (absl::string_view line :
         absl::StrSplit(ReadRawFile(MetricsPath()), '\n', absl::SkipEmpty())) {
      int64_t step = -1;
      if (absl::ConsumePrefix(&line, "{\"step\":")) {
        if (!absl::SimpleAtoi(line.substr(0, line.find(',')), &step)) step = -1;
      }
      steps.push_back(step);
    }
    return steps;
  }
  std::vector<v1::Event> Events() const {
    std::vector<v1::Event> events;
    const auto names = ListDirectory(model_dir_ + "/eval");
    for (const std::string& name : *names) {
      if (!absl::StartsWith(name, "events.out.tfevents.")) continue;
      const auto records = ReadTfRecords(model_dir_ + "/eval/" + name);
      EXPECT_TRUE(records.ok()) << records.status();
      for (const std::string& record : *records) {
        EXPECT_TRUE(events.emplace_back().ParseFromString(record));
      }
    }
    return events;
  }

  const std::unique_ptr<Device> device_;
  const std::string model_dir_;
  ManualClock clock_;
  CheckpointDirectory directory_;
  const TinyDataset records_ = FiveRecords();
  StopSignal stop_;
  FaultyChiefService chief_;
  EvaluatorOptions options_;
};

TEST_F(EvaluatorTest, WithoutAChiefScoresAllSnapshotsInOrder) {
  for (const int64_t step : {100, 200, 300}) Commit(step);
  MarkDone(300);
  const absl::Status status = Run(nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200, 300));
}

TEST_F(EvaluatorTest, WritesScalarsAndALine) {
  Commit(100, 3);
  MarkDone(100);
  ASSERT_TRUE(Run(nullptr).ok());
  const std::string line = ReadRawFile(MetricsPath());
  EXPECT_THAT(line, HasSubstr("\"accuracy\":0.8"));
  EXPECT_THAT(line, HasSubstr("\"examples\":5"));
  const std::vector<v1::Event> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step(), 100);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_NEAR(events[1].summary().value(0).simple_value(), FiveRecordsLoss(3), 1e-5);
  EXPECT_EQ(events[1].summary().value(1).tag(), "accuracy");
  EXPECT_FLOAT_EQ(events[1].summary().value(1).simple_value(), 0.8f);
}

TEST_F(EvaluatorTest, WritesHistogramsOfTheWeightsWhereTheyAreWanted) {
  options_.config.mutable_train()->set_histogram_steps(100);
  Commit(100, 3);
  MarkDone(100);
  ASSERT_TRUE(Run(nullptr).ok());
  const std::vector<v1::Event> events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].step(), 100);
  ASSERT_EQ(events[2].summary().value_size(), 2);
  std::set<std::string> tags;
  for (const auto& value : events[2].summary().value()) {
    tags.insert(value.tag());
    EXPECT_TRUE(value.has_histo()) << value.tag();
  }
  EXPECT_THAT(tags, ElementsAre("weights/scores/bias", "weights/scores/kernel"));
}

TEST_F(EvaluatorTest, ResumesAfterWhatIsScored) {
  for (const int64_t step : {100, 200, 300}) Commit(step);
  MarkDone(300);
  ASSERT_TRUE(CreateDirectories(model_dir_ + "/eval").ok());
  WriteRawFile(MetricsPath(), "{\"step\":100,\"loss\":1}\n{\"step\":200,\"lo");
  ASSERT_TRUE(Run(nullptr).ok());
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200, 300));
  EXPECT_TRUE(absl::StartsWith(ReadRawFile(MetricsPath()), "{\"step\":100,\"loss\":1}\n"));
  EXPECT_EQ(Events().size(), 3u);
}

TEST_F(EvaluatorTest, TellsOfEveryEvaluationAlsoOfEarlierLives) {
  Commit(100);
  MarkDone(100);
  ASSERT_TRUE(Run(nullptr).ok());
  Commit(200);
  MarkDone(200);
  std::vector<int64_t> told;
  std::vector<int64_t> scored;
  options_.on_evaluation = [&](const EvaluationRecord& record, bool scored_here) {
    told.push_back(record.step);
    if (scored_here) scored.push_back(record.step);
  };
  ASSERT_TRUE(Run(nullptr).ok());
  EXPECT_THAT(told, ElementsAre(100, 200));
  EXPECT_THAT(scored, ElementsAre(200));
}

TEST_F(EvaluatorTest, SkipsDamagedAndVanishedSnapshots) {
  for (const int64_t step : {100, 200, 300, 400}) Commit(step);
  Damage(200);
  ASSERT_TRUE(RemoveFile(DataPath(directory_.SnapshotPrefix(300), 0, 1)).ok());
  MarkDone(400);
  const absl::Status status = Run(nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 400));
}

TEST_F(EvaluatorTest, ADamagedFinalSnapshotIsAnError) {
  for (const int64_t step : {100, 200}) Commit(step);
  Damage(200);
  MarkDone(200);
  const absl::Status status = Run(nullptr);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.ckpt-200"));
  EXPECT_THAT(ScoredSteps(), ElementsAre(100));
}

TEST_F(EvaluatorTest, ADamagedSnapshotThatTurnsOutToBeFinalIsAnError) {
  Commit(200);
  Damage(200);
  int heartbeats = 0;
  OnHeartbeat([&] {
    if (++heartbeats == 20) SetPhase(v1::EVALUATING, 200);
  });
  EXPECT_EQ(Run(&chief_).code(), StatusCode::kDataLoss);
  EXPECT_EQ(leaves(), 1);
}

TEST_F(EvaluatorTest, AFinalSnapshotThatIsMissingIsAnErrorInTheEnd) {
  Commit(200);
  MarkDone(300);
  const TickingClock clock;
  const absl::Status status = Run(nullptr, &clock);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("its final snapshot of step 300"));
  EXPECT_THAT(ScoredSteps(), ElementsAre(200));
}

// A network file system that remembers for a while that files of one name were missing.
class ForgetfulFileSystem : public FailingFileSystem {
 public:
  // `opens`: how many tries to read such a file fail.
  void Hide(std::string path, int opens) {
    hidden_ = std::move(path);
    opens_ = opens;
  }
  int opens_left() const { return opens_; }
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    if (path == hidden_ && opens_ > 0) {
      --opens_;
      return absl::NotFoundError(path + ": no such file");
    }
    return FailingFileSystem::OpenForRead(path);
  }

 private:
  std::string hidden_;
  int opens_ = 0;
};

TEST_F(EvaluatorTest, AFileOfTheFinalSnapshotThatIsOutOfSightForAMomentIsWaitedFor) {
  for (const int64_t step : {100, 200}) Commit(step);
  MarkDone(200);
  ForgetfulFileSystem files;
  files.Hide(DataPath(directory_.SnapshotPrefix(200), 0, 1), 2);
  options_.file_system = &files;
  const absl::Status status = Run(nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(files.opens_left(), 0);
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
}

TEST_F(EvaluatorTest, AFileOfTheFinalSnapshotThatIsMissingIsAnErrorInTheEnd) {
  Commit(200);
  MarkDone(200);
  ASSERT_TRUE(RemoveFile(DataPath(directory_.SnapshotPrefix(200), 0, 1)).ok());
  const TickingClock clock;
  const absl::Status status = Run(nullptr, &clock);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("its final snapshot of step 200"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("data-00000-of-00001"));
}

// Pairs of a user and one of two items.
class PairRecords : public Dataset {
 public:
  int64_t num_records() const override { return 6; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    *batch = Batch();
    batch->features.resize(2);
    for (const int64_t record : records) {
      batch->features[0].ids.push_back(static_cast<uint64_t>(record));
      batch->features[1].ids.push_back(static_cast<uint64_t>(record % 2));
    }
    return absl::OkStatus();
  }
};

TEST_F(EvaluatorTest, TheFirstEvaluatorWritesWhatTheDashboardBeginsWith) {
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(features {
             name: "user"
             id {}
           }
           features {
             name: "item"
             id {}
           }
           layers {
             name: "query"
             inputs: "user"
             embedding { rows: 6 dim: 1 }
           }
           layers {
             name: "found"
             inputs: "item"
             embedding { rows: 2 dim: 1 }
           }
           loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "found" })pb",
      options_.config.mutable_model()));
  auto* const retrieval = options_.config.mutable_evaluation()->add_metrics()->mutable_retrieval();
  retrieval->set_measure(v1::EvaluationConfig::Retrieval::RECALL);
  retrieval->set_k(1);
  retrieval->set_item_feature("item");
  const PairRecords records;
  stop_.Raise();
  for (const int index : {1, 0}) {
    options_.self.index = index;
    Evaluator evaluator(options_, nullptr, device_.get(), &records, &clock_, &stop_);
    EXPECT_EQ(evaluator.Run().code(), StatusCode::kCancelled);
    EXPECT_EQ(FileExists(model_dir_ + "/eval/examples.json"), index == 0);
    EXPECT_EQ(FileExists(model_dir_ + "/eval/items.columnar"), index == 0);
  }
  EXPECT_THAT(ReadRawFile(model_dir_ + "/eval/examples.json"), HasSubstr("\"user\":\"5\""));
}

// Looks for leases while it is read.
class WatchingDataset : public Dataset {
 public:
  WatchingDataset(const Dataset* records, std::string model_dir)
      : records_(records), model_dir_(std::move(model_dir)) {}

  int64_t num_records() const override { return records_->num_records(); }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto leases = ListLeases(FileSystem::Real(), model_dir_);
    EXPECT_TRUE(leases.ok()) << leases.status();
    for (const auto& [name, lease] : *leases) leased.insert(lease.holder + " " + lease.snapshot);
    return records_->Read(records, batch);
  }

  mutable std::set<std::string> leased;

 private:
  const Dataset* const records_;
  const std::string model_dir_;
};

TEST_F(EvaluatorTest, ASnapshotIsLeasedWhileItIsScored) {
  Commit(100);
  Commit(200);
  MarkDone(200);
  const WatchingDataset dataset(&records_, model_dir_);
  Evaluator evaluator(options_, nullptr, device_.get(), &dataset, &clock_, &stop_);
  ASSERT_TRUE(evaluator.Run().ok());
  EXPECT_THAT(dataset.leased,
              ElementsAre("evaluator-0 model.ckpt-100", "evaluator-0 model.ckpt-200"));
  EXPECT_THAT(*ListLeases(FileSystem::Real(), model_dir_), IsEmpty());
}

// Loses the evaluations' directory while a snapshot is scored, as storage that is away does.
class LosingDataset : public WatchingDataset {
 public:
  LosingDataset(const Dataset* records, const std::string& model_dir)
      : WatchingDataset(records, model_dir), path_(model_dir + "/eval") {}

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    if (FileSystem::Real()->Rename(path_, path_ + ".away").ok())
      WriteRawFile(path_, "no directory");
    return WatchingDataset::Read(records, batch);
  }

 private:
  const std::string path_;
};

TEST_F(EvaluatorTest, ADirectoryThatIsLostMeanwhileAsksForARestart) {
  Commit(100);
  MarkDone(100);
  const LosingDataset dataset(&records_, model_dir_);
  const absl::Status status =
      Evaluator(options_, nullptr, device_.get(), &dataset, &clock_, &stop_).Run();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

// Makes the model directory read-only while a snapshot is scored, when the events go to a new file.
class ReadOnlyDataset : public WatchingDataset {
 public:
  ReadOnlyDataset(const Dataset* records, const std::string& model_dir, FailingFileSystem* files)
      : WatchingDataset(records, model_dir), path_(model_dir + "/eval"), files_(files) {}

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto names = ListDirectory(path_);
    for (const std::string& name : *names) {
      if (!absl::StartsWith(name, "events.")) continue;
      EXPECT_TRUE(RemoveFile(path_ + "/" + name).ok());
    }
    files_->FailFrom(0);
    return WatchingDataset::Read(records, batch);
  }

 private:
  const std::string path_;
  FailingFileSystem* const files_;
};

TEST_F(EvaluatorTest, ADirectoryThatBecomesReadOnlyMeanwhileAsksForARestart) {
  Commit(100);
  MarkDone(100);
  FailingFileSystem files;
  options_.file_system = &files;
  const ReadOnlyDataset dataset(&records_, model_dir_, &files);
  const absl::Status status =
      Evaluator(options_, nullptr, device_.get(), &dataset, &clock_, &stop_).Run();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

// When the state of the model directory is looked for, it is as if a signal came, and fails.
class StopsWhenLookedAt : public FailingFileSystem {
 public:
  explicit StopsWhenLookedAt(StopSignal* stop) : stop_(stop) {}

  absl::StatusOr<bool> Exists(const std::string& path) override {
    if (BaseName(path) != "checkpoint") return FailingFileSystem::Exists(path);
    stop_->Raise();
    return absl::UnavailableError("it does not answer");
  }

 private:
  StopSignal* const stop_;
};

TEST_F(EvaluatorTest, WhatFailsWhileItIsAskedToStopIsNoReasonForItsEnd) {
  StopsWhenLookedAt files(&stop_);
  options_.file_system = &files;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Run(nullptr).code(), StatusCode::kCancelled);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("while stopping: it does not answer"));
}

TEST_F(EvaluatorTest, WhereNoLeaseCanBeWrittenItScoresWithout) {
  FailingFileSystem read_only;
  read_only.FailFrom(0);
  options_.lease_files = &read_only;
  Commit(100);
  MarkDone(100);
  testing::internal::CaptureStderr();
  const absl::Status status = Run(nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("reading the snapshot of step 100 without a lease: "));
  EXPECT_THAT(ScoredSteps(), ElementsAre(100));
}

TEST_F(EvaluatorTest, SaysThatItEvaluatesOnceItsFilesAreOpen) {
  MarkDone(100);
  Commit(100);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Run(nullptr), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(absl::StrCat("evaluating ", model_dir_, " on ", records_.num_records(),
                                     " records, cpu")));
  FailingFileSystem away;
  away.FailFrom(0);
  options_.file_system = &away;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Run(nullptr).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), ::testing::Not(HasSubstr("evaluating ")));
}

TEST_F(EvaluatorTest, AcknowledgesUntilTheChiefIsDone) {
  Commit(100);
  OnAcknowledge([&](int64_t step) {
    if (step == 100) {
      Commit(200, 3);
      SetPhase(v1::EVALUATING, 200);
    } else {
      SetPhase(v1::DONE, 200);
    }
  });
  const absl::Status status = Run(&chief_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
  EXPECT_EQ(chief_.Requests(&ChiefService::Register)[0].config_hash(), kConfigHash);
  EXPECT_EQ(leaves(), 1);
  const auto acknowledged = chief_.Requests(&ChiefService::AcknowledgeEvaluation);
  ASSERT_EQ(acknowledged.size(), 2u);
  EXPECT_EQ(acknowledged[1].step(), 200);
  EXPECT_EQ(acknowledged[1].header().incarnation(), 3u);
  EXPECT_EQ(acknowledged[1].header().membership_secret(), 4u);
  EXPECT_NEAR(acknowledged[1].metrics().at("loss"), FiveRecordsLoss(3), 1e-5);
  EXPECT_DOUBLE_EQ(acknowledged[1].metrics().at("accuracy"), 0.8);
}

TEST_F(EvaluatorTest, AcknowledgesAFinalSnapshotThatAnEarlierLifeScored) {
  Commit(200);
  ASSERT_TRUE(CreateDirectories(model_dir_ + "/eval").ok());
  // The snapshot of step 100 was deleted since; training went back behind that of step 900.
  WriteRawFile(MetricsPath(),
               "{\"step\":100,\"loss\":1}\n{\"step\":200,\"loss\":0.5}\n"
               "{\"step\":900,\"loss\":1}\n");
  SetPhase(v1::EVALUATING, 200);
  OnAcknowledge([&](int64_t step) { SetPhase(v1::DONE, 200); });
  ASSERT_TRUE(Run(&chief_).ok());
  const auto acknowledged = chief_.Requests(&ChiefService::AcknowledgeEvaluation);
  ASSERT_EQ(acknowledged.size(), 1u);
  EXPECT_EQ(acknowledged[0].step(), 200);
  EXPECT_EQ(acknowledged[0].metrics().at("loss"), 0.5);
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
}

TEST_F(EvaluatorTest, StepsThatAreTrainedAgainAreScoredAgain) {
  Commit(100, 1, 1);
  Commit(200, 5, 2);
  chief_.After(&ChiefService::AcknowledgeEvaluation, [this](const auto& request, auto*) {
    // The chief falls back to step 100, past a damaged snapshot.
    if (request.snapshot_id() == 2) Commit(150, 2, 3);
    if (request.snapshot_id() == 3) {
      Commit(200, 3, 4);
      SetPhase(v1::EVALUATING, 200);
    }
    if (request.snapshot_id() == 4) SetPhase(v1::DONE, 200);
    return absl::OkStatus();
  });
  const absl::Status status = Run(&chief_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 150, 200)) << "the first score of step 200 is gone";
  const auto last = chief_.Requests(&ChiefService::AcknowledgeEvaluation).back();
  EXPECT_EQ(last.step(), 200);
  EXPECT_EQ(last.snapshot_id(), 4u);
  EXPECT_NEAR(last.metrics().at("loss"), FiveRecordsLoss(3), 1e-5);
}

TEST_F(EvaluatorTest, AScoreFromAnEarlierLifeIsOfItsSnapshotOnly) {
  options_.config.mutable_evaluation()->add_exporters()->mutable_best()->set_metric("loss");
  options_.config.mutable_evaluation()->mutable_exporters(0)->mutable_best()->set_keep(1);
  Commit(100, 3, 7);
  MarkDone(100);
  ASSERT_TRUE(Run(nullptr).ok());
  Commit(100, 1, 8);
  ASSERT_TRUE(Run(nullptr).ok());
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 100));
  ASSERT_TRUE(Run(nullptr).ok());
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 100)) << "the second score is of this snapshot";
  const std::string exported = ReadRawFile(model_dir_ + "/export/best/100/export.json");
  EXPECT_THAT(exported, HasSubstr("\"snapshot\": \"0000000000000008\""));
}

TEST_F(EvaluatorTest, EarlyStoppingLooksAtTheSnapshotsOfTheJobOnly) {
  auto* stopping = options_.config.mutable_evaluation()->mutable_early_stopping();
  stopping->set_metric("loss");
  stopping->set_patience(2);
  Commit(100, 1, 1);
  ASSERT_TRUE(CreateDirectories(model_dir_ + "/eval").ok());
  // The lines are those of a training that got worse, and was taken back to step 100.
  WriteRawFile(MetricsPath(),
               "{\"step\":100,\"loss\":0.5,\"snapshot\":\"0000000000000001\"}\n"
               "{\"step\":200,\"loss\":0.6,\"snapshot\":\"0000000000000002\"}\n"
               "{\"step\":300,\"loss\":0.7,\"snapshot\":\"0000000000000003\"}\n");
  OnAcknowledge([&](int64_t step) {
    if (step == 100) {
      Commit(200, 1, 4);
      SetPhase(v1::EVALUATING, 200);
    }
    if (step == 200) SetPhase(v1::DONE, 200);
  });
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_EQ(chief_.Count(&ChiefService::EndTraining), 0);
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
}

TEST_F(EvaluatorTest, ScoresTheFinalSnapshotOfAChiefThatDidNotWait) {
  for (const int64_t step : {100, 200}) Commit(step);
  SetPhase(v1::DONE, 200);
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_EQ(ScoredSteps().back(), 200);
  EXPECT_EQ(leaves(), 1);
}

TEST_F(EvaluatorTest, AChiefThatHasGoneIsReplacedByItsMarker) {
  Commit(200);
  SetPhase(v1::EVALUATING, 200);
  OnAcknowledge([&](int64_t step) {
    MarkDone(step);
    chief_.Sever();
  });
  const absl::Status status = Run(&chief_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(leaves(), 0);
}

TEST_F(EvaluatorTest, TheMarkerOfAnotherConfigurationEndsNothing) {
  Commit(100);
  MarkDone(100, kConfigHash + 1);
  int calls = 0;
  chief_.Answer(&ChiefService::Register, [&](const auto&, auto*) {
    if (++calls == 3) {
      Commit(200);
      MarkDone(200);
    }
    return absl::UnavailableError("away");
  });
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
}

TEST_F(EvaluatorTest, TellsTheChiefItsDevice) {
  Commit(100);
  SetPhase(v1::DONE, 100);
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_EQ(chief_.Requests(&ChiefService::Register)[0].device(), device_->name());
}

TEST_F(EvaluatorTest, TheMarkerOfAnotherConfigurationEndsItOnceNothingChanges) {
  Commit(100);
  MarkDone(100, kConfigHash + 1);
  chief_.Sever();
  const TickingClock clock;
  const absl::Status status = Run(&chief_, &clock);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(model_dir_));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no chief answers"));
  EXPECT_THAT(ScoredSteps(), ElementsAre(100));
}

TEST_F(EvaluatorTest, AThrottledOneScoresTheFinalSnapshotAtOnce) {
  options_.config.mutable_evaluation()->set_start_delay_seconds(3600);
  options_.config.mutable_evaluation()->set_throttle_seconds(3600);
  for (const int64_t step : {100, 200, 300}) Commit(step);
  MarkDone(300);
  // The clock stands still.
  ASSERT_TRUE(Run(nullptr).ok());
  EXPECT_THAT(ScoredSteps(), ElementsAre(300));
}

TEST_F(EvaluatorTest, EarlyStoppingAsksTheChiefToEndTraining) {
  auto* stopping = options_.config.mutable_evaluation()->mutable_early_stopping();
  stopping->set_metric("loss");
  stopping->set_patience(2);
  // The loss grows with the scale.
  for (const int64_t step : {100, 200, 300}) Commit(step, static_cast<float>(step));
  std::string asked;
  chief_.Answer(&ChiefService::EndTraining, [&](const auto& request, auto*) {
    asked = request.reason();
    Commit(400, 1);
    SetPhase(v1::EVALUATING, 400);
    return absl::OkStatus();
  });
  OnAcknowledge([&](int64_t step) {
    if (step == 400) SetPhase(v1::DONE, 400);
  });
  const absl::Status status = Run(&chief_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(asked, HasSubstr("early stopping: loss has not become better than "));
  EXPECT_THAT(asked, HasSubstr("(step 100) in 2 evaluations"));
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200, 300, 400));
}

TEST_F(EvaluatorTest, EarlyStoppingIsTheFirstEvaluatorsBusiness) {
  auto* stopping = options_.config.mutable_evaluation()->mutable_early_stopping();
  stopping->set_metric("loss");
  stopping->set_patience(1);
  options_.self.index = 1;
  for (const int64_t step : {100, 200, 300}) Commit(step, static_cast<float>(step));
  int heartbeats_after = 0;
  OnHeartbeat([&] {
    const auto acknowledged = chief_.Requests(&ChiefService::AcknowledgeEvaluation);
    if (!acknowledged.empty() && acknowledged.back().step() == 300 && ++heartbeats_after == 5) {
      SetPhase(v1::DONE, 300);
    }
  });
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_EQ(chief_.Count(&ChiefService::EndTraining), 0);
}

// No read returns before two threads are reading.
class MeetingDataset : public Dataset {
 public:
  explicit MeetingDataset(const Dataset* records) : records_(records) {}

  int64_t num_records() const override { return records_->num_records(); }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    {
      MutexLock lock(&mu_);
      readers_.insert(std::this_thread::get_id());
      arrived_.NotifyAll();
      while (readers_.size() < 2) arrived_.Wait(&mu_);
    }
    return records_->Read(records, batch);
  }

 private:
  const Dataset* const records_;
  mutable Mutex mu_;
  mutable CondVar arrived_;
  mutable std::set<std::thread::id> readers_ ABSL_GUARDED_BY(mu_);
};

TEST_F(EvaluatorTest, TwoShareTheSnapshotsOfAJob) {
  std::vector<int64_t> steps;
  for (int64_t step = 100; step <= 1200; step += 100) {
    WriteTinyBundle(directory_.SnapshotPrefix(step), 1);
    ASSERT_TRUE(directory_.Commit(step, {.keep_max = 0}).ok());
    steps.push_back(step);
  }
  MarkDone(1200);
  const MeetingDataset records(&records_);
  std::vector<int64_t> scored[2];
  absl::Status statuses[2];
  std::vector<std::thread> evaluators;
  for (int i = 0; i < 2; ++i) {
    evaluators.emplace_back([&, i, options = options_]() mutable {
      options.self.index = i;
      options.on_evaluation = [&scored, i](const EvaluationRecord& record, bool scored_here) {
        if (scored_here) scored[i].push_back(record.step);
      };
      const auto device = *CreateDevice("cpu", {.threads = 1});
      statuses[i] = Evaluator(options, nullptr, device.get(), &records, &clock_, &stop_).Run();
    });
  }
  for (std::thread& evaluator : evaluators) evaluator.join();
  std::vector<int64_t> all;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(statuses[i].ok()) << statuses[i];
    EXPECT_FALSE(scored[i].empty()) << i;
    all.insert(all.end(), scored[i].begin(), scored[i].end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, steps) << "each snapshot once";
  std::vector<int64_t> lines = ScoredSteps();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, steps);
}

TEST_F(EvaluatorTest, ADeadEvaluatorsSnapshotIsScoredWhenItsClaimHasEnded) {
  for (const int64_t step : {100, 200}) Commit(step);
  MarkDone(200);
  ASSERT_TRUE(CreateDirectories(model_dir_ + "/eval/claims").ok());
  WriteRawFile(model_dir_ + "/eval/claims/200.1",
               absl::StrCat("{\"begun\":\"", absl::FormatTime(clock_.Now()), "\",\"expires\":\"",
                            absl::FormatTime(clock_.Now() + absl::Seconds(30)),
                            "\",\"holder\":\"evaluator-1\",\"id\":7}\n"));
  // Looking moves it.
  const TickingClock clock;
  options_.final_snapshot_patience = absl::Hours(1);
  testing::internal::CaptureStderr();
  const absl::Status status = Run(nullptr, &clock);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("step 200: taking over from evaluator-1"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
}

TEST_F(EvaluatorTest, ExportsAsConfiguredBeforeTheJobEnds) {
  auto* evaluation = options_.config.mutable_evaluation();
  evaluation->add_exporters()->mutable_final_snapshot();
  auto* best = evaluation->add_exporters()->mutable_best();
  best->set_metric("loss");
  best->set_keep(1);
  Commit(100, 1);
  Commit(200, 50);
  SetPhase(v1::EVALUATING, 200);
  bool exported = false;
  OnAcknowledge([&](int64_t step) {
    if (step != 200) return;
    exported = FileExists(model_dir_ + "/export/final/200/export.json");
    SetPhase(v1::DONE, 200);
  });
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_TRUE(exported) << "when the chief hears of the final step the job may end";
  EXPECT_THAT(*ListDirectory(model_dir_ + "/export/best"), ElementsAre("100"));
}

TEST_F(EvaluatorTest, EndsWithTheChiefsReason) {
  SetPhase(v1::FAILED);
  const absl::Status status = Run(&chief_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "the chief has given up: out of luck");
  EXPECT_EQ(leaves(), 1);
}

TEST_F(EvaluatorTest, Stops) {
  Commit(100);
  OnAcknowledge([&](int64_t step) { stop_.Raise(); });
  EXPECT_EQ(Run(&chief_).code(), StatusCode::kCancelled);
  EXPECT_EQ(leaves(), 1);
  EXPECT_EQ(Run(nullptr).code(), StatusCode::kCancelled);
}

TEST_F(EvaluatorTest, ASnapshotOfAnotherModelIsAnError) {
  Commit(100);
  options_.config.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(3);
  const absl::Status status = Run(nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("scores/kernel"));
}

TEST_F(EvaluatorTest, NeedsAModelDirectory) {
  options_.config.mutable_checkpoint()->clear_model_dir();
  EXPECT_EQ(Run(nullptr).code(), StatusCode::kInvalidArgument);
}

TEST_F(EvaluatorTest, NeedsRecords) {
  const absl::Status status =
      Evaluator(options_, nullptr, device_.get(), nullptr, &clock_, &stop_).Run();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST_F(EvaluatorTest, ADamagedMetricsFileIsAnError) {
  ASSERT_TRUE(CreateDirectories(model_dir_ + "/eval").ok());
  WriteRawFile(MetricsPath(), "nonsense\n{\"step\":100,\"loss\":1}\n");
  EXPECT_EQ(Run(nullptr).code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace keelson
