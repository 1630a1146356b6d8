// The state of the job as it is shown: to members, in the chief's files, metrics and log.
#ifndef KEELSON_CHIEF_COORDINATION_COORDINATOR_STATUS_H_
#define KEELSON_CHIEF_COORDINATION_COORDINATOR_STATUS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chief/coordination/membership.h"
#include "core/cluster/consistency.h"
#include "core/cluster/task.h"
#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// See JobPhase in chief_service.proto.
enum class JobPhase { kWaitingForServers, kTraining, kFinishing, kEvaluating, kDone, kFailed };

// See JobReports::GetStatus.
struct CoordinatorStatus {
  JobPhase phase = JobPhase::kWaitingForServers;
  std::string error;
  // Training is over: no step is under way, and none is to come.
  bool trained = false;
  // Why training ends early; empty: it does not.
  std::string end_reason;
  // So many more tasks have to train before a step is begun (CollectiveConfig.min_workers).
  int missing_workers = 0;
  int64_t step = 0;
  int64_t max_steps = 0;  // 0: a stream, which ends by itself
  double epoch = 0;
  // How far a stream is (StreamStatus in chief_service.proto); nullopt: the data is none.
  std::optional<v1::StreamStatus> stream;
  int64_t snapshot_step = 0;
  // Sums since the start of this process, in all and of each worker.
  v1::WorkerFigures totals;
  // The mean loss of the newest steps; 0: none yet. See DivergenceWatch.
  double recent_loss = 0;
  double first_loss = 0;
  bool diverging = false;
  std::string diverged;  // why the job cannot succeed; empty: it can
  std::map<Task, v1::WorkerFigures> workers;
  // The newest means of what scripts log.
  std::map<std::string, double> logged;
  // The mode in force, and the next one, which waits until the steps under way are done.
  ConsistencyMode mode = {};
  std::optional<ConsistencyMode> next_mode;
  // These figures are the job's in its newest reporting interval.
  v1::TrainingFigures newest;
  std::vector<Member> members;  // without their secrets
  int64_t evaluated_step = -1;
  std::map<std::string, double> evaluation;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_STATUS_H_
