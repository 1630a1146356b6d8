#include "chief/service/chief_handler.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "core/cluster/task_proto.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::RequestHeader HeaderOf(Task task, uint64_t incarnation) {
  v1::RequestHeader header;
  *header.mutable_task() = TaskToProto(task);
  SetMembershipId(TestId(incarnation), &header);
  return header;
}

class ChiefHandlerTest : public testing::Test {
 protected:
  v1::RequestHeader Header() { return HeaderOf({Role::kWorker, 3}, 7); }
  void Register() {
    v1::RegisterRequest request;
    *request.mutable_header() = Header();
    request.set_config_hash(kHash);
    request.set_peer("host:1");
    request.set_device("cpu, 2 threads");
    ASSERT_EQ(handler_.Register(request, &registered_), absl::OkStatus());
  }
  void StartTraining(int64_t max_steps) {
    WorkOptions work;
    work.max_steps = max_steps;
    work.num_records = 25;
    work.batch_size = 10;
    work.first_lease_id = 50;
    coordinator_.start()->StartTraining({Placement(), {"a:1", "b:2"}}, WorkLedger(work));
  }
  v1::AcquireWorkResponse Acquire(const v1::WorkerProgress& progress = {}, uint64_t sequence = 0) {
    v1::AcquireWorkRequest request;
    *request.mutable_header() = Header();
    *request.mutable_progress() = progress;
    request.set_sequence(sequence);
    v1::AcquireWorkResponse response;
    EXPECT_EQ(handler_.AcquireWork(request, &response), absl::OkStatus());
    return response;
  }

  ManualClock clock_;
  Coordinator coordinator_{{kHash, absl::Seconds(10)}, &clock_};
  ChiefHandler handler_{&coordinator_};
  v1::RegisterResponse registered_;
};

TEST_F(ChiefHandlerTest, EveryPhaseHasItsCounterpart) {
  EXPECT_EQ(JobPhaseToProto(JobPhase::kWaitingForServers), v1::WAITING_FOR_SERVERS);
  EXPECT_EQ(JobPhaseToProto(JobPhase::kTraining), v1::TRAINING);
  EXPECT_EQ(JobPhaseToProto(JobPhase::kFinishing), v1::FINISHING);
  EXPECT_EQ(JobPhaseToProto(JobPhase::kEvaluating), v1::EVALUATING);
  EXPECT_EQ(JobPhaseToProto(JobPhase::kDone), v1::DONE);
  EXPECT_EQ(JobPhaseToProto(JobPhase::kFailed), v1::FAILED);
}

TEST_F(ChiefHandlerTest, RegisterTellsThePhase) {
  Register();
  EXPECT_EQ(registered_.phase(), v1::WAITING_FOR_SERVERS);
}

