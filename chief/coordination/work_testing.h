// What the tests of ledger, rounds and bounds share: members that hold work, and how a ticket
// prints.
#ifndef KEELSON_CHIEF_COORDINATION_WORK_TESTING_H_
#define KEELSON_CHIEF_COORDINATION_WORK_TESTING_H_

#include <cstdint>
#include <ostream>

#include "chief/coordination/work_pool.h"

namespace keelson {

inline constexpr uint64_t kAlice = 0xa11ce, kBob = 0xb0b, kCarol = 0xca201;

inline void PrintTo(const WorkTicket& t, std::ostream* out) {
  *out << "step " << t.step << " epoch " << t.epoch << " [" << t.begin << ", " << t.end << ")";
}

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORK_TESTING_H_
