// Keeps a tool that changes a model directory and a job that trains there apart.
#ifndef KEELSON_CLI_DIRECTORY_CHANGE_H_
#define KEELSON_CLI_DIRECTORY_CHANGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/directory_owner.h"

namespace keelson {

// Takes the model directory for as long as the result lives; null where no job has been, so that
// there is nobody to be kept away. What was trained there stays as it is described. `tool`: for
// those who find the directory taken. ALREADY_EXISTS: a job has it, and who. Otherwise errors of
// ReadJobFile and DirectoryOwner::Take. `stop` outlives the result.
absl::StatusOr<std::unique_ptr<DirectoryOwner>> OwnForChange(const std::string& model_dir,
                                                             absl::string_view tool,
                                                             StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_CLI_DIRECTORY_CHANGE_H_
