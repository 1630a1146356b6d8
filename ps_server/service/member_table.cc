#include "ps_server/service/member_table.h"

#include "absl/strings/str_cat.h"
#include "ps_server/service/bulk_calls.h"

namespace keelson {

bool MemberTable::Take(uint64_t chief, const v1::MemberList& list) {
  if (epoch_ != 0 && chief == chief_ && list.epoch() <= epoch_) return false;
  chief_ = chief;
  epoch_ = list.epoch();
  members_.clear();
  for (const v1::MemberList::Member& member : list.members()) {
    members_[member.incarnation()] = member.task();
  }
  return true;
}

absl::Status MemberTable::Check(const BulkRequest& request) const {
  const auto member = members_.find(request.incarnation);
  if (member != members_.end() && static_cast<int>(member->second.role()) == request.role &&
      member->second.index() == request.task_index) {
    return absl::OkStatus();
  }
  if (epoch_ != 0 && request.member_epoch <= epoch_) return MembershipOver(request);
  return absl::UnavailableError(
      absl::StrCat("the chief has not announced this member yet: it belongs to epoch ",
                   request.member_epoch, ", the newest one known here is ", epoch_));
}

std::vector<uint64_t> MemberTable::Incarnations() const {
  std::vector<uint64_t> incarnations;
  for (const auto& [incarnation, task] : members_) incarnations.push_back(incarnation);
  return incarnations;
}

}  // namespace keelson