TEST_F(ChiefHandlerTest, ARequestWithoutATaskIsRefused) {
  v1::RegisterResponse registered;
  EXPECT_EQ(handler_.Register({}, &registered).code(), absl::StatusCode::kInvalidArgument);
  v1::GetModelResponse model;
  EXPECT_EQ(handler_.GetModel({}, &model).code(), absl::StatusCode::kInvalidArgument);
  v1::HeartbeatResponse heartbeat;
  EXPECT_EQ(handler_.Heartbeat({}, &heartbeat).code(), absl::StatusCode::kInvalidArgument);
  v1::AcquireWorkResponse work;
  EXPECT_EQ(handler_.AcquireWork({}, &work).code(), absl::StatusCode::kInvalidArgument);
  v1::LeaveResponse leave;
  EXPECT_EQ(handler_.Leave({}, &leave).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ChiefHandlerTest, MembersLearnOfServersThatTheyDoNotKnow) {
  Register();
  const auto heartbeat = [this](uint64_t known) {
    v1::HeartbeatRequest request;
    *request.mutable_header() = Header();
    request.set_servers_version(known);
    v1::HeartbeatResponse response;
    EXPECT_EQ(handler_.Heartbeat(request, &response), absl::OkStatus());
    return response;
  };
  const auto acquire = [this](uint64_t known) {
    v1::AcquireWorkRequest request;
    *request.mutable_header() = Header();
    request.set_servers_version(known);
    v1::AcquireWorkResponse response;
    EXPECT_EQ(handler_.AcquireWork(request, &response), absl::OkStatus());
    return response;
  };
  EXPECT_EQ(heartbeat(0).servers_version(), 0u);
  StartTraining(1);
  v1::GetModelRequest request;
  *request.mutable_header() = Header();
  v1::GetModelResponse model;
  ASSERT_EQ(handler_.GetModel(request, &model), absl::OkStatus());
  EXPECT_EQ(model.servers_version(), 1u);
  EXPECT_EQ(heartbeat(1).ps_addresses_size(), 0);
  EXPECT_EQ(acquire(1).ps_addresses_size(), 0);
  coordinator_.shards()->Set({"a:1", "c:3"});
  EXPECT_EQ(heartbeat(1).servers_version(), 2u);
  EXPECT_THAT(heartbeat(1).ps_addresses(), testing::ElementsAre("a:1", "c:3"));
  EXPECT_EQ(acquire(1).servers_version(), 2u);
  EXPECT_THAT(acquire(1).ps_addresses(), testing::ElementsAre("a:1", "c:3"));
  EXPECT_EQ(heartbeat(2).ps_addresses_size(), 0);
  EXPECT_EQ(acquire(2).ps_addresses_size(), 0);
}

TEST_F(ChiefHandlerTest, GetModelTellsPlacementAndAddresses) {
  Register();
  v1::GetModelRequest request;
  *request.mutable_header() = Header();
  v1::GetModelResponse response;
  EXPECT_EQ(handler_.GetModel(request, &response).code(), absl::StatusCode::kDeadlineExceeded);
  StartTraining(1);
  ASSERT_EQ(handler_.GetModel(request, &response), absl::OkStatus());
  EXPECT_EQ(response.placement_fingerprint(), Placement().Fingerprint());
  ASSERT_EQ(response.ps_addresses_size(), 2);
  EXPECT_EQ(response.ps_addresses(1), "b:2");
  EXPECT_EQ(response.phase(), v1::TRAINING);
  EXPECT_EQ(response.member_epoch(), coordinator_.roster()->MemberList().epoch());
  // Whoever was told an epoch and is not known was a member of another chief, or is over.
  v1::RegisterRequest returning;
  *returning.mutable_header() = HeaderOf({Role::kWorker, 4}, 9);
  returning.mutable_header()->set_member_epoch(response.member_epoch());
  returning.set_config_hash(kHash);
  EXPECT_EQ(handler_.Register(returning, &registered_).code(), absl::StatusCode::kAborted);
  returning.mutable_header()->set_member_epoch(0);
  EXPECT_EQ(handler_.Register(returning, &registered_), absl::OkStatus());
}

TEST_F(ChiefHandlerTest, AcquireWorkHandsOutTicketsWithRecords) {
  Register();
  StartTraining(10);
  const v1::AcquireWorkResponse first = Acquire();
  EXPECT_EQ(first.lease_id(), 50u);
  EXPECT_EQ(first.phase(), v1::TRAINING);
  ASSERT_EQ(first.tickets_size(), 1);
  v1::WorkerProgress done;
  v1::LeaseProgress* lease = done.add_leases();
  lease->set_lease_id(50);
  lease->set_completed_steps(1);
  const v1::AcquireWorkResponse second = Acquire(done);
  ASSERT_EQ(second.tickets_size(), 2);
  EXPECT_EQ(second.tickets(1).step(), 2);
  EXPECT_EQ(second.tickets(1).records().epoch(), 0);
  EXPECT_EQ(second.tickets(1).records().begin(), 20);
  EXPECT_EQ(second.tickets(1).records().end(), 25);
}

TEST_F(ChiefHandlerTest, ARepeatedRequestForWorkGetsTheSameLease) {
  Register();
  StartTraining(10);
  EXPECT_EQ(Acquire({}, 1).lease_id(), 50u);
  EXPECT_EQ(Acquire({}, 1).lease_id(), 50u);
  EXPECT_EQ(Acquire({}, 2).lease_id(), 51u);
}

TEST_F(ChiefHandlerTest, WorkersStayUntilTheLastSnapshotIsThere) {
  Register();
  StartTraining(1);
  v1::WorkerProgress done;
  v1::LeaseProgress* lease = done.add_leases();
  lease->set_lease_id(Acquire().lease_id());
  lease->set_completed_steps(1);
  const v1::AcquireWorkResponse response = Acquire(done);
  EXPECT_EQ(response.lease_id(), 0u);
  EXPECT_EQ(response.phase(), v1::TRAINING);
  coordinator_.control()->SetPhase(JobPhase::kFinishing);
  EXPECT_EQ(Acquire({}).phase(), v1::TRAINING);
  coordinator_.control()->SetPhase(JobPhase::kEvaluating);
  EXPECT_EQ(Acquire({}).phase(), v1::EVALUATING);
}

TEST_F(ChiefHandlerTest, HeartbeatDeliversProgressAndTellsTheError) {
  Register();
  StartTraining(10);
  v1::HeartbeatRequest request;
  *request.mutable_header() = Header();
  v1::WorkerFigures* figures = request.mutable_progress()->mutable_figures();
  figures->set_steps(1);
  figures->set_examples(2);
  figures->set_loss_sum(3);
  v1::StepLoss* loss = request.mutable_progress()->add_losses();
  loss->set_step(0);
  loss->set_loss(3);
  figures->set_non_finite_losses(4);
  figures->set_staleness_sum(5);
  figures->set_staleness_max(6);
  figures->set_pull_seconds(7);
  figures->set_input_seconds(8);
  figures->set_compute_seconds(9);
  figures->set_push_seconds(10);
  figures->set_push_retries(11);
  figures->set_credit_wait_seconds(12);
  figures->set_bytes_pushed(13);
  figures->set_bytes_pulled(14);
  v1::HeartbeatResponse response;
  ASSERT_EQ(handler_.Heartbeat(request, &response), absl::OkStatus());
  EXPECT_EQ(response.phase(), v1::TRAINING);
  const v1::WorkerFigures totals = coordinator_.reports()->GetStatus().totals;
  EXPECT_EQ(totals.steps(), 1);
  EXPECT_EQ(totals.examples(), 2);
  EXPECT_EQ(totals.loss_sum(), 3);
  EXPECT_EQ(totals.non_finite_losses(), 4);
  EXPECT_EQ(totals.staleness_sum(), 5);
  EXPECT_EQ(totals.staleness_max(), 6);
  EXPECT_EQ(totals.pull_seconds(), 7);
  EXPECT_EQ(totals.input_seconds(), 8);
  EXPECT_EQ(totals.compute_seconds(), 9);
  EXPECT_EQ(totals.push_seconds(), 10);
  EXPECT_EQ(totals.push_retries(), 11);
  EXPECT_EQ(totals.credit_wait_seconds(), 12);
  EXPECT_EQ(totals.bytes_pushed(), 13);
  EXPECT_EQ(totals.bytes_pulled(), 14);
  coordinator_.control()->Fail(absl::DataLossError("broken"));
  ASSERT_EQ(handler_.Heartbeat(request, &response), absl::OkStatus());
  EXPECT_EQ(response.phase(), v1::FAILED);
  EXPECT_EQ(response.error(), "broken");
}

TEST_F(ChiefHandlerTest, LeaveAndAcknowledge) {
  Register();
  v1::LeaveRequest leave;
  *leave.mutable_header() = Header();
  v1::LeaveResponse left;
  EXPECT_EQ(handler_.Leave(leave, &left), absl::OkStatus());
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker));
  v1::AcknowledgeEvaluationRequest acknowledge;
  *acknowledge.mutable_header() = HeaderOf({Role::kEvaluator, 0}, 9);
  acknowledge.set_step(12);
  coordinator_.evaluations()->SetSnapshotStep(12);
  (*acknowledge.mutable_metrics())["accuracy"] = 0.9;
  v1::AcknowledgeEvaluationResponse response;
  ASSERT_EQ(
      coordinator_.members()->Register({Role::kEvaluator, 0}, TestId(9), kHash, "host:2").status(),
      absl::OkStatus());
  EXPECT_EQ(handler_.AcknowledgeEvaluation(acknowledge, &response), absl::OkStatus());
  EXPECT_EQ(response.phase(), v1::WAITING_FOR_SERVERS);
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 12);
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluation.at("accuracy"), 0.9);
}

