// Decides which chief's calls a server accepts.
#ifndef KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_
#define KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace keelson {

// Admits the newest incarnation that has called; the one before it is refused from then on.
// Thread-safe.
class ChiefAdmission {
 public:
  // A new incarnation is let in when the one before it has been silent for `exclusive`: zero where
  // callers are known to belong to the job, so that a restarted chief goes on at once. `clock`
  // outlives this.
  explicit ChiefAdmission(const Clock* clock, absl::Duration exclusive = absl::ZeroDuration())
      : clock_(clock), exclusive_(exclusive) {}

  // ABORTED: "ChiefHeartbeat: another chief has taken the caller's place". ALREADY_EXISTS:
  // another chief was heard too short a time ago; the text says when to come again.
  absl::Status Admit(absl::string_view call, uint64_t incarnation);

  // The time since the last admitted call; infinite when there was none.
  absl::Duration Silence() const;

 private:
  const Clock* const clock_;
  const absl::Duration exclusive_;

  mutable Mutex mu_;
  absl::Duration last_call_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::optional<uint64_t> newest_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> replaced_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_
