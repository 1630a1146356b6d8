// A worker's memberships, one after another.
#ifndef KEELSON_WORKER_MEMBERSHIPS_H_
#define KEELSON_WORKER_MEMBERSHIPS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/services/retry.h"
#include "worker/progress.h"

namespace keelson {

// Calls `run` for one membership after another until it returns something else than ABORTED (the
// membership is over), and returns that. ABORTED: none has lasted for a step for as long as
// `retry` allows; `finished_steps` counts those of all memberships.
absl::Status RunMemberships(const RetryOptions& retry, Progress* progress, const Clock* clock,
                            const StopSignal* stop, absl::FunctionRef<int64_t()> finished_steps,
                            absl::FunctionRef<absl::Status()> run);

}  // namespace keelson

#endif  // KEELSON_WORKER_MEMBERSHIPS_H_
