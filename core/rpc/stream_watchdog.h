// Ends a streaming call whose peer neither sends nor takes messages.
#ifndef KEELSON_CORE_RPC_STREAM_WATCHDOG_H_
#define KEELSON_CORE_RPC_STREAM_WATCHDOG_H_

#include <functional>
#include <optional>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace keelson {

// Has a thread of its own. Its methods are for the one thread that serves the call.
class StreamWatchdog {
 public:
  // The longest time that the peer may take for one message.
  static constexpr absl::Duration kLimit = absl::Seconds(10);

  // `cancel` makes a pending Read or Write of the call return false; it must not block. `clock`
  // outlives this.
  StreamWatchdog(std::function<void()> cancel, const Clock* clock);
  ~StreamWatchdog();
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  // Returns what `exchange`, a Read or Write of the call, returns; cancels the call when that takes
  // longer than kLimit. The time between two exchanges does not count.
  bool Await(absl::FunctionRef<bool()> exchange);

  // Whether the call was cancelled.
  bool expired() const;

 private:
  void Run();

  const std::function<void()> cancel_;
  const Clock* const clock_;

  mutable Mutex mu_;
  CondVar changed_;
  // When the exchange under way is too late; none while there is none.
  std::optional<absl::Duration> until_ ABSL_GUARDED_BY(mu_);
  bool expired_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_STREAM_WATCHDOG_H_
