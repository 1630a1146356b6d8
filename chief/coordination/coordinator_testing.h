// What the coordinator's tests share.
#ifndef KEELSON_CHIEF_COORDINATION_COORDINATOR_TESTING_H_
#define KEELSON_CHIEF_COORDINATION_COORDINATOR_TESTING_H_

#include <cstdint>

#include "absl/time/time.h"
#include "chief/coordination/worker_report.h"
#include "core/cluster/task.h"

namespace keelson {

inline constexpr Task kWorker0 = {Role::kWorker, 0};
inline constexpr Task kWorker1 = {Role::kWorker, 1};
inline constexpr uint64_t kHash = 0xabc;
inline constexpr absl::Duration kLease = absl::Seconds(10);
inline constexpr absl::Duration kNoWait = absl::ZeroDuration();
// The tests move a manual clock, which stands: a wait that must end for another reason.
inline constexpr absl::Duration kLong = absl::Hours(1);

inline WorkerReport Completed(uint64_t lease_id, int64_t completed, int64_t steps = 0) {
  WorkerReport report;
  report.leases = {{lease_id, completed}};
  report.figures.set_steps(steps);
  return report;
}

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_TESTING_H_
