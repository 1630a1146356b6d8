#include "chief/service/chief_handler.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "chief/proposal/job_proposals.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cluster/logged_name.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(20);
// The longest wait until the servers hold what a successor must know.
constexpr absl::Duration kStoreWait = absl::Seconds(2);
// A large model's snapshot takes minutes; the caller's deadline is somewhat later.
constexpr absl::Duration kLongestSave = absl::Minutes(10);
constexpr size_t kLongestReason = 1000;

absl::Duration BoundedWait(const google::protobuf::Duration& wait) {
  return std::min(absl::Seconds(wait.seconds()) + absl::Nanoseconds(wait.nanos()), kLongestWait);
}

void SetDuration(absl::Duration duration, google::protobuf::Duration* proto) {
  proto->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

double SecondsOf(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// The reason as one line, fit for logs and the dashboard.
absl::StatusOr<std::string> ReasonOf(const v1::EndTrainingRequest& request) {
  const std::string& reason = request.reason();
  if (reason.empty()) return "no reason was given";
  const bool one_line =
      std::none_of(reason.begin(), reason.end(), [](char c) { return absl::ascii_iscntrl(c); });
  if (one_line && reason.size() <= kLongestReason) return reason;
  return absl::InvalidArgumentError(absl::StrCat("reason: expected one line of at most ",
                                                 kLongestReason, " bytes, found ", reason.size(),
                                                 one_line ? "" : " with control characters"));
}

absl::Status CheckLength(absl::string_view field, const std::string& text) {
  constexpr size_t kMost = 1000;
  if (text.size() <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected at most ", kMost, " bytes, found ", text.size()));
}

absl::StatusOr<absl::Duration> StepBoundOf(const v1::RegisterRequest& request) {
  constexpr absl::Duration kMost = absl::Hours(7 * 24);
  const google::protobuf::Duration& proto = request.step_bound();
  const absl::Duration bound = absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
  if (bound >= absl::ZeroDuration() && bound <= kMost) return bound;
  return absl::InvalidArgumentError(absl::StrCat("step_bound: expected 0 to ",
                                                 absl::FormatDuration(kMost), ", found ",
                                                 absl::FormatDuration(bound)));
}

absl::Status CheckDrawn(const MembershipId& id) {
  if (id.incarnation != 0 && id.secret != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("header: expected a random ",
                   id.incarnation == 0 ? "incarnation" : "membership_secret", ", found 0"));
}

WorkerReport ReportFromProto(const v1::WorkerProgress& progress) {
  WorkerReport report;
  for (const v1::LeaseProgress& lease : progress.leases()) {
    report.leases.push_back({lease.lease_id(), lease.completed_steps()});
  }
  for (const v1::StepLoss& loss : progress.losses()) {
    report.losses.push_back({loss.step(), loss.loss()});
  }
  for (const v1::RefusedPush& push : progress.refused()) {
    report.refused.push_back({push.lease_id(), push.step(), push.attempt()});
  }
  // A member that does not check the names of its values is as good as one that logs none.
  for (const v1::LoggedValue& value : progress.logged()) {
    if (!CheckLoggedName(value.name()).ok()) continue;
    report.logged.push_back({value.name(), value.step(), value.value()});
  }
  report.figures = progress.figures();
  return report;
}

v1::StepTicket TicketToProto(const WorkTicket& ticket, const WorkLease& lease) {
  v1::StepTicket proto;
  proto.set_step(ticket.step);
  proto.mutable_records()->set_epoch(ticket.epoch);
  proto.mutable_records()->set_begin(ticket.begin);
  proto.mutable_records()->set_end(ticket.end);
  proto.set_attempt(lease.attempt);
  proto.set_contested(lease.contested);
  proto.set_last_of_step(lease.last_of_step);
  proto.set_follows_round(lease.follows_round);
  proto.set_order(lease.order);
  return proto;
}

HeldLease HeldLeaseFromProto(const v1::HeldLease& proto) {
  HeldLease lease;
  lease.id = proto.lease_id();
  lease.completed = proto.completed_steps();
  for (const v1::StepTicket& ticket : proto.tickets()) {
    const v1::RecordRange& records = ticket.records();
    lease.tickets.push_back({ticket.step(), records.epoch(), records.begin(), records.end()});
    lease.attempt = ticket.attempt();
  }
  return lease;
}

v1::MemberStatus MemberToProto(const Member& member, const CoordinatorStatus& status) {
  v1::MemberStatus proto;
  *proto.mutable_task() = TaskToProto(member.task);
  proto.set_peer(member.peer);
  proto.set_alive(member.state == Member::kAlive);
  proto.set_state(std::string(MemberStateName(member.state)));
  proto.set_restarts(member.restarts);
  proto.set_device(member.device);
  proto.set_since(SecondsOf(member.since));
  v1::WorkerFigures* const figures = proto.mutable_figures();
  const auto worker = status.workers.find(member.task);
  if (worker != status.workers.end()) *figures = worker->second;
  return proto;
}

v1::ServerStatus ServerToProto(const ServerView& server) {
  v1::ServerStatus proto;
  *proto.mutable_task() = TaskToProto(server.task);
  if (server.host.has_value()) *proto.mutable_host() = TaskToProto(*server.host);
  proto.set_address(server.address);
  proto.set_state(std::string(ServerKindName(server.kind)));
  proto.set_since(SecondsOf(server.since));
  proto.set_restarts(server.restarts);
  proto.set_shard_step(server.shard_step);
  proto.set_value_bytes(server.value_bytes);
  proto.set_slot_bytes(server.slot_bytes);
  proto.set_pushed_bytes(server.pushed_bytes);
  proto.set_pulled_bytes(server.pulled_bytes);
  proto.set_clients(server.clients);
  *proto.mutable_tables() = server.tables;
  return proto;
}

// What a member that knows this version of the shards' addresses must be told.
template <typename Response>
void TellServers(const ShardAddresses& shards, uint64_t known, Response* response) {
  const VersionedAddresses news = shards.NewsFor(known);
  response->set_servers_version(news.version);
  for (const std::string& address : news.addresses) response->add_ps_addresses(address);
}

v1::StateVersions VersionsToProto(const StateVersions& state_versions) {
  v1::StateVersions proto;
  proto.set_current(state_versions.current);
  proto.set_stored(state_versions.stored);
  return proto;
}

}  // namespace

v1::JobPhase JobPhaseToProto(JobPhase phase) {
  switch (phase) {
    case JobPhase::kWaitingForServers:
      return v1::WAITING_FOR_SERVERS;
    case JobPhase::kTraining:
      return v1::TRAINING;
    case JobPhase::kFinishing:
      return v1::FINISHING;
    case JobPhase::kEvaluating:
      return v1::EVALUATING;
    case JobPhase::kDone:
      return v1::DONE;
    case JobPhase::kFailed:
      return v1::FAILED;
  }
  return v1::JOB_PHASE_UNSPECIFIED;
}

absl::Status ChiefHandler::Register(const v1::RegisterRequest& request,
                                    v1::RegisterResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  const MembershipId id = MembershipIdOf(request.header());
  RETURN_IF_ERROR(CheckDrawn(id));
  // They are kept for as long as the job, and shown.
  RETURN_IF_ERROR(CheckLength("peer", request.peer()));
  RETURN_IF_ERROR(CheckLength("device", request.device()));
  ASSIGN_OR_RETURN(const absl::Duration step_bound, StepBoundOf(request));
  std::vector<HeldLease> held;
  for (const v1::HeldLease& lease : request.leases()) held.push_back(HeldLeaseFromProto(lease));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> kept,
                   coordinator_->members()->Register(task, id, request.config_hash(),
                                                     request.peer(), held, request.device(),
                                                     request.header().member_epoch(), step_bound));
  response->mutable_kept_leases()->Add(kept.begin(), kept.end());
  *response->mutable_state_versions() = VersionsToProto(coordinator_->persistence()->versions());
  response->set_phase(JobPhaseToProto(coordinator_->control()->phase()));
  return absl::OkStatus();
}

absl::Status ChiefHandler::GetModel(const v1::GetModelRequest& request,
                                    v1::GetModelResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  ASSIGN_OR_RETURN(const ModelLocation model,
                   coordinator_->requests()->WaitForModel(task, MembershipIdOf(request.header()),
                                                          BoundedWait(request.max_wait())));
  *response = ModelResponse(model);
  return absl::OkStatus();
}

template <typename Response>
ChiefHandler::Cancel ChiefHandler::CancelOf(std::optional<MemberRequests::RequestId> id,
                                            std::function<void(absl::StatusOr<Response>)> done) {
  if (!id.has_value()) return nullptr;
  return [this, id = *id, done = std::move(done)] {
    if (coordinator_->requests()->Withdraw(id)) done(absl::CancelledError("the caller is gone"));
  };
}

ChiefHandler::Cancel ChiefHandler::BeginGetModel(
    const v1::GetModelRequest& request,
    std::function<void(absl::StatusOr<v1::GetModelResponse>)> done) {
  const absl::StatusOr<Task> task = TaskFromProto(request.header().task());
  if (!task.ok()) {
    done(task.status());
    return nullptr;
  }
  const auto id = coordinator_->requests()->RequestModel(
      *task, MembershipIdOf(request.header()), BoundedWait(request.max_wait()),
      [this, done](const absl::StatusOr<ModelLocation>& model) {
        if (!model.ok()) return done(model.status());
        done(ModelResponse(*model));
      });
  return CancelOf(id, std::move(done));
}

v1::GetModelResponse ChiefHandler::ModelResponse(const ModelLocation& model) const {
  v1::GetModelResponse response;
  *response.mutable_placement() = model.placement.ToProto();
  response.set_placement_fingerprint(model.placement.Fingerprint());
  response.set_member_epoch(coordinator_->roster()->epoch());
  for (const std::string& address : model.ps_addresses) response.add_ps_addresses(address);
  response.set_phase(JobPhaseToProto(coordinator_->control()->phase()));
  response.set_train_records(model.train_records);
  response.set_servers_version(model.servers_version);
  return response;
}

absl::Status ChiefHandler::Heartbeat(const v1::HeartbeatRequest& request,
                                     v1::HeartbeatResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  RETURN_IF_ERROR(coordinator_->members()->Heartbeat(task, MembershipIdOf(request.header()),
                                                     ReportFromProto(request.progress())));
  // In this order, so that a job that has failed comes with its error.
  response->set_phase(JobPhaseToProto(coordinator_->control()->phase()));
  response->set_error(coordinator_->control()->error());
  *response->mutable_state_versions() = VersionsToProto(coordinator_->persistence()->versions());
  SetDuration(coordinator_->members()->HeartbeatInterval(), response->mutable_next_after());
  TellServers(*coordinator_->shards(), request.servers_version(), response);
  return absl::OkStatus();
}

absl::Status ChiefHandler::AcquireWork(const v1::AcquireWorkRequest& request,
                                       v1::AcquireWorkResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  ASSIGN_OR_RETURN(const std::optional<WorkLease> lease,
                   coordinator_->requests()->AcquireWork(
                       task, MembershipIdOf(request.header()), ReportFromProto(request.progress()),
                       BoundedWait(request.max_wait()), request.sequence()));
  *response = WorkResponse(lease, request.servers_version());
  return absl::OkStatus();
}

ChiefHandler::Cancel ChiefHandler::BeginAcquireWork(
    const v1::AcquireWorkRequest& request,
    std::function<void(absl::StatusOr<v1::AcquireWorkResponse>)> done) {
  const absl::StatusOr<Task> task = TaskFromProto(request.header().task());
  if (!task.ok()) {
    done(task.status());
    return nullptr;
  }
  const auto id = coordinator_->requests()->RequestWork(
      *task, MembershipIdOf(request.header()), ReportFromProto(request.progress()),
      BoundedWait(request.max_wait()), request.sequence(),
      [this, done, servers_version = request.servers_version()](
          const absl::StatusOr<std::optional<WorkLease>>& lease) {
        if (!lease.ok()) return done(lease.status());
        done(WorkResponse(*lease, servers_version));
      });
  return CancelOf(id, std::move(done));
}

v1::AcquireWorkResponse ChiefHandler::WorkResponse(const std::optional<WorkLease>& lease,
                                                   uint64_t servers_version) const {
  v1::AcquireWorkResponse response;
  TellServers(*coordinator_->shards(), servers_version, &response);
  if (lease.has_value()) {
    response.set_lease_id(lease->id);
    for (const WorkTicket& ticket : lease->tickets) {
      *response.add_tickets() = TicketToProto(ticket, *lease);
    }
    response.set_fresh_values(lease->fresh_values);
    for (const v1::StreamFile& file : lease->stream_files) *response.add_stream_files() = file;
  }
  *response.mutable_state_versions() = VersionsToProto(coordinator_->persistence()->versions());
  // Workers stay until the last snapshot is there: if the job falls back to an earlier one, the
  // steps since then are theirs to do.
  const JobPhase phase = coordinator_->control()->phase();
  response.set_phase(JobPhaseToProto(phase == JobPhase::kFinishing ? JobPhase::kTraining : phase));
  return response;
}

absl::Status ChiefHandler::Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  ASSIGN_OR_RETURN(const bool admitted, coordinator_->members()->Admit(
                                            task, MembershipIdOf(request.header()),
                                            request.lease_id(), request.step(), request.attempt()));
  response->set_admitted(admitted);
  return absl::OkStatus();
}

