// A process for each measurement, so that none finds what another has left of its memory.
#ifndef KEELSON_BENCH_TABLE_CHILD_H_
#define KEELSON_BENCH_TABLE_CHILD_H_

#include <functional>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Forks, calls `measure` in the child, and returns what it returned. The caller has no other
// threads. INTERNAL: the child ended without an answer, for one killed for its memory; or the
// system's refusal to start it.
absl::StatusOr<nlohmann::json> RunInChild(const std::function<nlohmann::json()>& measure);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_CHILD_H_
