// Training that ends before its last step: what the coordinator and the handler make of it.
#include <optional>
#include <string>
#include <vector>

#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "chief/lifecycle/chief_run_testing.h"
#include "chief/service/chief_handler.h"
#include "core/base/file.h"
#include "core/checkpoint/done_marker.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

v1::EndTrainingRequest Because(const std::string& reason) {
  v1::EndTrainingRequest request;
  request.set_reason(reason);
  return request;
}

absl::Status EndTraining(ChiefService* chief, const v1::EndTrainingRequest& request) {
  v1::EndTrainingResponse response;
  return chief->EndTraining(request, &response);
}

// A coordinator without a chief around it, and its successors.
class EndTrainingTest : public testing::Test {
 protected:
  EndTrainingTest() { NewChief(); }

  void NewChief() {
    Coordinator::Options options;
    options.config_hash = config_hash_;
    chief_.emplace(options, &clock_);
    work_.first_lease_id += 1'000'000;
  }
  void StartTraining() { chief_->start()->StartTraining({}, WorkLedger(work_)); }
  void Succeed(const v1::PersistedJobState& persisted) {
    NewChief();
    chief_->start()->Resume({}, *WorkLedger::FromPersisted(persisted, work_), persisted);
  }
  void Register(const std::vector<HeldLease>& held = {}) {
    EXPECT_EQ(
        chief_->members()->Register(kWorker, TestId(7), config_hash_, "host:1", held).status(),
        absl::OkStatus());
  }
  std::optional<WorkLease> Acquire(const WorkerReport& report = {}) {
    const auto lease = chief_->requests()->AcquireWork(kWorker, TestId(7), report, kNoWait);
    EXPECT_EQ(lease.status(), absl::OkStatus());
    return lease.value_or(std::nullopt);
  }
  static WorkerReport Done(const WorkLease& lease) {
    WorkerReport report;
    report.leases = {{lease.id, static_cast<int64_t>(lease.tickets.size())}};
    return report;
  }
  CoordinatorStatus status() { return chief_->reports()->GetStatus(); }

  ManualClock clock_;
  uint64_t config_hash_ = kHash;
  WorkOptions work_ = {40, 1000, 10, 1, 77};
  std::optional<Coordinator> chief_;
};

TEST_F(EndTrainingTest, TheStepsUnderWayAreDoneAndNoOthers) {
  StartTraining();
  Register();
  const auto lease = Acquire();
  ASSERT_TRUE(lease.has_value());
  ASSERT_EQ(chief_->control()->EndTraining("good enough"), absl::OkStatus());
  EXPECT_EQ(Acquire(), std::nullopt);
  EXPECT_FALSE(status().trained);
  EXPECT_EQ(status().end_reason, "good enough");
  EXPECT_EQ(Acquire(Done(*lease)), std::nullopt);
  EXPECT_TRUE(status().trained);
  EXPECT_EQ(status().step, 1);
  EXPECT_EQ(status().max_steps, 40);
  StopSignal never;
  EXPECT_EQ(chief_->control()->WaitForSteps(40, absl::InfiniteDuration(), never), 1);
}

TEST_F(EndTrainingTest, AskingAgainChangesNothing) {
  StartTraining();
  ASSERT_EQ(chief_->control()->EndTraining("first"), absl::OkStatus());
  ASSERT_EQ(chief_->control()->EndTraining("second"), absl::OkStatus());
  chief_->control()->SetPhase(JobPhase::kDone);
  EXPECT_EQ(chief_->control()->EndTraining("third"), absl::OkStatus());
  EXPECT_EQ(status().end_reason, "first");
}

TEST_F(EndTrainingTest, AJobThatDoesNotTrainDoesNotEndEarly) {
  EXPECT_EQ(chief_->control()->EndTraining("x").code(), absl::StatusCode::kFailedPrecondition);
  work_.max_steps = 1;
  StartTraining();
  Register();
  EXPECT_EQ(Acquire(Done(*Acquire())), std::nullopt);
  EXPECT_EQ(chief_->control()->EndTraining("x").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status().end_reason, "");
}

