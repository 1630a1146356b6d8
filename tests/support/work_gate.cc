#include "tests/support/work_gate.h"

#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::Duration kMoment = absl::Milliseconds(50);

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

bool WorkGate::WaitBriefly() {
  MutexLock lock(&mu_);
  if (!IsOpen()) changed_.WaitFor(&mu_, kMoment);
  return IsOpen();
}

absl::Status WorkGate::AcquireWork(ChiefService* chief, const v1::AcquireWorkRequest& request,
                                   v1::AcquireWorkResponse* response) {
  if (!WaitBriefly()) {
    v1::HeartbeatRequest heartbeat;
    *heartbeat.mutable_header() = request.header();
    *heartbeat.mutable_progress() = request.progress();
    v1::HeartbeatResponse answer;
    RETURN_IF_ERROR(chief->Heartbeat(heartbeat, &answer));
    response->set_phase(answer.phase());
    *response->mutable_state_versions() = answer.state_versions();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(chief->AcquireWork(request, response));
  MutexLock lock(&mu_);
  granted_ += response->tickets_size();
  return absl::OkStatus();
}

}  // namespace keelson
