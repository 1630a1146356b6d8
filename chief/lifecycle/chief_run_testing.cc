#include "chief/lifecycle/chief_run_testing.h"

#include <utility>

#include "chief/coordination/member_ids_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/cluster/task_proto.h"

namespace keelson {

v1::RequestHeader HeaderOf(Task task) {
  v1::RequestHeader header;
  *header.mutable_task() = TaskToProto(task);
  SetMembershipId(TestId(100 + static_cast<uint64_t>(task.role)), &header);
  return header;
}

v1::RegisterResponse Join(ChiefService* chief, Task task,
                          const std::vector<v1::AcquireWorkResponse>& held) {
  v1::RegisterRequest request;
  *request.mutable_header() = HeaderOf(task);
  request.set_config_hash(FakeParameterServer::kConfigHash);
  for (const v1::AcquireWorkResponse& lease : held) {
    v1::HeldLease* out = request.add_leases();
    out->set_lease_id(lease.lease_id());
    *out->mutable_tickets() = lease.tickets();
  }
  v1::RegisterResponse response;
  EXPECT_EQ(chief->Register(request, &response), absl::OkStatus());
  return response;
}

void Leave(ChiefService* chief, Task task) {
  v1::LeaveRequest request;
  *request.mutable_header() = HeaderOf(task);
  v1::LeaveResponse response;
  const absl::Status status = chief->Leave(request, &response);
  EXPECT_EQ(status, absl::OkStatus());
}

v1::JobStatus StatusOf(ChiefService* chief) {
  v1::JobStatus status;
  EXPECT_EQ(chief->GetJobStatus({}, &status), absl::OkStatus());
  return status;
}

v1::AcquireWorkResponse Acquire(ChiefService* chief, const v1::WorkerProgress& progress) {
  v1::AcquireWorkRequest request;
  *request.mutable_header() = HeaderOf(kWorker);
  *request.mutable_progress() = progress;
  request.mutable_max_wait()->set_nanos(10'000'000);
  v1::AcquireWorkResponse response;
  const absl::Status status = chief->AcquireWork(request, &response);
  EXPECT_EQ(status, absl::OkStatus());
  if (!status.ok()) response.set_phase(v1::FAILED);
  return response;
}

v1::AcquireWorkResponse AwaitWork(ChiefService* chief) {
  v1::AcquireWorkResponse work;
  while (work.tickets().empty() && work.phase() != v1::FAILED) work = Acquire(chief, {});
  return work;
}

v1::WorkerProgress Done(const v1::AcquireWorkResponse& lease, double loss) {
  v1::WorkerProgress progress;
  v1::LeaseProgress* done = progress.add_leases();
  done->set_lease_id(lease.lease_id());
  done->set_completed_steps(lease.tickets_size());
  progress.mutable_figures()->set_steps(lease.tickets_size());
  progress.mutable_figures()->set_loss_sum(loss * lease.tickets_size());
  for (const v1::StepTicket& ticket : lease.tickets()) {
    v1::StepLoss* of_step = progress.add_losses();
    of_step->set_step(ticket.step());
    of_step->set_loss(loss);
  }
  return progress;
}

void Report(ChiefService* chief, const v1::WorkerProgress& progress) {
  v1::HeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kWorker);
  *request.mutable_progress() = progress;
  v1::HeartbeatResponse response;
  EXPECT_EQ(chief->Heartbeat(request, &response), absl::OkStatus());
}

v1::JobPhase Work(ChiefService* chief, const std::function<bool()>& until) {
  v1::WorkerProgress progress;
  while (true) {
    const v1::AcquireWorkResponse lease = Acquire(chief, progress);
    progress.Clear();
    if (lease.lease_id() != 0) progress = Done(lease);
    if (lease.lease_id() == 0 && lease.phase() > v1::TRAINING) return lease.phase();
    if (until()) return lease.phase();
  }
}

void ChiefRunTest::SetUp() {
  options_.incarnation = 1000;
  options_.config_hash = FakeParameterServer::kConfigHash;
  options_.variables = {{"w", Shape({4, 3}), {}}, {"b", Shape({3}), {}}};
  options_.train_records = 100;
  v1::TrainConfig& config = options_.config;
  config.mutable_learning_rate()->set_base(0.1);
  config.mutable_train()->set_batch_size(10);
  config.mutable_train()->set_max_steps(10);
  config.mutable_train()->set_summary_steps(5);
  config.mutable_checkpoint()->set_model_dir(FreshDirectory());
  for (FakeParameterServer& server : servers_) {
    server.SetModelDir(config.checkpoint().model_dir());
  }
  config.mutable_checkpoint()->set_save_seconds(600);
  config.mutable_checkpoint()->set_keep_max(5);
  config.mutable_evaluation()->set_final_timeout_seconds(600);
  options_.snapshot_retry = absl::Milliseconds(1);
  options_.step_wait = absl::ZeroDuration();
}

void ChiefRunTest::TearDown() {
  if (thread_.joinable()) {
    stop_->Raise();
    thread_.join();
  }
  // They go before what they use.
  chief_ = nullptr;
  options_.owner = nullptr;
}

void ChiefRunTest::Start(const Clock* clock) {
  ++options_.incarnation;
  auto chief = Chief::Create(
      options_,
      {{"ps-0", "a:1", &servers_[0], hosts_[0]}, {"ps-1", "b:2", &servers_[1], hosts_[1]}}, clock,
      stop_.get());
  ASSERT_TRUE(chief.ok()) << chief.status();
  chief_ = *std::move(chief);
  thread_ = std::thread([this] {
    status_ = chief_->Run();
    ended_ = true;
  });
}

absl::Status ChiefRunTest::Wait() {
  thread_.join();
  ended_ = false;
  return status_;
}

void ChiefRunTest::Kill() {
  servers_[0].FailSnapshots(1'000'000);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  servers_[0].FailSnapshots(0);
  chief_ = nullptr;
  stop_ = std::make_unique<StopSignal>();
}

void ChiefRunTest::AwaitStored() {
  const uint64_t version =
      chief_->coordinator()->persistence()->PersistedState().job().state_version();
  for (FakeParameterServer& server : servers_) {
    while (server.shard().job_state_version() < version) std::this_thread::yield();
  }
}

void ChiefRunTest::Complete() {
  Start();
  Join(service(), kWorker);
  Work(service());
  Leave(service(), kWorker);
  const absl::Status status = Wait();
  ASSERT_EQ(status, absl::OkStatus());
}

std::vector<int64_t> ChiefRunTest::SnapshotSteps() {
  std::vector<int64_t> steps;
  const auto snapshots = directory().List();
  EXPECT_TRUE(snapshots.ok()) << snapshots.status();
  for (const SnapshotInfo& snapshot : *snapshots) steps.push_back(snapshot.step);
  return steps;
}

CheckpointDirectory ChiefRunTest::directory() {
  return CheckpointDirectory(FileSystem::Real(), options_.config.checkpoint().model_dir(),
                             Clock::Real());
}

nlohmann::json ChiefRunTest::StatusFile() {
  return nlohmann::json::parse(
      *ReadFile(JoinPath(options_.config.checkpoint().model_dir(), "status.json")));
}

void ChiefRunTest::AwaitStatusFile() {
  const std::string path = JoinPath(options_.config.checkpoint().model_dir(), "status.json");
  while (!FileExists(path)) std::this_thread::yield();
}

}  // namespace keelson
