#include "dashboard/runs/run_state.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {
namespace {

constexpr size_t kNamedTasks = 4;

std::string Named(const std::vector<std::string>& tasks) {
  const auto end = tasks.begin() + static_cast<ptrdiff_t>(std::min(tasks.size(), kNamedTasks));
  const std::string names = absl::StrJoin(tasks.begin(), end, ", ");
  if (tasks.size() <= kNamedTasks) return names;
  return absl::StrCat(names, " and ", tasks.size() - kNamedTasks, " more");
}

std::vector<std::string> TextsOf(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const Json& entry : *list) {
    if (entry.is_string()) texts.push_back(entry.get<std::string>());
  }
  return texts;
}

std::vector<std::string> ServersAway(const Json& status) {
  std::vector<std::string> names;
  const Json* const servers = ListAt(status, "servers");
  if (servers == nullptr) return names;
  for (const Json& server : *servers) {
    const std::string state = TextAt(server, "state").value_or("");
    if (state != "lost" && state != "restoring") continue;
    names.push_back(absl::StrCat(TextAt(server, "task").value_or("ps"), " is ",
                                 state == "lost" ? "lost" : "being restored"));
  }
  return names;
}

RunState OfPhase(const Json& status) {
  const std::string phase = TextAt(status, "phase").value_or("");
  if (phase == "WAITING_FOR_SERVERS") {
    const std::vector<std::string> missing = TextsOf(ListAt(status, "waiting_for"));
    return {"waiting",
            missing.empty() ? "waiting for servers" : absl::StrCat("waiting for ", Named(missing))};
  }
  if (phase == "FINISHING") return {"finishing", "writing the final snapshot"};
  if (phase == "EVALUATING") return {"evaluating", "the final snapshot is being scored"};
  if (phase != "TRAINING") return {"waiting", "status.json has no phase that is known"};
  const std::vector<std::string> away = ServersAway(status);
  if (!away.empty()) return {"restarting", Named(away)};
  const int64_t missing = IntegerAt(status, "missing_workers").value_or(0);
  if (missing > 0) {
    return {"waiting", absl::StrCat("waiting for ", missing, " more ",
                                    missing == 1 ? "task" : "tasks", " to train")};
  }
  return {"running", "training"};
}

}  // namespace

RunState DeriveRunState(const Json& status, absl::Duration age, bool done) {
  const std::string phase = TextAt(status, "phase").value_or("");
  if (done || phase == "DONE") {
    const std::string reason = TextAt(status, "end_reason").value_or("");
    return {"done", reason.empty() ? "done" : absl::StrCat("ended early: ", reason)};
  }
  if (phase == "FAILED") {
    return {"failed", "failed", TextAt(status, "error").value_or("no reason is known")};
  }
  if (!status.is_object()) return {"waiting", "nothing has been written yet"};
  RunState state = OfPhase(status);
  if (age <= kAwayAfter) return state;
  state.chief_away = true;
  if (age > kGoneAfter) {
    state.state = "stopped";
    state.text = "the chief is gone, and the job was not done";
  } else {
    state.state = "restarting";
    state.text = "the chief is not heard of";
  }
  return state;
}

void StatusAge::Note(const Json& status) {
  changed_ = written_.has_value();
  seen_ = clock_->Monotonic();
  written_ = absl::FromUnixMicros(
      static_cast<int64_t>(std::clamp(NumberAt(status, "time").value_or(0), 0.0, 1e11) * 1e6));
}

absl::Duration StatusAge::Get() const {
  if (!written_.has_value()) return absl::ZeroDuration();
  const absl::Duration unchanged = clock_->Monotonic() - seen_;
  return changed_ ? unchanged : std::max(unchanged, clock_->Now() - *written_);
}

}  // namespace keelson
