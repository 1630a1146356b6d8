// In which state a run is, by what its files say.
#ifndef KEELSON_DASHBOARD_RUNS_RUN_STATE_H_
#define KEELSON_DASHBOARD_RUNS_RUN_STATE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "dashboard/runs/json.h"

namespace keelson {

// A chief writes its status twice a second. After kAwayAfter it is taken for away, after kGoneAfter
// for gone.
inline constexpr absl::Duration kAwayAfter = absl::Seconds(5);
inline constexpr absl::Duration kGoneAfter = absl::Minutes(2);

struct RunState {
  // "waiting", "running", "restarting", "stopped", "finishing", "evaluating", "done" or "failed"
  std::string state = "waiting";
  std::string text;        // for people
  std::string error = {};  // why it failed
  // The job is not over, and its chief is not heard of.
  bool chief_away = false;

  bool over() const { return state == "done" || state == "failed"; }

  friend bool operator==(const RunState&, const RunState&) = default;
};

// `status`: of status.json, null while there is none. `age`: since that was written. `done`: there
// is a DONE marker.
RunState DeriveRunState(const Json& status, absl::Duration age, bool done);

// How old status.json is. Not thread-safe. As long as it does not change, it is as old as its
// own time says, which another machine's clock may have written, but not younger than for how long
// it has been looked at; from the first change on only the own clock counts.
class StatusAge {
 public:
  explicit StatusAge(const Clock* clock) : clock_(clock) {}

  // There is a status, the first or another one.
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
