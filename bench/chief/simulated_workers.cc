#include "bench/chief/simulated_workers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/meter.h"
#include "core/base/log.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);
// As a worker's.
constexpr int kLongPollSeconds = 1;
constexpr int kModelWaitSeconds = 20;
constexpr absl::Duration kStepBound = absl::Hours(24);

Claim ClaimOf(const std::string& job_token) {
  Claim claim;
  claim.role = "worker";
  claim.job_token = job_token;
  return claim;
}

// What a worker reports of one step.
void AddStep(int64_t step, v1::WorkerProgress* progress) {
  v1::StepLoss* const loss = progress->add_losses();
  loss->set_step(step);
  loss->set_loss(0.5);
  v1::WorkerFigures* const figures = progress->mutable_figures();
  figures->set_steps(figures->steps() + 1);
  figures->set_examples(figures->examples() + 8);
  figures->set_loss_sum(figures->loss_sum() + 0.5);
  figures->set_pull_seconds(0.01);
  figures->set_compute_seconds(0.9);
  figures->set_push_seconds(0.01);
  figures->set_bytes_pushed(1 << 20);
  figures->set_bytes_pulled(1 << 20);
}

}  // namespace

// One call and all that gRPC uses until it has ended.
template <typename Request, typename Response>
struct SimulatedWorkers::Call {
  grpc::ClientContext context;
  Request request;
  Response response;
  double started = 0;
};

SimulatedWorkers::SimulatedWorkers(const Options& options)
    : options_(options), claim_(ClaimOf(options.job_token)) {
  for (int c = 0; c < std::min(options.connections, options.workers); ++c) {
    stubs_.push_back(v1::ChiefService::NewStub(
        CreateChannel(options.chief_address, grpc::InsecureChannelCredentials())));
  }
  for (int w = 0; w < options.workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->stub = stubs_[w % stubs_.size()].get();
  }
}

SimulatedWorkers::~SimulatedWorkers() {
  without_pause_ = false;
  WaitUntilQuiet(absl::InfiniteDuration());
}

v1::RequestHeader SimulatedWorkers::HeaderOf(int w) {
  v1::RequestHeader header;
  header.mutable_task()->set_role(v1::ROLE_WORKER);
  header.mutable_task()->set_index(w);
  SetMembershipId(workers_[w]->membership, &header);
  header.set_member_epoch(workers_[w]->epoch);
  return header;
}

template <typename Request, typename Response>
std::unique_ptr<SimulatedWorkers::Call<Request, Response>> SimulatedWorkers::NewCall() {
  auto call = std::make_unique<Call<Request, Response>>();
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  AddClaim(claim_, &call->context);
  call->started = MonotonicSeconds();
  MutexLock lock(&mu_);
  ++under_way_;
  return call;
}

void SimulatedWorkers::NoteWanted(CallKind kind) {
  MutexLock lock(&mu_);
  ++counts_[IndexOf(kind)].wanted;
}

void SimulatedWorkers::NoteEnd(CallKind kind, double started, const grpc::Status& status) {
  const double seconds = MonotonicSeconds() - started;
  MutexLock lock(&mu_);
  CallCounts& counts = counts_[IndexOf(kind)];
  if (status.ok()) {
    ++counts.answered;
    counts.latencies.Record(seconds);
  } else {
    ++counts.failed;
    const absl::Status error = FromGrpcStatus(status, "the chief");
    const std::string code = absl::StatusCodeToString(error.code());
    if (++errors_[code] == 1) LogInfo("the first call that failed so: ", error.ToString());
  }
  if (--under_way_ == 0) quiet_.NotifyAll();
}

