// Maps a program's final status to its exit code, by which the operator decides on a restart.
#ifndef KEELSON_CORE_BASE_EXIT_CODE_H_
#define KEELSON_CORE_BASE_EXIT_CODE_H_

#include "absl/status/status.h"

namespace keelson {

inline constexpr int kExitDone = 0;
// A bug or an unforeseen condition.
inline constexpr int kExitInternal = 1;
// Bad configuration or data: a restart would not help.
inline constexpr int kExitPermanent = 2;
// A peer or the machine was away: restart me.
inline constexpr int kExitTransient = 138;
// Stopped by SIGTERM or SIGINT before the work was done: not a success, restart me.
inline constexpr int kExitStopped = 143;

// OK -> 0. CANCELLED (asked to stop) -> 143. INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND,
// ALREADY_EXISTS, PERMISSION_DENIED, OUT_OF_RANGE, DATA_LOSS, UNIMPLEMENTED -> 2.
// UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED, RESOURCE_EXHAUSTED -> 138. Others -> 1.
int ExitCodeFor(const absl::Status& status);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_EXIT_CODE_H_
