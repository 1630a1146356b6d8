// Derives the state of a run from its files.
#ifndef KEELSON_DASHBOARD_RUNS_RUN_STATE_H_
#define KEELSON_DASHBOARD_RUNS_RUN_STATE_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "dashboard/runs/json.h"

namespace keelson {

// A chief writes its status twice a second. After kAwayAfter it counts as away, after kGoneAfter as
// gone.
inline constexpr absl::Duration kAwayAfter = absl::Seconds(5);
inline constexpr absl::Duration kGoneAfter = absl::Minutes(2);

struct RunState {
  // "waiting", "running", "restarting", "stopped", "finishing", "evaluating", "done" or "failed"
  std::string state = "waiting";
  std::string text;        // only displayed
  std::string error = {};  // why it failed
  // The job is not over, and its chief writes no status.
  bool chief_away = false;

  bool over() const { return state == "done" || state == "failed"; }

  friend bool operator==(const RunState&, const RunState&) = default;
};

// `status`: of status.json, null while there is none. `age`: since that was written. `done`: there
// is a DONE marker.
RunState DeriveRunState(const Json& status, absl::Duration age, bool done);

// How old status.json is. Not thread-safe. Until it changes, its age is that of its own time (from
// another machine's clock, perhaps), and at least the time since it was first read; from the first
// change on only the own clock counts.
class StatusAge {
 public:
  explicit StatusAge(const Clock* clock) : clock_(clock) {}

  // Notes a status: the first, or a changed one.
  void Note(const Json& status);
  absl::Duration Get() const;

 private:
  const Clock* const clock_;
  std::optional<absl::Time> written_;
  absl::Duration seen_;   // Monotonic() of the last Note
  bool changed_ = false;  // there were several
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_RUN_STATE_H_
