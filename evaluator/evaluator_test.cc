#include "evaluator/evaluator.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/client/chief_service_testing.h"
#include "core/device/device_factory.h"
#include "core/summary/tf_record.h"
#include "evaluator/evaluator_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kConfigHash = 0xabc;

// A chief at the end of its job; what happens when a step is acknowledged is the test's.
class Chief : public FakeChiefService {
 public:
  absl::Status Register(const v1::RegisterRequest& request, v1::RegisterResponse*) override {
    if (on_register) on_register();
    MutexLock lock(&mu_);
    if (away_) return absl::UnavailableError("away");
    hash_ = request.config_hash();
    return absl::OkStatus();
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest&, v1::HeartbeatResponse* response) override {
    if (on_heartbeat) on_heartbeat();
    MutexLock lock(&mu_);
    if (away_) return absl::UnavailableError("away");
    response->set_phase(phase_);
    response->set_error("out of luck");
    return absl::OkStatus();
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse*) override {
    {
      MutexLock lock(&mu_);
      if (away_) return absl::UnavailableError("away");
      acknowledged_.push_back(request);
    }
    if (on_acknowledge) on_acknowledge(request.step());
    return absl::OkStatus();
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest&, v1::JobStatus* response) override {
    MutexLock lock(&mu_);
    response->set_phase(phase_);
    response->set_snapshot_step(snapshot_step_);
    return absl::OkStatus();
  }
  absl::Status Leave(const v1::LeaveRequest&, v1::LeaveResponse*) override {
    MutexLock lock(&mu_);
    ++leaves_;
    return absl::OkStatus();
  }

  void SetPhase(v1::JobPhase phase, int64_t snapshot_step = 0) {
    MutexLock lock(&mu_);
    phase_ = phase;
    snapshot_step_ = snapshot_step;
  }
  void GoAway() {
    MutexLock lock(&mu_);
    away_ = true;
  }
  std::vector<v1::AcknowledgeEvaluationRequest> acknowledged() {
    MutexLock lock(&mu_);
    return acknowledged_;
  }
  uint64_t hash() {
    MutexLock lock(&mu_);
    return hash_;
  }
  int leaves() {
    MutexLock lock(&mu_);
    return leaves_;
  }

  // Set before the evaluator runs; called on its thread for the chief.
  std::function<void()> on_register;
  std::function<void()> on_heartbeat;
  std::function<void(int64_t step)> on_acknowledge;

 private:
  Mutex mu_;
  bool away_ ABSL_GUARDED_BY(mu_) = false;
  v1::JobPhase phase_ ABSL_GUARDED_BY(mu_) = v1::TRAINING;
  int64_t snapshot_step_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t hash_ ABSL_GUARDED_BY(mu_) = 0;
  int leaves_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<v1::AcknowledgeEvaluationRequest> acknowledged_ ABSL_GUARDED_BY(mu_);
};

// Time passes whenever somebody looks.
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
    options_.new_incarnation = [] { return 3; };
    options_.config = TinyConfig(model_dir_);
    options_.config_hash = kConfigHash;
    options_.poll_interval = absl::Milliseconds(1);
    options_.heartbeat_interval = absl::Milliseconds(1);
  }

  absl::Status Run(ChiefService* chief, const Clock* clock = nullptr) {
    return Evaluator(options_, chief, device_.get(), &records_, clock == nullptr ? &clock_ : clock,
                     &stop_)
        .Run();
  }
  void Commit(int64_t step, float scale = 1) { CommitTinySnapshot(&directory_, step, scale); }
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
  Chief chief_;
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
  options_.on_evaluation = [&](const EvaluationRecord& record) { told.push_back(record.step); };
  ASSERT_TRUE(Run(nullptr).ok());
  EXPECT_THAT(told, ElementsAre(100, 200));
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
  chief_.on_heartbeat = [&] {
    if (++heartbeats == 20) chief_.SetPhase(v1::EVALUATING, 200);
  };
  EXPECT_EQ(Run(&chief_).code(), StatusCode::kDataLoss);
  EXPECT_EQ(chief_.leaves(), 1);
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

// Looks for leases while it is read.
class WatchingDataset : public Dataset {
 public:
  WatchingDataset(const Dataset* records, std::string model_dir)
      : records_(records), model_dir_(std::move(model_dir)) {}

