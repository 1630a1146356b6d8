#include "tests/search/handing_rule.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace keelson {

void HandingRule::NoteGranted(int chief, uint64_t incarnation,
                              const v1::AcquireWorkResponse& work) {
  for (const v1::StepTicket& ticket : work.tickets()) {
    const Records records = {ticket.records().epoch(), ticket.records().begin()};
    const Holder taker = {{chief, work.lease_id()}, {incarnation, ticket.step()}};
    const auto [holder, first] = holders_.try_emplace(records, taker);
    if (first || taker.lease <= holder->second.lease) continue;
    if (holder->second.step.first != incarnation) handed_on_.insert(holder->second.step);
    holder->second = taker;
  }
}

std::string HandingRule::NotePushed(const BulkRequest& push, const BulkResponse& answer) const {
  if (push.attempt > 0 || !handed_on_.contains({push.incarnation, push.step})) return "";
  size_t blocks = 0;
  for (const BlockRange& range : push.ranges) blocks += range.num_blocks;
  if (answer.duplicate_blocks >= blocks) return "";
  return absl::StrCat("a push of step ", push.step,
                      " is applied, although its work is another worker's");
}

}  // namespace keelson