absl::Status ChiefHandler::SetMode(const v1::SetModeRequest& request,
                                   v1::SetModeResponse* response) {
  ASSIGN_OR_RETURN(const ConsistencyMode mode, ConsistencyMode::FromProto(request.mode()));
  const ConsistencyMode previous = coordinator_->control()->mode();
  RETURN_IF_ERROR(coordinator_->control()->SetMode(mode));
  *response->mutable_previous() = previous.ToProto();
  if (coordinator_->persistence()->WaitUntilStored(kStoreWait)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "consistency mode: changed to ", mode.ToString(),
      ", but the servers do not hold that yet: a chief that is restarted now may not know"));
}

absl::Status ChiefHandler::EndTraining(const v1::EndTrainingRequest& request,
                                       v1::EndTrainingResponse* response) {
  if (request.has_header()) {
    ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
    RETURN_IF_ERROR(
        coordinator_->members()->Heartbeat(task, MembershipIdOf(request.header()), WorkerReport()));
  }
  ASSIGN_OR_RETURN(const std::string reason, ReasonOf(request));
  RETURN_IF_ERROR(coordinator_->control()->EndTraining(reason));
  // Only then is the answer sent: if this chief is killed afterwards, its successor knows of the
  // end.
  if (!coordinator_->persistence()->WaitUntilStored(kStoreWait)) {
    LogWarning("the servers do not hold yet that training ends early");
  }
  return absl::OkStatus();
}

