// Maps errors of a worker's devices to the statuses with which it ends.
#ifndef KEELSON_WORKER_DEVICE_STATUS_H_
#define KEELSON_WORKER_DEVICE_STATUS_H_

#include "absl/status/status.h"

namespace keelson {

// RESOURCE_EXHAUSTED of a device becomes FAILED_PRECONDITION: a step that needs more memory than
// there is also needs it after a restart. Other errors are unchanged.
inline absl::Status DeviceStatus(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::FailedPreconditionError(status.message());
}

}  // namespace keelson

#endif  // KEELSON_WORKER_DEVICE_STATUS_H_
