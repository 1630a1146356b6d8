// The identity of one membership: 128 random bits that only the member and those who must check it
// know.
#ifndef KEELSON_CORE_CLUSTER_MEMBERSHIP_ID_H_
#define KEELSON_CORE_CLUSTER_MEMBERSHIP_ID_H_

#include <cstdint>

#include "core/base/random.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

struct MembershipId {
  // Names the membership: in tables, in snapshots, in what is persisted.
  uint64_t incarnation = 0;
  // Shows that a caller is that member. It is kept in memory and in the job state that the servers
  // hold for the chief alone, and is never logged or written to a file. It is compared as one word,
  // which takes the same time whichever bits differ, and is never the key of a table.
  uint64_t secret = 0;

  friend bool operator==(const MembershipId&, const MembershipId&) = default;
};

// See RandomId.
inline MembershipId RandomMembershipId() { return {RandomId(), RandomId()}; }

inline MembershipId MembershipIdOf(const v1::RequestHeader& header) {
  return {header.incarnation(), header.membership_secret()};
}

inline void SetMembershipId(const MembershipId& id, v1::RequestHeader* header) {
  header->set_incarnation(id.incarnation);
  header->set_membership_secret(id.secret);
}

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_MEMBERSHIP_ID_H_
