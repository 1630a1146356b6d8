// Chief::Run from the servers' appearance to the DONE marker.
#include "chief/lifecycle/chief_run_testing.h"
#include "core/base/file.h"
#include "core/checkpoint/job_state.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

TEST_F(ChiefRunTest, TrainsFromTheFirstSnapshotToTheDoneMarker) {
  Start();
  Join(service(), kWorker);
  EXPECT_THAT(Work(service()), AllOf(Ge(v1::FINISHING), Le(v1::DONE)));
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10));
  const auto done = directory().ReadDoneMarker();
  ASSERT_TRUE(done.ok() && done->has_value());
  EXPECT_EQ((*done)->step, 10);
  EXPECT_EQ((*done)->config_hash, FakeParameterServer::kConfigHash);
  for (int s = 0; s < 2; ++s) {
    EXPECT_EQ(servers_[s].finished(), 1);
    EXPECT_EQ(LastRestore(s), std::nullopt);
  }
  const nlohmann::json status = StatusFile();
  EXPECT_EQ(status["phase"], "DONE");
  EXPECT_EQ(status["step"], 10);
  EXPECT_EQ(status["snapshot_step"], 10);
}

TEST_F(ChiefRunTest, MembersLearnWhereAHostIs) {
  constexpr Task kHost = {Role::kWorker, 1};
  hosts_[1] = kHost;
  Start();
  chief_->NoteAddress(kHost, "c:3");
  Join(service(), kWorker);
  v1::GetModelRequest request;
  *request.mutable_header() = HeaderOf(kWorker);
  request.mutable_max_wait()->set_seconds(20);
  v1::GetModelResponse model;
  ASSERT_EQ(service()->GetModel(request, &model), absl::OkStatus());
  EXPECT_THAT(model.ps_addresses(), ElementsAre("a:1", "c:3"));
  chief_->NoteAddress(kHost, "d:4");
  v1::HeartbeatRequest heartbeat;
  *heartbeat.mutable_header() = HeaderOf(kWorker);
  heartbeat.set_servers_version(model.servers_version());
  v1::HeartbeatResponse answer;
  // The chief tells it once it has begun, which the worker may know before it.
  while (answer.servers_version() == model.servers_version() || answer.servers_version() == 0) {
    ASSERT_EQ(service()->Heartbeat(heartbeat, &answer), absl::OkStatus());
    std::this_thread::yield();
  }
  EXPECT_THAT(answer.ps_addresses(), ElementsAre("a:1", "d:4"));
  EXPECT_EQ(StatusOf(service()).servers(1).address(), "d:4");
  Work(service());
  Leave(service(), kWorker);
  EXPECT_EQ(Wait(), absl::OkStatus());
}

TEST_F(ChiefRunTest, SavesEverySoManySteps) {
  options_.config.mutable_checkpoint()->clear_save_seconds();
  options_.config.mutable_checkpoint()->set_save_steps(4);
  Start();
  Join(service(), kWorker);
  Work(service(), [&] {
    // No save is overtaken by the next.
    const int64_t step = StatusOf(service()).step();
    while (StatusOf(service()).snapshot_step() + 4 <= step) std::this_thread::yield();
    return false;
  });
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  const std::vector<int64_t> steps = SnapshotSteps();
  EXPECT_GE(steps.size(), 3u);
  EXPECT_EQ(steps.back(), 10);
}

TEST_F(ChiefRunTest, SavesEverySoManySeconds) {
  options_.lease = absl::InfiniteDuration();
  Start(&clock_);
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  bool saved = false;
  Work(service(), [&] {
    if (saved || StatusOf(service()).step() == 0) return false;
    while (servers_[0].snapshots_asked() < 2) {
      clock_.Advance(absl::Seconds(600));
      std::this_thread::yield();
    }
    return !(saved = true);
  });
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_GE(SnapshotSteps().size(), 3u);
}

TEST_F(ChiefRunTest, NamesTheServersThatNeverAppear) {
  options_.lease = absl::InfiniteDuration();
  servers_[1].Sever();
  Start(&clock_);
  Join(service(), kWorker);
  servers_[1].AwaitProbes(1);
  AwaitStatusFile();
  EXPECT_EQ(StatusFile()["phase"], "WAITING_FOR_SERVERS");
  EXPECT_THAT(StatusFile()["waiting_for"].dump(), HasSubstr("ps-1 at b:2"));
  clock_.Advance(absl::Minutes(10));
  AwaitPhase(service(), v1::FAILED);
  // Members learn the reason.
  v1::GetModelRequest request;
  *request.mutable_header() = HeaderOf(kWorker);
  v1::GetModelResponse model;
  const absl::Status told = service()->GetModel(request, &model);
  EXPECT_EQ(told.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(told.message()), HasSubstr("ps-1 at b:2"));
  Leave(service(), kWorker);
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("ps-1 at b:2"), Not(HasSubstr("ps-0"))));
  EXPECT_EQ(StatusFile()["phase"], "FAILED");
  EXPECT_THAT(StatusFile()["error"].get<std::string>(), HasSubstr("ps-1 at b:2"));
}

