// A process that hosts a shard tells the leader where it is, in a job whose cluster lists the
// leader alone.
#ifndef KEELSON_WORKER_HOST_ANNOUNCER_H_
#define KEELSON_WORKER_HOST_ANNOUNCER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/retry.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// Says it at once, and then once a second for as long as it lives: a leader that was restarted has
// forgotten it, and learns it so. A leader that does not answer is tried again as by
// CallWithRetries, for as long as it takes. Thread-safe.
class HostAnnouncer {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(1);

  // Returns when the leader has taken the announcement `request` for the first time. Later
  // `refused` is called, once, on a thread of its own, when the leader refuses it: another process
  // has taken this one's place. The clock outlives this. CANCELLED: `stop` was raised. UNAVAILABLE:
  // no leader within the time of `retry`. Otherwise errors of ChiefService.AnnounceHost.
  static absl::StatusOr<std::unique_ptr<HostAnnouncer>> Start(
      const v1::AnnounceHostRequest& request, std::unique_ptr<ChiefService> leader,
      const RetryOptions& retry, const Clock* clock, const StopSignal* stop,
      std::function<void()> refused);
  ~HostAnnouncer();

  // "host:port" by which the leader knew this process at first.
  const std::string& address() const { return address_; }
  // The leader's refusal; OK: there is none.
  absl::Status status() const;

 private:
  HostAnnouncer(v1::AnnounceHostRequest request, std::unique_ptr<ChiefService> leader,
                const RetryOptions& retry, std::string address, std::function<void()> refused);

  void Run();
  absl::Status Announce();

  const v1::AnnounceHostRequest request_;
  const std::unique_ptr<ChiefService> leader_;
  const RetryOptions retry_;
  const std::string address_;
  const std::function<void()> refused_;
  StopSignal stop_;

  mutable Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  Thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_HOST_ANNOUNCER_H_
