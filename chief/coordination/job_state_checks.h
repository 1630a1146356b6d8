// Checks of the two forms in which the ledger outlives a chief, before anything is read from them.
#ifndef KEELSON_CHIEF_COORDINATION_JOB_STATE_CHECKS_H_
#define KEELSON_CHIEF_COORDINATION_JOB_STATE_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "chief/coordination/work_pool.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// DATA_LOSS: a field contradicts another one; the text starts with "_keelson/job" and the field.
absl::Status CheckJobState(const v1::JobState& state);

// The same for options, cursor and tickets of what a predecessor persisted; the text starts with
// "persisted job state" and the field. The job state in it is left to CheckJobState.
absl::Status CheckPersistedState(const v1::PersistedJobState& persisted,
                                 const WorkOptions& options);

// DATA_LOSS: "persisted job state: `field`: expected `expected`, found `found`".
absl::Status PersistedStateError(absl::string_view field, absl::string_view expected,
                                 int64_t found);

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_JOB_STATE_CHECKS_H_
