// The changes that a dashboard can make to a running job.
#ifndef KEELSON_DASHBOARD_API_ACTIONS_H_
#define KEELSON_DASHBOARD_API_ACTIONS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/client/services/chief_service.h"

namespace keelson {

// Thread-safe. Errors: INVALID_ARGUMENT: the argument is invalid. FAILED_PRECONDITION: not in this
// state of the job. PERMISSION_DENIED, UNAUTHENTICATED: the chief rejects the token. UNAVAILABLE,
// DEADLINE_EXCEEDED: the chief is away.
class JobActions {
 public:
  virtual ~JobActions() = default;

  // Ends training before its last step. `reason`: one line, which is only displayed.
  virtual absl::Status EndTraining(absl::string_view reason) = 0;
  // `mode`: "async", "ssp:N", "sync:N" or "sync:N/M".
  virtual absl::Status SetMode(absl::string_view mode) = 0;
};

// Actions through the chief, which outlives them. Calls carry the job's token if the chief needs
// one.
std::unique_ptr<JobActions> ChiefActions(ChiefService* chief);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_ACTIONS_H_
