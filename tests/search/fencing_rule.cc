#include "tests/search/fencing_rule.h"

#include "absl/strings/str_cat.h"

namespace keelson {

std::string FencingRule::NoteObeyed(int server, int chief, int64_t begun) {
  Obeyed& obeyed = obeyed_[server];
  if (chief < obeyed.chief && begun > obeyed.since) {
    return absl::StrCat("a server obeys process ", chief, " after its successor, process ",
                        obeyed.chief);
  }
  if (chief > obeyed.chief && owners_.contains(chief)) obeyed = {chief, ++events_};
  return "";
}

std::string FencingRule::CheckCommit(int chief) const {
  const auto written = written_.find(chief);
  if (written == written_.end()) return "";
  for (const auto& [server, obeyed] : obeyed_) {
    if (obeyed.chief <= chief || obeyed.since > written->second) continue;
    return absl::StrCat("process ", chief, " commits a snapshot after a server has obeyed process ",
                        obeyed.chief);
  }
  return "";
}

}  // namespace keelson
