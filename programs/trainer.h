// What trains in a process that may hold a shard and lead the job beside it: a device, or a script.
#ifndef KEELSON_PROGRAMS_TRAINER_H_
#define KEELSON_PROGRAMS_TRAINER_H_

#include <functional>

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/chief_service.h"
#include "core/device/device_group.h"
#include "core/startup/role_program.h"
#include "worker/worker_role.h"

namespace keelson {

// What a trainer works with; all of it outlives the work.
struct TrainingPlace {
  ChiefService* chief = nullptr;
  // Serves the shard whose home this process is; null: it is none's.
  BulkHandler* own_shard = nullptr;
  // What an end of the work by the stop signal means, such as that the job is over or has failed;
  // null: what it says.
  std::function<absl::Status(const absl::Status& work)> explain;
};

// Works for the chief until training is over, or `stop` is raised: then CANCELLED.
using Trainer = std::function<absl::Status(const RoleContext& context, const TrainingPlace& place,
                                           StopSignal* stop)>;

// Trains on `devices`, which outlive the trainer; errors of RunWorkerRole.
Trainer TrainerOn(DeviceGroup* devices, const WorkerFlags& flags);

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_TRAINER_H_
