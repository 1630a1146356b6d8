// Who belongs to the job, as the chief has announced it.
#ifndef KEELSON_PS_SERVER_SERVICE_MEMBER_TABLE_H_
#define KEELSON_PS_SERVER_SERVICE_MEMBER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "core/wire/bulk_messages.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// The members of the newest epoch; nobody before the first one. Not thread-safe.
class MemberTable {
 public:
  // Makes the list the table. False, and nothing changes: it is not newer, and the newest one was
  // the same chief's. Another chief's list always counts: chiefs are admitted before they announce.
  bool Take(uint64_t chief, const v1::MemberList& list);

  // OK: the caller is a member, which its task and its secret show. UNAVAILABLE: nothing newer than
  // the caller's epoch is known here, so that it may be a member soon. ABORTED: MembershipOver
  // (bulk_calls.h), also when the incarnation is a member's and the rest is not.
  absl::Status Check(const BulkRequest& request) const;

  uint64_t epoch() const { return epoch_; }
  size_t size() const { return members_.size(); }
  std::vector<uint64_t> Incarnations() const;

 private:
  struct Member {
    bool Is(const BulkRequest& caller) const;

    v1::TaskId task;
    uint64_t secret = 0;  // MembershipId
  };

  uint64_t chief_ = 0;
  uint64_t epoch_ = 0;                            // 0: none was announced
  std::unordered_map<uint64_t, Member> members_;  // by incarnation
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_MEMBER_TABLE_H_
