#include "tests/search/handing_rule.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace keelson {

void HandingRule::NoteGranted(int chief, uint64_t incarnation,
                              const v1::AcquireWorkResponse& work) {
  ++now_;
  for (const v1::StepTicket& ticket : work.tickets()) {
    const Records records = {ticket.records().epoch(), ticket.records().begin()};
    granted_[{incarnation, ticket.step()}].insert(records);
    const Holder taker = {{chief, work.lease_id()}, incarnation, now_};
    const auto [holder, first] = holders_.try_emplace(records, taker);
    if (!first && taker.lease > holder->second.lease) holder->second = taker;
  }
}

bool HandingRule::HandedOn(uint64_t incarnation, int64_t step, int64_t begun) const {
  const auto granted = granted_.find({incarnation, step});
  if (granted == granted_.end()) return false;
  return std::none_of(granted->second.begin(), granted->second.end(), [&](const Records& records) {
    const Holder& holder = holders_.at(records);
    return holder.incarnation == incarnation || holder.since > begun;
  });
}

std::string HandingRule::NotePushed(const BulkRequest& push, const BulkResponse& answer,
                                    int64_t begun) const {
  if (push.attempt > 0 || !HandedOn(push.incarnation, push.step, begun)) return "";
  size_t blocks = 0;
  for (const BlockRange& range : push.ranges) blocks += range.num_blocks;
  if (answer.duplicate_blocks >= blocks) return "";
  return absl::StrCat("a push of step ", push.step,
                      " is applied, although its work is another worker's");
}

}  // namespace keelson