TEST_F(ChiefRunTest, WaitsForAServerThatGoesAwayDuringTheStart) {
  servers_[1].Block(&ParameterControl::Initialize, true);
  Start();
  servers_[1].AwaitInitializations(1);
  servers_[1].Sever();
  servers_[1].Block(&ParameterControl::Initialize, false);
  servers_[1].AwaitProbes(2);
  EXPECT_EQ(StatusOf(service()).phase(), v1::WAITING_FOR_SERVERS);
  servers_[1].Restore();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_GE(servers_[1].initializations().size(), 2u);
}

TEST_F(ChiefRunTest, WritesTheFirstSnapshotAgainWhenAServerDoesNotAnswer) {
  servers_[0].FailNext(&ParameterControl::WriteSnapshot,
                       {absl::DeadlineExceededError("no answer")});
  servers_[1].FailNext(&ParameterControl::WriteSnapshot,
                       {absl::UnavailableError("connection reset")});
  Complete();
  EXPECT_EQ(SnapshotSteps().front(), 0);
}

// Another chief may have called it, so that this one has been replaced.
TEST_F(ChiefRunTest, ASnapshotIsNotCommittedWithoutTheWordOfAServerThatWroteAPart) {
  std::atomic<bool> severed{false};
  servers_[1].After(&ParameterControl::WriteSnapshot, [&](const auto& request, auto*) {
    if (request.step() == 10 && !severed.exchange(true)) servers_[1].Sever();
    return absl::OkStatus();
  });
  Start();
  Join(service(), kWorker);
  WorkToTheLastStep(service());
  while (chief_->snapshot_figures().failures == 0) std::this_thread::yield();
  EXPECT_TRUE(severed);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
  servers_[1].Restore();
  Work(service());
  Leave(service(), kWorker);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10));
}

TEST_F(ChiefRunTest, RefusesAServerWithAnotherConfiguration) {
  servers_[0].SetConfigHash(0xdef);
  Start();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("ps-0"), HasSubstr("def")));
}

TEST_F(ChiefRunTest, ContinuesFromTheNewestSnapshot) {
  Complete();
  options_.config.mutable_train()->set_max_steps(14);
  Start();
  Join(service(), kWorker);
  const v1::AcquireWorkResponse lease = AwaitWork(service());
  ASSERT_EQ(lease.tickets_size(), 1);
  EXPECT_EQ(lease.tickets(0).step(), 10);
  EXPECT_FALSE((*directory().ReadDoneMarker()).has_value());
  Acquire(service(), Done(lease));
  Leave(service(), kWorker);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(LastRestore(0), 10);
  EXPECT_EQ(LastRestore(1), 10);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10, 11));
}

TEST_F(ChiefRunTest, AJobThatWasAllDoneWritesNothingAnew) {
  Complete();
  const int asked = servers_[0].snapshots_asked();
  Start();
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(servers_[0].snapshots_asked(), asked);
  EXPECT_TRUE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, ADamagedSnapshotIsPassedOver) {
  Complete();
  // One server can read it, the other one cannot.
  servers_[1].Damage(10);
  Complete();
  EXPECT_EQ(LastRestore(0), 0);
  EXPECT_EQ(LastRestore(1), 0);
  EXPECT_EQ((*directory().ReadDoneMarker())->step, 10);
}

TEST_F(ChiefRunTest, NoUsableSnapshotIsDataLoss) {
  Complete();
  servers_[1].Damage(10);
  servers_[1].Damage(0);
  Start();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none of its 2 snapshots"));
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10)) << "nothing was overwritten";
}

TEST_F(ChiefRunTest, ARestartedServerIsRestoredFromTheNewestSnapshot) {
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  servers_[1].AwaitInitializations(1);
  servers_[1].Restart();
  const auto requests = servers_[1].AwaitInitializations(2);
  EXPECT_TRUE(requests[1].has_restore_step());
  EXPECT_EQ(requests[1].restore_step(), 0);
  EXPECT_EQ(requests[1].shard(), 1u);
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  Work(service());
  Leave(service(), kWorker);
  EXPECT_EQ(Wait(), absl::OkStatus());
}

