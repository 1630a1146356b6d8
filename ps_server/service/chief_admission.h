// Decides which chief's calls a server accepts.
#ifndef KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_
#define KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// Admits the chief of the highest term that has called, and of one term the first that called;
// whoever calls first, a chief that was replaced is refused. A process has one for all of its
// shards: whoever was refused or admitted at one of them is at all. Thread-safe.
class ChiefAdmission {
 public:
  // Another chief is let in when the one before it has been silent for `exclusive`: zero where
  // callers are known to belong to the job, so that a restarted chief goes on at once. `clock`
  // outlives this.
  explicit ChiefAdmission(const Clock* clock, absl::Duration exclusive = absl::ZeroDuration())
      : clock_(clock), exclusive_(exclusive) {}

  // `chief`: term and incarnation count. ABORTED: "ChiefHeartbeat: another chief has taken the
  // caller's place", with both terms. ALREADY_EXISTS: another chief was heard too short a time ago;
  // the text says when to come again.
  absl::Status Admit(absl::string_view call, const v1::RequestHeader& chief);
  // For work of an admitted call that goes on: ABORTED as in Admit. Does not count as a sign of the
  // chief, which may have ended meanwhile.
  absl::Status CheckNotReplaced(absl::string_view call, const v1::RequestHeader& chief) const;

  // The time since the last admitted call; infinite when there was none.
  absl::Duration Silence() const;
  // The term of the chief that was admitted last; 0: none.
  uint64_t term() const;
  // Its incarnation; 0: none.
  uint64_t incarnation() const;

 private:
  absl::Status CheckTerm(absl::string_view call, const v1::RequestHeader& chief) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const absl::Duration exclusive_;

  mutable Mutex mu_;
  absl::Duration last_call_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  bool any_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t term_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t incarnation_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_CHIEF_ADMISSION_H_
