#include "ps_server/service/member_table.h"

#include "absl/strings/str_cat.h"
#include "ps_server/service/bulk_calls.h"

namespace keelson {

bool MemberTable::Member::Is(const BulkRequest& caller) const {
  return static_cast<int>(task.role()) == caller.role && task.index() == caller.task_index &&
         secret == caller.membership_secret;
}

bool MemberTable::Take(uint64_t chief, const v1::MemberList& list) {
  if (epoch_ != 0 && chief == chief_ && list.epoch() <= epoch_) return false;
  chief_ = chief;
  epoch_ = list.epoch();
  members_.clear();
  for (const v1::MemberList::Member& member : list.members()) {
    members_[member.incarnation()] = {member.task(), member.membership_secret()};
  }
  return true;
}

absl::Status MemberTable::Check(const BulkRequest& request) const {
  const auto found = members_.find(request.incarnation);
  if (found != members_.end()) {
    return found->second.Is(request) ? absl::OkStatus() : MembershipOver(request);
  }
  if (epoch_ != 0 && request.member_epoch <= epoch_) return MembershipOver(request);
  return absl::UnavailableError(
      absl::StrCat("the chief has not announced this member yet: it belongs to epoch ",
                   request.member_epoch, ", the newest one known here is ", epoch_));
}

std::vector<uint64_t> MemberTable::Incarnations() const {
  std::vector<uint64_t> incarnations;
  for (const auto& [incarnation, member] : members_) incarnations.push_back(incarnation);
  return incarnations;
}

}  // namespace keelson