TEST_F(EndTrainingTest, TheWorkOfALostWorkerIsNotHandedOn) {
  StartTraining();
  Register();
  ASSERT_TRUE(Acquire().has_value());
  ASSERT_EQ(chief_->control()->EndTraining("x"), absl::OkStatus());
  clock_.Advance(chief_->roster()->lease());
  chief_->roster()->ExpireLeases();
  EXPECT_FALSE(status().trained);
  chief_->roster()->HandOn(chief_->roster()->TakeEnded());
  EXPECT_TRUE(status().trained);
  EXPECT_EQ(status().step, 0);
}

TEST_F(EndTrainingTest, ASuccessorKeepsToIt) {
  StartTraining();
  Register();
  const auto lease = Acquire();
  ASSERT_EQ(chief_->control()->EndTraining("good enough"), absl::OkStatus());
  Succeed(chief_->persistence()->PersistedState());
  EXPECT_EQ(status().end_reason, "good enough");
  EXPECT_FALSE(status().trained) << "the worker is expected back with its step";
  Register({{lease->id, lease->tickets, 1, 0}});
  EXPECT_TRUE(status().trained);
  EXPECT_EQ(status().step, 1);
}

TEST_F(EndTrainingTest, StepsThatASuccessorDoesNotKnowOfAreWaitedFor) {
  StartTraining();
  Register();
  const auto lease = Acquire();
  ASSERT_EQ(chief_->control()->EndTraining("x"), absl::OkStatus());
  // As it is when the newest snapshot is newer than every persisted state.
  v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  *persisted.mutable_job() = chief_->persistence()->LedgerState();
  persisted.clear_leases();
  NewChief();
  chief_->start()->Resume({}, *WorkLedger::FromState(persisted.job(), work_), persisted);
  EXPECT_FALSE(status().trained);
  Register({{lease->id, lease->tickets, 0, 0}});
  EXPECT_FALSE(status().trained);
  Acquire(Done(*lease));
  EXPECT_TRUE(status().trained);
}

TEST_F(EndTrainingTest, ASnapshotKeepsToItAsLongAsTheConfigurationIsTheSame) {
  StartTraining();
  ASSERT_EQ(chief_->control()->EndTraining("good enough"), absl::OkStatus());
  const v1::JobState state = chief_->persistence()->LedgerState();
  NewChief();
  chief_->start()->StartTraining({}, *WorkLedger::FromState(state, work_));
  EXPECT_TRUE(status().trained);
  EXPECT_EQ(status().end_reason, "good enough");
  config_hash_ = kHash + 1;
  NewChief();
  chief_->start()->StartTraining({}, *WorkLedger::FromState(state, work_));
  EXPECT_FALSE(status().trained);
  EXPECT_EQ(status().end_reason, "");
}

TEST_F(EndTrainingTest, ItIsToBeStoredAtTheServersAtOnce) {
  StartTraining();
  chief_->persistence()->NoteStored(chief_->persistence()->versions().current);
  ASSERT_FALSE(chief_->persistence()->StateUrgent());
  EXPECT_TRUE(chief_->persistence()->WaitUntilStored(absl::ZeroDuration()));
  ASSERT_EQ(chief_->control()->EndTraining("x"), absl::OkStatus());
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  EXPECT_FALSE(chief_->persistence()->WaitUntilStored(absl::Milliseconds(1)));
  chief_->persistence()->NoteStored(chief_->persistence()->versions().current);
  EXPECT_TRUE(chief_->persistence()->WaitUntilStored(absl::ZeroDuration()));
}

// ---- The call.

class EndTrainingCallTest : public EndTrainingTest {
 protected:
  EndTrainingCallTest() { chief_->persistence()->NoteStored(~uint64_t{0}); }

  ChiefHandler handler_{&*chief_};
};

