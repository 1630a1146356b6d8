#include "programs/trainer.h"

namespace keelson {

Trainer TrainerOn(DeviceGroup* devices, const WorkerFlags& flags) {
  return
      [devices, flags](const RoleContext& context, const TrainingPlace& place, StopSignal* stop) {
        return RunWorkerRole(context, flags, devices, place.chief,
                             GrpcParameterClients(context, flags, place.own_shard), stop);
      };
}

}  // namespace keelson