TEST_F(ChiefRunTest, TheStatusFileTellsWhichServerIsLost) {
  Start();
  AwaitStatusFile();
  const auto await_states = [&](const nlohmann::json& expected) {
    nlohmann::json states;
    while (states != expected) {
      std::this_thread::yield();
      states = nlohmann::json::array();
      const nlohmann::json status = StatusFile();
      for (const nlohmann::json& server : status["servers"]) states.push_back(server["state"]);
    }
  };
  await_states({"alive", "alive"});
  servers_[1].Sever();
  await_states({"alive", "lost"});
  servers_[1].Restore();
  await_states({"alive", "alive"});
  EXPECT_EQ(StatusFile()["servers"][1]["restarts"], 0);
}

TEST_F(ChiefRunTest, ALossThatIsNotFiniteEndsTheJob) {
  Start();
  Join(service(), kWorker);
  const v1::AcquireWorkResponse lease = AwaitWork(service());
  v1::HeartbeatRequest heartbeat;
  *heartbeat.mutable_header() = HeaderOf(kWorker);
  heartbeat.mutable_progress()->mutable_figures()->set_non_finite_losses(1);
  v1::HeartbeatResponse response;
  ASSERT_EQ(service()->Heartbeat(heartbeat, &response), absl::OkStatus());
  EXPECT_EQ(Work(service()), v1::FAILED);
  EXPECT_THAT(StatusOf(service()).error(), HasSubstr("not finite"));
  Leave(service(), kWorker);
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("learning_rate.base"));
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
}

// Asynchronous steps may reach 1e21 and end with finite numbers.
TEST_F(ChiefRunTest, ALossThatHasGrownWithoutEndEndsTheJob) {
  options_.config.mutable_train()->set_max_steps(200);
  Start();
  Join(service(), kWorker);
  v1::WorkerProgress progress;
  while (true) {
    const v1::AcquireWorkResponse lease = Acquire(service(), progress);
    progress.Clear();
    if (lease.phase() > v1::TRAINING) break;
    if (lease.lease_id() != 0) progress = Done(lease, lease.tickets(0).step() < 30 ? 2 : 1e21);
  }
  AwaitPhase(service(), v1::FAILED);
  EXPECT_THAT(StatusOf(service()).error(), HasSubstr("training has diverged near step"));
  Leave(service(), kWorker);
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("keelson_ckpt rollback"));
  EXPECT_FALSE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, StopTakesASnapshot) {
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  Work(service(), [&] { return StatusOf(service()).step() >= 3; });
  const int64_t step = StatusOf(service()).step();
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, step));
  EXPECT_FALSE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, TheLastSnapshotHasTheStepsThatAreUnderWay) {
  options_.step_wait = absl::Seconds(5);
  Start();
  Join(service(), kWorker);
  v1::AcquireWorkResponse lease = AwaitWork(service());
  stop_->Raise();
  int64_t steps = 0;
  v1::WorkerProgress done;
  for (; lease.tickets_size() > 0; lease = Acquire(service(), {})) {
    steps += lease.tickets_size();
    done.MergeFrom(Done(lease));
  }
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0)) << "the snapshot waits for what is leased";
  Report(service(), done);
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, steps));
}

TEST_F(ChiefRunTest, TheLastSnapshotWaitsOnlyAWhileForStepsUnderWay) {
  options_.step_wait = absl::Seconds(5);
  Start(&clock_);
  Join(service(), kWorker);
  AwaitWork(service());
  stop_->Raise();
  while (!ended_) clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
}

TEST_F(ChiefRunTest, AServerThatLeavesIsSavedWithTheStepsThatAreUnderWay) {
  options_.step_wait = absl::Seconds(5);
  options_.config.mutable_train()->set_max_steps(1000);
  Start();
  Join(service(), kWorker);
  v1::AcquireWorkResponse lease = AwaitWork(service());
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(true); });
  int64_t steps = 0;
  v1::WorkerProgress done;
  for (; lease.tickets_size() > 0; lease = Acquire(service(), {})) {
    steps += lease.tickets_size();
    done.MergeFrom(Done(lease));
    servers_[1].AwaitProbes(servers_[1].probes() + 1);
  }
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0)) << "the snapshot waits for what is leased";
  Report(service(), done);
  servers_[1].AwaitSnapshots(2);
  // Training goes on, and the server is not saved again.
  Work(service());
  Leave(service(), kWorker);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, steps, _));
  EXPECT_NE(servers_[1].last_heartbeat().saved_cut(), 0);
}