absl::Status ChiefHandler::SaveSnapshot(const v1::SaveSnapshotRequest& request,
                                        v1::SaveSnapshotResponse* response) {
  if (request.has_header()) {
    ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
    RETURN_IF_ERROR(
        coordinator_->members()->Heartbeat(task, MembershipIdOf(request.header()), WorkerReport()));
  }
  ASSIGN_OR_RETURN(const int64_t step, coordinator_->wishes()->Save(kLongestSave));
  response->set_step(step);
  return absl::OkStatus();
}

absl::Status ChiefHandler::Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  return coordinator_->members()->Leave(task, MembershipIdOf(request.header()),
                                        ReportFromProto(request.progress()));
}

absl::Status ChiefHandler::AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                                 v1::AcknowledgeEvaluationResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  RETURN_IF_ERROR(
      coordinator_->members()->Heartbeat(task, MembershipIdOf(request.header()), WorkerReport()));
  coordinator_->evaluations()->AcknowledgeEvaluation(
      request.step(), request.snapshot_id(),
      std::map<std::string, double>(request.metrics().begin(), request.metrics().end()));
  response->set_phase(JobPhaseToProto(coordinator_->control()->phase()));
  return absl::OkStatus();
}

absl::Status ChiefHandler::ProposeJob(const v1::ProposeJobRequest& request,
                                      v1::ProposeJobResponse* response) {
  return AnswerProposal(config_, request, response);
}