TEST_F(ChiefHandlerTest, WhoIsNoMemberNeitherScoresNorReports) {
  Register();
  StartTraining(10);
  v1::AcknowledgeEvaluationRequest acknowledge;
  v1::AcknowledgeEvaluationResponse acknowledged;
  acknowledge.set_step(INT64_MAX);
  EXPECT_EQ(handler_.AcknowledgeEvaluation(acknowledge, &acknowledged).code(),
            absl::StatusCode::kInvalidArgument);
  *acknowledge.mutable_header() = HeaderOf({Role::kEvaluator, 0}, 9);
  EXPECT_EQ(handler_.AcknowledgeEvaluation(acknowledge, &acknowledged).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, -1);

  v1::HeartbeatRequest heartbeat;
  *heartbeat.mutable_header() = HeaderOf({Role::kWorker, 3}, 8);
  heartbeat.mutable_progress()->mutable_figures()->set_non_finite_losses(1);
  v1::HeartbeatResponse beaten;
  EXPECT_EQ(handler_.Heartbeat(heartbeat, &beaten).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.reports()->GetStatus().totals.non_finite_losses(), 0);
}

// The id's halves as bytes on the wire, in decimal and in hexadecimal.
std::vector<std::string> FormsOf(const MembershipId& id) {
  std::vector<std::string> forms;
  for (const uint64_t half : {id.incarnation, id.secret}) {
    std::string bytes(sizeof(half), '\0');
    std::memcpy(bytes.data(), &half, sizeof(half));
    v1::StateVersions varint;
    varint.set_current(half);
    forms.insert(forms.end(), {bytes, varint.SerializeAsString().substr(1), absl::StrCat(half),
                               absl::StrCat(absl::Hex(half))});
  }
  return forms;
}