void SimulatedWorkers::Join(int w) {
  NoteWanted(CallKind::kRegister);
  Worker* const worker = workers_[w].get();
  auto call = NewCall<v1::RegisterRequest, v1::RegisterResponse>();
  const MembershipId membership = RandomMembershipId();
  {
    MutexLock lock(&worker->mu);
    EndMembership(worker);
    worker->membership = membership;
    *call->request.mutable_header() = HeaderOf(w);
  }
  call->request.set_config_hash(options_.config_hash);
  call->request.set_peer(absl::StrCat("worker-", w, ".chief-bench:4242"));
  call->request.set_device("cpu, 2 threads");
  call->request.mutable_step_bound()->set_seconds(absl::ToInt64Seconds(kStepBound));
  auto* const c = call.release();
  worker->stub->async()->Register(&c->context, &c->request, &c->response,
                                  [this, w, c, membership](const grpc::Status& status) {
                                    if (status.ok()) AskForModel(w, membership);
                                    NoteEnd(CallKind::kRegister, c->started, status);
                                    delete c;
                                  });
}

void SimulatedWorkers::AskForModel(int w, MembershipId membership) {
  NoteWanted(CallKind::kGetModel);
  Worker* const worker = workers_[w].get();
  auto call = NewCall<v1::GetModelRequest, v1::GetModelResponse>();
  {
    MutexLock lock(&worker->mu);
    *call->request.mutable_header() = HeaderOf(w);
  }
  call->request.mutable_max_wait()->set_seconds(kModelWaitSeconds);
  auto* const c = call.release();
  worker->stub->async()->GetModel(&c->context, &c->request, &c->response,
                                  [this, worker, c, membership](const grpc::Status& status) {
                                    if (status.ok()) {
                                      MutexLock lock(&worker->mu);
                                      if (worker->membership == membership) {
                                        worker->epoch = c->response.member_epoch();
                                        worker->member = true;
                                        ++members_;
                                        ++joined_;
                                      }
                                    }
                                    NoteEnd(CallKind::kGetModel, c->started, status);
                                    delete c;
                                  });
}

void SimulatedWorkers::EndMembership(Worker* worker) {
  if (worker->member) --members_;
  worker->member = false;
  worker->membership = {};
  worker->epoch = 0;
  worker->sequence = 0;
  worker->beating = false;
  worker->acquiring = false;
  worker->lease.Clear();
}

void SimulatedWorkers::Vanish(int w) {
  MutexLock lock(&workers_[w]->mu);
  EndMembership(workers_[w].get());
}

void SimulatedWorkers::Leave(int w) {
  NoteWanted(CallKind::kLeave);
  Worker* const worker = workers_[w].get();
  auto call = NewCall<v1::LeaveRequest, v1::LeaveResponse>();
  {
    MutexLock lock(&worker->mu);
    *call->request.mutable_header() = HeaderOf(w);
    EndMembership(worker);
  }
  auto* const c = call.release();
  worker->stub->async()->Leave(&c->context, &c->request, &c->response,
                               [this, c](const grpc::Status& status) {
                                 NoteEnd(CallKind::kLeave, c->started, status);
                                 delete c;
                               });
}

void SimulatedWorkers::NoteWantedHeartbeat(const v1::HeartbeatResponse& response) {
  const double seconds = static_cast<double>(response.next_after().seconds()) +
                         1e-9 * static_cast<double>(response.next_after().nanos());
  double known = wanted_heartbeat_seconds_;
  while (seconds > known && !wanted_heartbeat_seconds_.compare_exchange_weak(known, seconds)) {
  }
}

void SimulatedWorkers::Heartbeat(int w) {
  NoteWanted(CallKind::kHeartbeat);
  Worker* const worker = workers_[w].get();
  MutexLock lock(&worker->mu);
  if (!worker->member || worker->beating) return;
  worker->beating = true;
  const MembershipId membership = worker->membership;
  auto call = NewCall<v1::HeartbeatRequest, v1::HeartbeatResponse>();
  *call->request.mutable_header() = HeaderOf(w);
  auto* const c = call.release();
  worker->stub->async()->Heartbeat(&c->context, &c->request, &c->response,
                                   [this, worker, c, membership](const grpc::Status& status) {
                                     {
                                       MutexLock lock(&worker->mu);
                                       if (worker->membership == membership)
                                         worker->beating = false;
                                     }
                                     if (status.ok()) NoteWantedHeartbeat(c->response);
                                     NoteEnd(CallKind::kHeartbeat, c->started, status);
                                     delete c;
                                   });
}

