// The leader's right to write to the model directory, and to go on with the model that is there.
#ifndef KEELSON_CHIEF_LIFECYCLE_MODEL_OWNER_H_
#define KEELSON_CHIEF_LIFECYCLE_MODEL_OWNER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/directory_owner.h"
#include "core/startup/role_program.h"

namespace keelson {

struct OwnershipOptions {
  absl::Duration lease = absl::Seconds(20);
  // A model that was trained with another configuration is trained on with this one.
  bool accept_new_config = false;
};

// Takes the model directory of the context's configuration, which the job file tells of only after
// NoteConfigInUse. A directory without snapshots is taken whatever was configured before; so is one
// where only the length of the training differs (train.max_steps, train.epochs). Errors of
// DirectoryOwner::Take, which has the meaning of the pointers, and of RequireModelDir.
// FAILED_PRECONDITION: a model of another configuration; the settings that differ.
absl::StatusOr<std::unique_ptr<DirectoryOwner>> TakeModelDirectory(const RoleContext& context,
                                                                   const OwnershipOptions& options,
                                                                   FileSystem* file_system,
                                                                   const Clock* clock,
                                                                   StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_MODEL_OWNER_H_