TEST_F(ChiefHandlerTest, NeitherTheStatusNorAnErrorNorTheLogGivesAnIdAway) {
  constexpr MembershipId kId = {0x1234567890abcdef, 0xfedcba0987654321};
  constexpr Task kTask = {Role::kWorker, 0};
  testing::internal::CaptureStderr();
  std::string told;
  const auto tell = [&told](const absl::Status& error) { told += error.ToString() + "\n"; };
  ASSERT_TRUE(coordinator_.members()->Register(kTask, kId, kHash, "host:1").ok());
  StartTraining(10);
  tell(coordinator_.members()->Register(kTask, TestId(1), kHash, "host:2").status());
  tell(coordinator_.members()->Register({Role::kWorker, 1}, kId, kHash, "host:2").status());
  tell(coordinator_.members()->Heartbeat(kTask, {kId.incarnation, 5}, {}));
  tell(coordinator_.members()->Heartbeat(kTask, TestId(1), {}));
  v1::JobStatus status;
  ASSERT_EQ(handler_.GetJobStatus({}, &status), absl::OkStatus());
  ASSERT_EQ(status.members_size(), 1);
  told += status.SerializeAsString();
  EXPECT_EQ(coordinator_.reports()->GetStatus().members.at(0).secret, 0u);
  ASSERT_EQ(coordinator_.members()->Leave(kTask, kId, {}), absl::OkStatus());
  tell(coordinator_.members()->Heartbeat(kTask, kId, {}));
  told += testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("worker-0 joined (host:1)")) << "of the log";
  for (const std::string& form : FormsOf(kId)) EXPECT_THAT(told, Not(HasSubstr(form)));
}

