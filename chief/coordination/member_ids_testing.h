// The ids of tests' members.
#ifndef KEELSON_CHIEF_COORDINATION_MEMBER_IDS_TESTING_H_
#define KEELSON_CHIEF_COORDINATION_MEMBER_IDS_TESTING_H_

#include <cstdint>

#include "core/cluster/membership_id.h"

namespace keelson {

// Each incarnation has a secret of its own, which is not 0.
inline MembershipId TestId(uint64_t incarnation) { return {incarnation, incarnation + 0x5ec2e7}; }

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MEMBER_IDS_TESTING_H_
