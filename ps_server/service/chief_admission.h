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
  // `clock` outlives this.
  explicit ChiefAdmission(const Clock* clock) : clock_(clock) {}

  // ABORTED: "ChiefHeartbeat: another chief has taken the caller's place".
  absl::Status Admit(absl::string_view call, uint64_t incarnation);

  // The time since the last admitted call; infinite when there was none.
  absl::Duration Silence() const;

 private:
  const Clock* const clock_;

  mutable Mutex mu_;
  absl::Duration last_call_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::optional<uint64_t> newest_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> replaced_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_