  int64_t num_records() const override { return records_->num_records(); }
  const Shape& example_shape() const override { return records_->example_shape(); }
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

TEST_F(EvaluatorTest, WhereNoLeaseCanBeWrittenItScoresWithout) {
  class ReadOnly : public FileSystem {
   public:
    absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                              bool truncate) override {
      return Denied(path);
    }
    absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(
        const std::string& path) override {
      return Real()->OpenForRead(path);
    }
    bool Exists(const std::string& path) override { return Real()->Exists(path); }
    absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override {
      return Real()->ModificationTime(path);
    }
    absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
      return Real()->List(path);
    }
    absl::Status CreateDirectories(const std::string& path) override { return Denied(path); }
    absl::Status Remove(const std::string& path) override { return Denied(path); }
    absl::Status Rename(const std::string& from, const std::string& to) override {
      return Denied(to);
    }
    absl::Status SyncDirectory(const std::string& path) override { return Denied(path); }

   private:
    static absl::Status Denied(const std::string& path) {
      return absl::PermissionDeniedError(path + ": read-only");
    }
  };
  ReadOnly read_only;
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

TEST_F(EvaluatorTest, AcknowledgesUntilTheChiefIsDone) {
  Commit(100);
  chief_.on_acknowledge = [&](int64_t step) {
    if (step == 100) {
      Commit(200, 3);
      chief_.SetPhase(v1::EVALUATING, 200);
    } else {
      chief_.SetPhase(v1::DONE, 200);
    }
  };
  const absl::Status status = Run(&chief_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
  EXPECT_EQ(chief_.hash(), kConfigHash);
  EXPECT_EQ(chief_.leaves(), 1);
  const auto acknowledged = chief_.acknowledged();
  ASSERT_EQ(acknowledged.size(), 2u);
  EXPECT_EQ(acknowledged[1].step(), 200);
  EXPECT_EQ(acknowledged[1].header().incarnation(), 3u);
  EXPECT_NEAR(acknowledged[1].metrics().at("loss"), FiveRecordsLoss(3), 1e-5);
  EXPECT_DOUBLE_EQ(acknowledged[1].metrics().at("accuracy"), 0.8);
}

TEST_F(EvaluatorTest, AcknowledgesAFinalSnapshotThatAnEarlierLifeScored) {
  Commit(200);
  ASSERT_TRUE(CreateDirectories(model_dir_ + "/eval").ok());
  // The line of step 900 is of a snapshot that no longer exists.
  WriteRawFile(MetricsPath(), "{\"step\":200,\"loss\":0.5}\n{\"step\":900,\"loss\":1}\n");
  chief_.SetPhase(v1::EVALUATING, 200);
  chief_.on_acknowledge = [&](int64_t step) { chief_.SetPhase(v1::DONE, 200); };
  ASSERT_TRUE(Run(&chief_).ok());
  const auto acknowledged = chief_.acknowledged();
  ASSERT_EQ(acknowledged.size(), 1u);
  EXPECT_EQ(acknowledged[0].step(), 200);
  EXPECT_EQ(acknowledged[0].metrics().at("loss"), 0.5);
  EXPECT_THAT(ScoredSteps(), ElementsAre(200, 900));
}

TEST_F(EvaluatorTest, ScoresTheFinalSnapshotOfAChiefThatDidNotWait) {
  for (const int64_t step : {100, 200}) Commit(step);
  chief_.SetPhase(v1::DONE, 200);
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_EQ(ScoredSteps().back(), 200);
  EXPECT_EQ(chief_.leaves(), 1);
}

TEST_F(EvaluatorTest, AChiefThatHasGoneIsReplacedByItsMarker) {
  Commit(200);
  chief_.SetPhase(v1::EVALUATING, 200);
  chief_.on_acknowledge = [&](int64_t step) {
    MarkDone(step);
    chief_.GoAway();
  };
  const absl::Status status = Run(&chief_);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(chief_.leaves(), 0);
}

TEST_F(EvaluatorTest, TheMarkerOfAnotherConfigurationEndsNothing) {
  Commit(100);
  MarkDone(100, kConfigHash + 1);
  chief_.GoAway();
  int calls = 0;
  chief_.on_register = [&] {
    if (++calls != 3) return;
    Commit(200);
    MarkDone(200);
  };
  ASSERT_TRUE(Run(&chief_).ok());
  EXPECT_THAT(ScoredSteps(), ElementsAre(100, 200));
}

TEST_F(EvaluatorTest, EndsWithTheChiefsReason) {
  chief_.SetPhase(v1::FAILED);
  const absl::Status status = Run(&chief_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "the chief has given up: out of luck");
  EXPECT_EQ(chief_.leaves(), 1);
}

TEST_F(EvaluatorTest, Stops) {
  Commit(100);
  chief_.on_acknowledge = [&](int64_t step) { stop_.Raise(); };
  EXPECT_EQ(Run(&chief_).code(), StatusCode::kCancelled);
  EXPECT_EQ(chief_.leaves(), 1);
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
