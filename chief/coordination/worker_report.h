// A worker's report of its work.
#ifndef KEELSON_CHIEF_COORDINATION_WORKER_REPORT_H_
#define KEELSON_CHIEF_COORDINATION_WORKER_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "keelson/v1/figures.pb.h"

namespace keelson {

// See WorkerProgress in chief_service.proto.
struct WorkerReport {
  struct LeaseProgress {
    uint64_t lease_id = 0;
    int64_t completed = 0;
  };
  struct StepLoss {
    int64_t step = 0;
    double loss = 0;
  };
  struct RefusedPush {
    uint64_t lease_id = 0;
    int64_t step = 0;
    uint32_t attempt = 0;
  };
  struct LoggedValue {
    std::string name;
    int64_t step = 0;
    double value = 0;
  };
  std::vector<LeaseProgress> leases;
  std::vector<StepLoss> losses;  // of each of the steps
  v1::WorkerFigures figures = {};
  std::vector<RefusedPush> refused = {};
  std::vector<LoggedValue> logged = {};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORKER_REPORT_H_