TEST_F(ChiefRunTest, WorkersLearnOfTheEndWhenItsSnapshotIsThere) {
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  servers_[0].FailSnapshots(1'000'000);
  WorkToTheLastStep(service());
  AwaitPhase(service(), v1::FINISHING);
  // A worker that left could not do the steps again that the job falls back to without it.
  EXPECT_EQ(Acquire(service(), {}).phase(), v1::TRAINING);
  servers_[0].FailSnapshots(0);
  EXPECT_GT(Work(service()), v1::FINISHING);
  Leave(service(), kWorker);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10));
}

TEST_F(ChiefRunTest, StopEndsTheWaitForServers) {
  servers_[0].Sever();
  Start(&clock_);
  servers_[0].AwaitProbes(1);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefRunTest, WaitsForTheFinalScore) {
  options_.expects_evaluator = true;
  Start(&clock_);
  Join(service(), kWorker);
  Work(service());
  Leave(service(), kWorker);
  AwaitPhase(service(), v1::EVALUATING);
  Join(service(), kEvaluator);
  v1::AcknowledgeEvaluationRequest score;
  *score.mutable_header() = HeaderOf(kEvaluator);
  score.set_step(0);
  v1::AcknowledgeEvaluationResponse response;
  ASSERT_EQ(service()->AcknowledgeEvaluation(score, &response), absl::OkStatus());
  EXPECT_EQ(response.phase(), v1::EVALUATING);
  EXPECT_FALSE((*directory().ReadDoneMarker()).has_value());
  score.set_step(10);
  score.set_snapshot_id(1);
  ASSERT_EQ(service()->AcknowledgeEvaluation(score, &response), absl::OkStatus());
  EXPECT_EQ(chief_->coordinator()->reports()->GetStatus().evaluated_step, -1)
      << "it is of another snapshot of step 10";
  score.set_snapshot_id(*ReadSnapshotId(directory().SnapshotPrefix(10)));
  ASSERT_EQ(service()->AcknowledgeEvaluation(score, &response), absl::OkStatus());
  Leave(service(), kEvaluator);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_TRUE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, AnExpectedEvaluatorThatNeverCameIsGivenUp) {
  options_.expects_evaluator = true;
  Start(&clock_);
  Join(service(), kWorker);
  Work(service());
  Leave(service(), kWorker);
  AwaitPhase(service(), v1::EVALUATING);
  while (!ended_) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_TRUE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, AnEvaluatorThatOnlyStaysInTouchIsGivenUpAfterTheTimeout) {
  options_.lease = absl::InfiniteDuration();
  Start(&clock_);
  Join(service(), kWorker);
  Join(service(), kEvaluator);
  Work(service());
  Leave(service(), kWorker);
  AwaitPhase(service(), v1::EVALUATING);
  clock_.Advance(absl::Seconds(599));
  EXPECT_EQ(StatusOf(service()).phase(), v1::EVALUATING);
  while (StatusOf(service()).phase() == v1::EVALUATING) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  Leave(service(), kEvaluator);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_TRUE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, StopEndsTheWaitForTheEvaluatorWithoutTheMarker) {
  options_.expects_evaluator = true;
  Start(&clock_);
  Join(service(), kWorker);
  Work(service());
  Leave(service(), kWorker);
  AwaitPhase(service(), v1::EVALUATING);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, CreateRefusesABadDirectoryAndABadSchedule) {
  const auto create = [&] {
    return Chief::Create(options_, {{"ps-0", "a:1", &servers_[0]}}, &clock_, stop_.get()).status();
  };
  ChiefOptions good = options_;
  options_.config.mutable_learning_rate()->set_base(-1);
  EXPECT_EQ(create().code(), absl::StatusCode::kInvalidArgument);
  options_ = good;
  options_.config.mutable_checkpoint()->clear_model_dir();
  EXPECT_EQ(create().code(), absl::StatusCode::kInvalidArgument);
  options_ = good;
  const std::string file = JoinPath(options_.config.checkpoint().model_dir(), "file");
  ASSERT_EQ(WriteFileAtomically(file, ""), absl::OkStatus());
  options_.config.mutable_checkpoint()->set_model_dir(file);
  EXPECT_THAT(std::string(create().message()), HasSubstr(file));
}

TEST_F(ChiefRunTest, EpochsSetTheNumberOfSteps) {
  options_.config.mutable_train()->clear_max_steps();
  options_.config.mutable_train()->set_epochs(2);
  options_.train_records = 25;
  Complete();
  EXPECT_EQ((*directory().ReadDoneMarker())->step, 6);
}

}  // namespace
}  // namespace keelson
