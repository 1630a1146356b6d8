// The model's variables as a worker sees them: whole tensors, wherever their parts live.
#ifndef KEELSON_CORE_CLIENT_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/tensor.h"

namespace keelson {

struct PushResult {
  // Largest over the shards: pushes of others applied between this push's pull and itself.
  int64_t staleness = 0;
  // Calls that had to be repeated.
  int64_t retries = 0;
};

// Not thread-safe. Both calls repeat what fails for lack of a server (see RetryOptions), and return
// CANCELLED when the owner's stop signal is raised meanwhile. Other errors, UNAVAILABLE after the
// patience among them, are final.
class ParameterClient {
 public:
  virtual ~ParameterClient() = default;

  // One tensor per variable, in the model's order; as of the last Pull, zeros before.
  virtual absl::Span<const Tensor> values() const = 0;

  // Fetches what has changed since the last Pull.
  virtual absl::Status Pull() = 0;

  // Applies `gradients` (shapes of values()), computed for step ticket `step` from the values of
  // the last Pull. Applied once, however often it had to be sent.
  virtual absl::StatusOr<PushResult> Push(int64_t step, absl::Span<const Tensor> gradients) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_PARAMETER_CLIENT_H_