TEST_F(EndTrainingCallTest, WorkersAreToldOnceTheStepsUnderWayAreDone) {
  StartTraining();
  Join(&handler_, kWorker);
  v1::AcquireWorkRequest request;
  *request.mutable_header() = HeaderOf(kWorker);
  v1::AcquireWorkResponse lease;
  ASSERT_EQ(handler_.AcquireWork(request, &lease), absl::OkStatus());
  ASSERT_EQ(EndTraining(&handler_, Because("good enough")), absl::OkStatus());
  v1::AcquireWorkResponse none;
  ASSERT_EQ(handler_.AcquireWork(request, &none), absl::OkStatus());
  EXPECT_EQ(none.phase(), v1::TRAINING);
  *request.mutable_progress() = keelson::Done(lease);
  ASSERT_EQ(handler_.AcquireWork(request, &none), absl::OkStatus());
  EXPECT_EQ(none.lease_id(), 0u);
  EXPECT_EQ(none.phase(), v1::TRAINING) << "until the last snapshot is there";
  EXPECT_EQ(StatusOf(&handler_).end_reason(), "good enough");
}

TEST_F(EndTrainingCallTest, AMemberNamesItself) {
  StartTraining();
  v1::EndTrainingRequest request = Because("early stopping");
  *request.mutable_header() = HeaderOf(kEvaluator);
  EXPECT_EQ(EndTraining(&handler_, request).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(StatusOf(&handler_).end_reason(), "");
  Join(&handler_, kEvaluator);
  EXPECT_EQ(EndTraining(&handler_, request), absl::OkStatus());
  EXPECT_EQ(StatusOf(&handler_).end_reason(), "early stopping");
}

TEST_F(EndTrainingCallTest, AReasonIsOneLine) {
  StartTraining();
  EXPECT_EQ(EndTraining(&handler_, Because("two\nlines")),
            absl::InvalidArgumentError("reason: expected one line of at most 1000 bytes, found 9 "
                                       "with control characters"));
  EXPECT_EQ(EndTraining(&handler_, Because(std::string(1001, 'x'))).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOf(&handler_).end_reason(), "");
  EXPECT_EQ(EndTraining(&handler_, {}), absl::OkStatus());
  EXPECT_EQ(StatusOf(&handler_).end_reason(), "no reason was given");
}

// ---- The whole chief.

TEST_F(ChiefRunTest, TrainingThatEndsEarlyFinishesWithItsSnapshot) {
  options_.config.mutable_train()->set_max_steps(1000);
  Start();
  Join(service(), kWorker);
  EXPECT_GT(Work(service(),
                 [&] {
                   if (StatusOf(service()).step() < 3) return false;
                   EXPECT_EQ(EndTraining(service(), Because("good enough")), absl::OkStatus());
                   return false;
                 }),
            v1::FINISHING);
  const int64_t step = StatusOf(service()).step();
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_LT(step, 1000);
  EXPECT_EQ(SnapshotSteps().back(), step);
  EXPECT_EQ(StatusFile()["phase"], "DONE");
  EXPECT_EQ(StatusFile()["step"], step);
  EXPECT_EQ(StatusFile()["max_steps"], 1000);
  EXPECT_EQ(StatusFile()["end_reason"], "good enough");
  for (const char* name : {"placement.json", "train_config.textproto"}) {
    EXPECT_TRUE(FileExists(JoinPath(options_.config.checkpoint().model_dir(), name))) << name;
  }
  const auto marker = ReadDoneMarker(options_.config.checkpoint().model_dir());
  ASSERT_TRUE(marker.ok() && marker->has_value());
  EXPECT_EQ(**marker, (DoneMarker{step, FakeParameterServer::kConfigHash}));
}

TEST_F(ChiefRunTest, AChiefThatFollowsAKilledOneEndsTrainingEarlyToo) {
  options_.config.mutable_train()->set_max_steps(1000);
  Start();
  Join(service(), kWorker);
  const v1::AcquireWorkResponse lease = AwaitWork(service());
  ASSERT_NE(lease.lease_id(), 0u);
  ASSERT_EQ(EndTraining(service(), Because("good enough")), absl::OkStatus());
  Kill();
  Start();
  AwaitPhase(service(), v1::TRAINING);
  Join(service(), kWorker, {lease});
  Report(service(), Done(lease));
  EXPECT_GT(Work(service()), v1::FINISHING);
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(StatusFile()["step"], lease.tickets_size());
  EXPECT_EQ(StatusFile()["end_reason"], "good enough");
  EXPECT_EQ(StatusFile()["chief"]["restarts"], 1);
}

}  // namespace
}  // namespace keelson
