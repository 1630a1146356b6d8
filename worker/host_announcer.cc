#include "worker/host_announcer.h"

#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<HostAnnouncer>> HostAnnouncer::Start(
    const v1::AnnounceHostRequest& request, std::unique_ptr<ChiefService> leader,
    const RetryOptions& retry, const Clock* clock, const StopSignal* stop,
    std::function<void()> refused) {
  v1::AnnounceHostResponse response;
  RETURN_IF_ERROR(CallWithRetries(retry, "registering with the leader", clock, stop,
                                  [&] { return leader->AnnounceHost(request, &response); }));
  LogInfo("registered with the leader, which reaches this process at ", response.address());
  v1::AnnounceHostRequest again = request;
  again.set_registered_at_us(response.registered_at_us());
  return std::unique_ptr<HostAnnouncer>(new HostAnnouncer(
      std::move(again), std::move(leader), retry, response.address(), std::move(refused)));
}

HostAnnouncer::HostAnnouncer(v1::AnnounceHostRequest request, std::unique_ptr<ChiefService> leader,
                             const RetryOptions& retry, std::string address,
                             std::function<void()> refused)
    : request_(std::move(request)),
      leader_(std::move(leader)),
      retry_(retry),
      address_(std::move(address)),
      refused_(std::move(refused)),
      thread_([this] { Run(); }) {}

HostAnnouncer::~HostAnnouncer() {
  stop_.Raise();
  thread_.Join();
}

absl::Status HostAnnouncer::status() const {
  MutexLock lock(&mu_);
  return status_;
}

void HostAnnouncer::Run() {
  absl::Duration away = retry_.first_pause;
  absl::Duration pause = kPause;
  while (!stop_.WaitFor(pause)) {
    const absl::Status status = Announce();
    if (IsTransient(status)) {
      pause = std::exchange(away, NextPause(retry_, away));
      continue;
    }
    if (!status.ok()) break;
    away = retry_.first_pause;
    pause = kPause;
  }
  if (!status().ok()) refused_();
}

absl::Status HostAnnouncer::Announce() {
  v1::AnnounceHostResponse response;
  absl::Status status = leader_->AnnounceHost(request_, &response);
  if (status.ok() || IsTransient(status)) return status;
  MutexLock lock(&mu_);
  status_ = status;
  return status;
}

}  // namespace keelson