void SimulatedWorkers::AcquireWork(int w) {
  NoteWanted(CallKind::kAcquireWork);
  Worker* const worker = workers_[w].get();
  MutexLock lock(&worker->mu);
  if (!worker->member || worker->acquiring) return;
  SendAcquire(w);
}

void SimulatedWorkers::SendAcquire(int w) {
  Worker* const worker = workers_[w].get();
  worker->acquiring = true;
  const MembershipId membership = worker->membership;
  auto call = NewCall<v1::AcquireWorkRequest, v1::AcquireWorkResponse>();
  *call->request.mutable_header() = HeaderOf(w);
  call->request.mutable_max_wait()->set_seconds(kLongPollSeconds);
  call->request.set_sequence(++worker->sequence);
  if (worker->lease.lease_id() != 0) {
    v1::WorkerProgress* const progress = call->request.mutable_progress();
    v1::LeaseProgress* const lease = progress->add_leases();
    lease->set_lease_id(worker->lease.lease_id());
    lease->set_completed_steps(worker->lease.tickets_size());
    for (const v1::StepTicket& ticket : worker->lease.tickets()) AddStep(ticket.step(), progress);
  }
  worker->lease.Clear();
  auto* const c = call.release();
  worker->stub->async()->AcquireWork(&c->context, &c->request, &c->response,
                                     [this, w, worker, c, membership](const grpc::Status& status) {
                                       if (status.ok() && c->response.tickets_size() > 0) {
                                         NoteStep(c->response.tickets(0).step());
                                       }
                                       {
                                         MutexLock lock(&worker->mu);
                                         if (worker->membership == membership) {
                                           worker->acquiring = false;
                                           if (status.ok()) worker->lease = c->response;
                                           if (status.ok() && without_pause_) SendAcquire(w);
                                         }
                                       }
                                       NoteEnd(CallKind::kAcquireWork, c->started, status);
                                       delete c;
                                     });
}

void SimulatedWorkers::GetJobStatus(int w) {
  NoteWanted(CallKind::kGetJobStatus);
  auto call = NewCall<v1::GetJobStatusRequest, v1::JobStatus>();
  auto* const c = call.release();
  workers_[w]->stub->async()->GetJobStatus(&c->context, &c->request, &c->response,
                                           [this, c](const grpc::Status& status) {
                                             if (status.ok()) {
                                               MutexLock lock(&mu_);
                                               job_status_ = c->response;
                                             }
                                             NoteEnd(CallKind::kGetJobStatus, c->started, status);
                                             delete c;
                                           });
}

void SimulatedWorkers::NoteStep(int64_t step) {
  const double now = MonotonicSeconds();
  MutexLock lock(&mu_);
  if (step <= newest_step_) return;
  if (step == newest_step_ + 1) round_seconds_.push_back(now - newest_step_at_);
  newest_step_ = step;
  newest_step_at_ = now;
}

bool SimulatedWorkers::WaitUntilQuiet(absl::Duration limit) {
  const absl::Time until = absl::Now() + limit;
  MutexLock lock(&mu_);
  while (under_way_ > 0) {
    const absl::Duration left = std::min(until - absl::Now(), absl::Seconds(1));
    if (left <= absl::ZeroDuration()) return false;
    quiet_.WaitFor(&mu_, left);
  }
  return true;
}

AllCounts SimulatedWorkers::TakeCounts() {
  MutexLock lock(&mu_);
  return std::exchange(counts_, AllCounts());
}

v1::JobStatus SimulatedWorkers::job_status() const {
  MutexLock lock(&mu_);
  return job_status_;
}

std::vector<double> SimulatedWorkers::TakeRoundSeconds() {
  MutexLock lock(&mu_);
  return std::exchange(round_seconds_, {});
}

std::map<std::string, int64_t> SimulatedWorkers::errors() const {
  MutexLock lock(&mu_);
  return errors_;
}

}  // namespace keelson::bench