// All calls that name a member.
TEST_F(ChiefHandlerTest, AnIncarnationWithoutItsSecretIsRefusedByEveryCall) {
  Register();
  StartTraining(10);
  const v1::AcquireWorkResponse work = Acquire();
  for (const uint64_t secret : {uint64_t{0}, Header().membership_secret() + 1}) {
    v1::RequestHeader header = Header();
    header.set_membership_secret(secret);
    const auto refused = [&header](auto request) {
      *request.mutable_header() = header;
      return request;
    };
    v1::RegisterRequest again;
    again.set_config_hash(kHash);
    v1::RegisterResponse registered;
    EXPECT_EQ(handler_.Register(refused(again), &registered).code(),
              secret == 0 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted);
    v1::GetModelResponse model;
    EXPECT_TRUE(absl::IsAborted(handler_.GetModel(refused(v1::GetModelRequest()), &model)));
    v1::HeartbeatResponse beaten;
    EXPECT_TRUE(absl::IsAborted(handler_.Heartbeat(refused(v1::HeartbeatRequest()), &beaten)));
    v1::AcquireWorkResponse lease;
    EXPECT_TRUE(absl::IsAborted(handler_.AcquireWork(refused(v1::AcquireWorkRequest()), &lease)));
    v1::AdmitResponse admitted;
    EXPECT_TRUE(absl::IsAborted(handler_.Admit(refused(v1::AdmitRequest()), &admitted)));
    v1::EndTrainingResponse ended;
    EXPECT_TRUE(absl::IsAborted(handler_.EndTraining(refused(v1::EndTrainingRequest()), &ended)));
    v1::SaveSnapshotResponse saved;
    EXPECT_TRUE(absl::IsAborted(handler_.SaveSnapshot(refused(v1::SaveSnapshotRequest()), &saved)));
    v1::AcknowledgeEvaluationResponse acknowledged;
    EXPECT_TRUE(absl::IsAborted(handler_.AcknowledgeEvaluation(
        refused(v1::AcknowledgeEvaluationRequest()), &acknowledged)));
    v1::LeaveResponse left;
    EXPECT_TRUE(absl::IsAborted(handler_.Leave(refused(v1::LeaveRequest()), &left)));
  }
  EXPECT_EQ(work.tickets_size(), 1);
  EXPECT_TRUE(coordinator_.roster()->AnyAlive(Role::kWorker));
}

TEST_F(ChiefHandlerTest, AnyoneMayAskForTheStatus) {
  Register();
  StartTraining(10);
  v1::TrainingFigures newest;
  newest.set_loss(0.5);
  newest.set_steps_per_second(20);
  newest.set_examples_per_second(200);
  coordinator_.reports()->SetFigures(newest);
  coordinator_.evaluations()->SetSnapshotStep(4);
  v1::JobStatus status;
  ASSERT_EQ(handler_.GetJobStatus({}, &status), absl::OkStatus());
  EXPECT_EQ(status.lease().seconds(), 10);
  EXPECT_EQ(status.phase(), v1::TRAINING);
  EXPECT_EQ(status.max_steps(), 10);
  EXPECT_EQ(status.loss(), 0.5);
  EXPECT_EQ(status.steps_per_second(), 20);
  EXPECT_EQ(status.examples_per_second(), 200);
  EXPECT_EQ(status.snapshot_step(), 4);
  ASSERT_EQ(status.members_size(), 1);
  EXPECT_EQ(status.members(0).task().index(), 3u);
  EXPECT_EQ(status.members(0).peer(), "host:1");
  EXPECT_TRUE(status.members(0).alive());
  EXPECT_EQ(status.members(0).state(), "alive");
  EXPECT_EQ(status.members(0).device(), "cpu, 2 threads");
  EXPECT_EQ(status.members(0).since(), absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch()));
  EXPECT_EQ(status.servers_size(), 0);
  EXPECT_TRUE(status.mode().has_async());
  EXPECT_FALSE(status.has_next_mode());
}