absl::Status ChiefHandler::GetJobStatus(const v1::GetJobStatusRequest& request,
                                        v1::JobStatus* response) {
  const CoordinatorStatus status = coordinator_->reports()->GetStatus();
  response->set_phase(JobPhaseToProto(status.phase));
  response->set_step(status.step);
  response->set_max_steps(status.max_steps);
  response->set_epoch(status.epoch);
  response->set_loss(status.newest.loss());
  response->set_steps_per_second(status.newest.steps_per_second());
  response->set_examples_per_second(status.newest.examples_per_second());
  response->mutable_lease()->set_seconds(
      absl::ToInt64Seconds(absl::Ceil(coordinator_->roster()->lease(), absl::Seconds(1))));
  response->set_snapshot_step(status.snapshot_step);
  response->set_error(status.error);
  *response->mutable_mode() = status.mode.ToProto();
  if (status.next_mode.has_value()) *response->mutable_next_mode() = status.next_mode->ToProto();
  response->set_end_reason(status.end_reason);
  response->set_missing_workers(status.missing_workers);
  if (status.stream.has_value()) *response->mutable_stream() = *status.stream;
  if (servers_ != nullptr) {
    for (const ServerView& server : servers_()) *response->add_servers() = ServerToProto(server);
  }
  for (const Member& member : status.members) {
    *response->add_members() = MemberToProto(member, status);
  }
  return absl::OkStatus();
}

}  // namespace keelson
