// What can be changed in a running job from its dashboard.
#ifndef KEELSON_DASHBOARD_API_ACTIONS_H_
#define KEELSON_DASHBOARD_API_ACTIONS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/client/services/chief_service.h"

namespace keelson {

// Thread-safe. Errors: INVALID_ARGUMENT: it makes no sense. FAILED_PRECONDITION: not in this state
// of the job. PERMISSION_DENIED, UNAUTHENTICATED: the chief does not take our token. UNAVAILABLE,
// DEADLINE_EXCEEDED: the chief is away.
class JobActions {
 public:
  virtual ~JobActions() = default;

  // Training ends before its last step. `reason`: one line, for people.
  virtual absl::Status EndTraining(absl::string_view reason) = 0;
  // `mode`: "async", "ssp:N", "sync:N" or "sync:N/M".
  virtual absl::Status SetMode(absl::string_view mode) = 0;
};

// Asks the chief, which outlives the actions. Its calls carry the job's token where the chief wants
// one.
std::unique_ptr<JobActions> ChiefActions(ChiefService* chief);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_ACTIONS_H_