TEST_F(ChiefHandlerTest, TheStatusHasTheServers) {
  ServerView server;
  server.task.index = 2;
  server.address = "host:3";
  server.since = clock_.Now();
  v1::ShardStatus answer;
  answer.set_state(v1::ShardStatus::READY);
  answer.set_incarnation(5);
  answer.set_shard_step(6);
  answer.set_value_bytes(7);
  answer.set_slot_bytes(8);
  answer.set_pushed_bytes(9);
  answer.set_pulled_bytes(10);
  answer.set_active_clients(11);
  server.NoteAnswer(answer, clock_.Now());
  ChiefHandler handler(&coordinator_, [&] { return std::vector<ServerView>{server}; });
  v1::JobStatus status;
  ASSERT_EQ(handler.GetJobStatus({}, &status), absl::OkStatus());
  ASSERT_EQ(status.servers_size(), 1);
  const v1::ServerStatus& told = status.servers(0);
  EXPECT_EQ(told.task().role(), v1::ROLE_PS);
  EXPECT_EQ(told.task().index(), 2u);
  EXPECT_EQ(told.address(), "host:3");
  EXPECT_EQ(told.state(), "alive");
  EXPECT_EQ(told.since(), absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch()));
  EXPECT_EQ(told.restarts(), 0);
  EXPECT_EQ(told.shard_step(), 6);
  EXPECT_EQ(told.value_bytes(), 7);
  EXPECT_EQ(told.slot_bytes(), 8);
  EXPECT_EQ(told.pushed_bytes(), 9);
  EXPECT_EQ(told.pulled_bytes(), 10);
  EXPECT_EQ(told.clients(), 11);
}

