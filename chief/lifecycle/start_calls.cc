#include "chief/lifecycle/start_calls.h"

#include "core/base/status_macros.h"
#include "core/base/trouble_log.h"
#include "core/client/services/retry.h"

namespace keelson {

absl::Status StartCalls::Run(absl::FunctionRef<absl::Status()> call) {
  const absl::Duration until = clock_->Monotonic() + patience_;
  TroubleLog trouble("starting the servers", clock_);
  while (true) {
    const absl::Status status = call();
    if (!IsTransient(status) || clock_->Monotonic() >= until) return status;
    trouble.Note(status);
    if (stop_->WaitFor(kStartPause)) return absl::CancelledError("while starting the servers");
    RETURN_IF_ERROR(servers_->WaitUntilReachable());
  }
}

}  // namespace keelson
