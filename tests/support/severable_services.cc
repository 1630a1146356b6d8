#include "tests/support/severable_services.h"

#include <utility>

#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::Duration kMoment = absl::Milliseconds(50);

absl::Status Severed() { return absl::UnavailableError("severed by the test"); }

}  // namespace

void WorkGate::CloseAt(int64_t tickets) {
  MutexLock lock(&mu_);
  limit_ = tickets;
}

void WorkGate::Open() {
  MutexLock lock(&mu_);
  limit_ = INT64_MAX;
  changed_.NotifyAll();
}

void WorkGate::CountGranted(int64_t tickets) {
  MutexLock lock(&mu_);
  granted_ += tickets;
}

bool WorkGate::IsOpen() const { return granted_ < limit_; }

bool WorkGate::WaitBriefly() {
  MutexLock lock(&mu_);
  if (!IsOpen()) changed_.WaitFor(&mu_, kMoment);
  return IsOpen();
}

void SeverableChiefService::Sever() {
  MutexLock lock(&mu_);
  severed_ = true;
  changed_.NotifyAll();
}

void SeverableChiefService::WaitUntilSevered() {
  MutexLock lock(&mu_);
  while (!severed_) changed_.Wait(&mu_);
}

absl::Status SeverableChiefService::Call(absl::FunctionRef<absl::Status()> call) {
  {
    MutexLock lock(&mu_);
    if (severed_) return Severed();
  }
  return call();
}

absl::Status SeverableChiefService::Register(const v1::RegisterRequest& request,
                                             v1::RegisterResponse* response) {
  return Call([&] { return chief_->Register(request, response); });
}

absl::Status SeverableChiefService::GetModel(const v1::GetModelRequest& request,
                                             v1::GetModelResponse* response) {
  return Call([&] { return chief_->GetModel(request, response); });
}

absl::Status SeverableChiefService::Heartbeat(const v1::HeartbeatRequest& request,
                                              v1::HeartbeatResponse* response) {
  return Call([&] { return chief_->Heartbeat(request, response); });
}

absl::Status SeverableChiefService::AcquireWork(const v1::AcquireWorkRequest& request,
                                                v1::AcquireWorkResponse* response) {
  return Call([&] { return AcquireWhenOpen(request, response); });
}

absl::Status SeverableChiefService::AcquireWhenOpen(const v1::AcquireWorkRequest& request,
                                                    v1::AcquireWorkResponse* response) {
  if (!gate_->WaitBriefly()) {
    // The progress is delivered all the same; no lease, so the worker asks again.
    v1::HeartbeatRequest heartbeat;
    *heartbeat.mutable_header() = request.header();
    *heartbeat.mutable_progress() = request.progress();
    v1::HeartbeatResponse answer;
    RETURN_IF_ERROR(chief_->Heartbeat(heartbeat, &answer));
    response->set_phase(answer.phase());
    *response->mutable_books() = answer.books();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(chief_->AcquireWork(request, response));
  gate_->CountGranted(response->tickets_size());
  if (response->tickets_size() >= sever_after_) Sever();
  return absl::OkStatus();
}

absl::Status SeverableChiefService::Admit(const v1::AdmitRequest& request,
                                          v1::AdmitResponse* response) {
  return Call([&] { return chief_->Admit(request, response); });
}

absl::Status SeverableChiefService::SetMode(const v1::SetModeRequest& request,
                                            v1::SetModeResponse* response) {
  return Call([&] { return chief_->SetMode(request, response); });
}

absl::Status SeverableChiefService::EndTraining(const v1::EndTrainingRequest& request,
                                                v1::EndTrainingResponse* response) {
  return Call([&] { return chief_->EndTraining(request, response); });
}

absl::Status SeverableChiefService::Leave(const v1::LeaveRequest& request,
                                          v1::LeaveResponse* response) {
  return Call([&] { return chief_->Leave(request, response); });
}

absl::Status SeverableChiefService::AcknowledgeEvaluation(
    const v1::AcknowledgeEvaluationRequest& request, v1::AcknowledgeEvaluationResponse* response) {
  return Call([&] { return chief_->AcknowledgeEvaluation(request, response); });
}

absl::Status SeverableChiefService::GetJobStatus(const v1::GetJobStatusRequest& request,
                                                 v1::JobStatus* response) {
  return Call([&] { return chief_->GetJobStatus(request, response); });
}

absl::Status SeverableParameterService::Call(absl::FunctionRef<absl::Status()> call) {
  return severed_ ? Severed() : call();
}

absl::Status SeverableParameterService::Initialize(const v1::InitializeShardRequest& request,
                                                   v1::InitializeShardResponse* response) {
  return Call([&] { return server_->Initialize(request, response); });
}

absl::Status SeverableParameterService::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                                      v1::WriteSnapshotResponse* response) {
  return Call([&] { return server_->WriteSnapshot(request, response); });
}

absl::Status SeverableParameterService::StreamSnapshot(const v1::StreamSnapshotRequest& request,
                                                       ByteSink sink,
                                                       v1::WriteSnapshotResponse* response) {
  return Call([&] { return server_->StreamSnapshot(request, sink, response); });
}

absl::Status SeverableParameterService::InitializeStreamed(const v1::InitializeChunk& first,
                                                           ChunkSource next,
                                                           v1::InitializeShardResponse* response) {
  return Call([&] { return server_->InitializeStreamed(first, next, response); });
}

absl::Status SeverableParameterService::Attend(const v1::AttendRequest& request,
                                               v1::ShardStatus* response) {
  return Call([&] { return server_->Attend(request, response); });
}

absl::Status SeverableParameterService::CommitRound(const v1::CommitRoundRequest& request,
                                                    v1::CommitRoundResponse* response) {
  return Call([&] { return server_->CommitRound(request, response); });
}

absl::Status SeverableParameterService::GetStatus(const v1::GetShardStatusRequest& request,
                                                  v1::ShardStatus* response) {
  return Call([&] { return server_->GetStatus(request, response); });
}

absl::Status SeverableParameterService::FindChief(const v1::FindChiefRequest& request,
                                                  v1::FindChiefResponse* response) {
  return Call([&] { return server_->FindChief(request, response); });
}

absl::Status SeverableParameterService::Finish(const v1::FinishShardRequest& request,
                                               v1::FinishShardResponse* response) {
  return Call([&] { return server_->Finish(request, response); });
}

}  // namespace keelson