TEST_F(ChiefHandlerTest, TheStatusHasEachWorkersSums) {
  Register();
  StartTraining(10);
  v1::HeartbeatRequest request;
  *request.mutable_header() = Header();
  v1::WorkerFigures* figures = request.mutable_progress()->mutable_figures();
  figures->set_steps(1);
  figures->set_examples(2);
  figures->set_staleness_sum(5);
  figures->set_staleness_max(6);
  figures->set_pull_seconds(7);
  figures->set_input_seconds(8);
  figures->set_compute_seconds(9);
  figures->set_push_seconds(10);
  figures->set_push_retries(11);
  figures->set_credit_wait_seconds(12);
  figures->set_bytes_pushed(13);
  figures->set_bytes_pulled(14);
  // One more than this chief knows of.
  for (int64_t count = 0; count < 10; ++count) figures->add_staleness_counts(count);
  v1::HeartbeatResponse response;
  ASSERT_EQ(handler_.Heartbeat(request, &response), absl::OkStatus());
  v1::JobStatus status;
  ASSERT_EQ(handler_.GetJobStatus({}, &status), absl::OkStatus());
  ASSERT_EQ(status.members_size(), 1);
  const v1::MemberStatus& member = status.members(0);
  EXPECT_EQ(member.figures().steps(), 1);
  EXPECT_EQ(member.figures().examples(), 2);
  EXPECT_EQ(member.figures().staleness_sum(), 5);
  EXPECT_EQ(member.figures().staleness_max(), 6);
  EXPECT_EQ(member.figures().pull_seconds(), 7);
  EXPECT_EQ(member.figures().input_seconds(), 8);
  EXPECT_EQ(member.figures().compute_seconds(), 9);
  EXPECT_EQ(member.figures().push_seconds(), 10);
  EXPECT_EQ(member.figures().push_retries(), 11);
  EXPECT_EQ(member.figures().credit_wait_seconds(), 12);
  EXPECT_EQ(member.figures().bytes_pushed(), 13);
  EXPECT_EQ(member.figures().bytes_pulled(), 14);
  EXPECT_THAT(member.figures().staleness_counts(), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(ChiefHandlerTest, RegisterTellsWhichLeasesAreKept) {
  Register();
  StartTraining(10);
  const v1::AcquireWorkResponse work = Acquire();
  v1::RegisterRequest request;
  *request.mutable_header() = Header();
  request.set_config_hash(kHash);
  v1::HeldLease* held = request.add_leases();
  held->set_lease_id(work.lease_id());
  *held->mutable_tickets() = work.tickets();
  held->set_completed_steps(1);
  request.add_leases()->set_lease_id(4711);
  v1::RegisterResponse response;
  ASSERT_EQ(handler_.Register(request, &response), absl::OkStatus());
  ASSERT_EQ(response.kept_leases_size(), 1);
  EXPECT_EQ(response.kept_leases(0), work.lease_id());
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 1);
}

TEST_F(ChiefHandlerTest, AnswersTellTheVersionsOfTheLedger) {
  Register();
  StartTraining(10);
  coordinator_.persistence()->NoteStored(1);
  const v1::AcquireWorkResponse work = Acquire();
  EXPECT_EQ(work.state_versions().current(), coordinator_.persistence()->versions().current);
  EXPECT_GT(work.state_versions().current(), 1u);
  EXPECT_EQ(work.state_versions().stored(), 1u);
  v1::HeartbeatRequest request;
  *request.mutable_header() = Header();
  v1::HeartbeatResponse heartbeat;
  ASSERT_EQ(handler_.Heartbeat(request, &heartbeat), absl::OkStatus());
  EXPECT_EQ(heartbeat.state_versions().stored(), 1u);
  EXPECT_EQ(heartbeat.state_versions().current(), coordinator_.persistence()->versions().current);
  EXPECT_EQ(heartbeat.next_after().seconds(), 0);
  EXPECT_EQ(heartbeat.next_after().nanos(), 1'000'000) << "of one member";
  Register();
  EXPECT_EQ(registered_.state_versions().stored(), 1u);
}

TEST_F(ChiefHandlerTest, ASynchronousTicketSaysSo) {
  Register();
  StartTraining(10);
  ASSERT_EQ(coordinator_.control()->SetMode(ConsistencyMode::Parse("sync:1/2").value()),
            absl::OkStatus());
  const v1::AcquireWorkResponse work = Acquire();
  ASSERT_EQ(work.tickets_size(), 1);
  EXPECT_TRUE(work.fresh_values());
  EXPECT_TRUE(work.tickets(0).contested());
  EXPECT_GT(work.tickets(0).attempt(), 0u);
  v1::AdmitRequest request;
  *request.mutable_header() = Header();
  request.set_lease_id(work.lease_id());
  request.set_step(0);
  request.set_attempt(work.tickets(0).attempt());
  v1::AdmitResponse response;
  ASSERT_EQ(handler_.Admit(request, &response), absl::OkStatus());
  EXPECT_TRUE(response.admitted());
  request.set_attempt(work.tickets(0).attempt() + 1);
  ASSERT_EQ(handler_.Admit(request, &response), absl::OkStatus());
  EXPECT_FALSE(response.admitted());
  request.mutable_header()->set_incarnation(8);
  EXPECT_EQ(handler_.Admit(request, &response).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(handler_.Admit({}, &response).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ChiefHandlerTest, ATicketThatAServerRefusedIsHandedOutAgain) {
  Register();
  StartTraining(10);
  ASSERT_EQ(coordinator_.control()->SetMode(ConsistencyMode::Parse("sync:1").value()),
            absl::OkStatus());
  const v1::AcquireWorkResponse refused = Acquire();
  ASSERT_EQ(refused.tickets_size(), 1);
  EXPECT_EQ(Acquire().lease_id(), 0u) << "the chief waits for its gradient";
  v1::HeartbeatRequest request;
  *request.mutable_header() = Header();
  v1::RefusedPush* const push = request.mutable_progress()->add_refused();
  push->set_lease_id(refused.lease_id());
  push->set_step(refused.tickets(0).step());
  push->set_attempt(refused.tickets(0).attempt());
  v1::HeartbeatResponse response;
  ASSERT_EQ(handler_.Heartbeat(request, &response), absl::OkStatus());
  const v1::AcquireWorkResponse again = Acquire();
  ASSERT_EQ(again.tickets_size(), 1);
  EXPECT_EQ(again.tickets(0).step(), refused.tickets(0).step());
  EXPECT_GT(again.tickets(0).attempt(), refused.tickets(0).attempt());
}

TEST_F(ChiefHandlerTest, SetModeTellsThePreviousOne) {
  v1::SetModeRequest request;
  request.mutable_mode()->mutable_bounded_staleness()->set_staleness(3);
  v1::SetModeResponse response;
  EXPECT_EQ(handler_.SetMode(request, &response).code(), absl::StatusCode::kFailedPrecondition);
  Register();
  StartTraining(10);
  coordinator_.persistence()->NoteStored(UINT64_MAX);
  ASSERT_EQ(handler_.SetMode(request, &response), absl::OkStatus());
  EXPECT_TRUE(response.previous().has_async());
  ASSERT_TRUE(Acquire().lease_id() != 0);
  request.mutable_mode()->mutable_synchronous()->set_replicas_to_aggregate(2);
  ASSERT_EQ(handler_.SetMode(request, &response), absl::OkStatus());
  EXPECT_EQ(response.previous().bounded_staleness().staleness(), 3);
  v1::JobStatus status;
  ASSERT_EQ(handler_.GetJobStatus({}, &status), absl::OkStatus());
  EXPECT_TRUE(status.mode().has_bounded_staleness());
  EXPECT_EQ(status.next_mode().synchronous().total_replicas(), 2);
  request.mutable_mode()->mutable_synchronous()->set_total_replicas(1);
  EXPECT_EQ(handler_.SetMode(request, &response),
            absl::InvalidArgumentError("mode.synchronous.total_replicas: expected 2 "
                                       "(replicas_to_aggregate)..1048576, found 1"));
}

TEST_F(ChiefHandlerTest, SetModeIsAcknowledgedWhenTheServersHoldIt) {
  Register();
  StartTraining(10);
  v1::SetModeRequest request;
  request.mutable_mode()->mutable_synchronous()->set_replicas_to_aggregate(2);
  v1::SetModeResponse response;
  const absl::Status status = handler_.SetMode(request, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the servers do not hold that yet"));
  coordinator_.persistence()->NoteStored(UINT64_MAX);
  EXPECT_EQ(handler_.SetMode(request, &response), absl::OkStatus());
}

TEST_F(ChiefHandlerTest, WhatIsKeptOfAMemberIsShort) {
  v1::RegisterRequest request;
  *request.mutable_header() = Header();
  request.set_config_hash(kHash);
  request.set_peer(std::string(1001, 'p'));
  EXPECT_EQ(handler_.Register(request, &registered_),
            absl::InvalidArgumentError("peer: expected at most 1000 bytes, found 1001"));
  request.set_peer("host:1");
  request.set_device(std::string(1001, 'd'));
  EXPECT_EQ(handler_.Register(request, &registered_),
            absl::InvalidArgumentError("device: expected at most 1000 bytes, found 1001"));
  request.set_device("cpu");
  request.mutable_step_bound()->set_seconds(7 * 24 * 3600 + 1);
  EXPECT_EQ(handler_.Register(request, &registered_),
            absl::InvalidArgumentError("step_bound: expected 0 to 168h, found 168h1s"));
  request.mutable_step_bound()->set_seconds(-1);
  EXPECT_EQ(handler_.Register(request, &registered_),
            absl::InvalidArgumentError("step_bound: expected 0 to 168h, found -1s"));
  EXPECT_TRUE(coordinator_.reports()->GetStatus().members.empty());
}

}  // namespace
}  // namespace keelson
