#include "tests/search/mode_rule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {

size_t ModeRule::Ask(const ConsistencyMode& mode) {
  const size_t request = asked_.size();
  asked_.push_back(mode);
  open_when_asked_.push_back(open_);
  called_.emplace_back();
  open_.insert(request);
  return request;
}

void ModeRule::NoteCalled(int process) {
  for (std::set<int>& called : called_) called.insert(process);
}

void ModeRule::NoteAnswer(size_t request, std::set<int> servers) {
  open_.erase(request);
  answered_ = request;
  // The same change may have been asked before, and its answer lost.
  const auto first = std::find(asked_.begin(), asked_.end(), asked_[request]) - asked_.begin();
  std::erase_if(servers,
                [&](int server) { return !called_[static_cast<size_t>(first)].contains(server); });
  holders_ = std::move(servers);
}

bool ModeRule::synchronous() const {
  return configured_.synchronous() &&
         std::all_of(asked_.begin(), asked_.end(),
                     [](const ConsistencyMode& mode) { return mode.synchronous(); });
}

std::string ModeRule::Check(const ConsistencyMode& found) const {
  if (holders_.empty()) return "";
  for (size_t request = 0; request < asked_.size(); ++request) {
    // Requests that were open at the same time are carried out in any order.
    const bool may_be = request >= answered_ || open_.contains(request) ||
                        open_when_asked_[answered_].contains(request);
    if (may_be && asked_[request] == found) return "";
  }
  return absl::StrCat("the job ends in mode ", found.ToString(), ", the last change was to ",
                      asked_[answered_].ToString());
}

}  // namespace keelson
