// What must be true of each job state that a chief persists at its servers.
#ifndef KEELSON_TESTS_SEARCH_JOB_STATE_RULE_H_
#define KEELSON_TESTS_SEARCH_JOB_STATE_RULE_H_

#include <cstddef>
#include <string>

#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// No record is in it twice, be it leased, returned or unfinished. It does not grow with the
// memberships that are over: each task has one at most, and leases are of these or of memberships
// that ended, of which there are `lost` at most. Returns what is wrong; empty: nothing.
std::string CheckJobState(const v1::PersistedJobState& state, size_t tasks, size_t lost);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_JOB_STATE_RULE_H_
