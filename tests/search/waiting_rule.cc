#include "tests/search/waiting_rule.h"

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// So long before the caller gives up, or it would ask again instead.
constexpr absl::Duration kBefore = absl::Seconds(2);

}  // namespace

void WaitingRule::NoteBegin(int64_t call, int process, absl::string_view what,
                            absl::Duration timeout, absl::Duration now) {
  calls_[call] = {process, std::string(what), now + timeout - kBefore};
}

void WaitingRule::NotePaused(int process, bool paused, absl::Duration now) {
  if (paused) {
    paused_.try_emplace(process, now);
    return;
  }
  const auto since = paused_.find(process);
  if (since == paused_.end()) return;
  for (auto& [number, call] : calls_) {
    if (call.process == process) call.due += now - since->second;
  }
  paused_.erase(since);
}

void WaitingRule::NoteEnd(int process) {
  paused_.erase(process);
  std::erase_if(calls_, [process](const auto& call) { return call.second.process == process; });
}

std::string WaitingRule::Check(absl::Duration now) const {
  for (const auto& [number, call] : calls_) {
    if (now <= call.due || paused_.contains(call.process)) continue;
    return absl::StrCat(call.what, " is not answered ", absl::FormatDuration(now - call.due),
                        " after the latest time at which it had to be");
  }
  return "";
}

}  // namespace keelson
