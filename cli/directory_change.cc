#include "cli/directory_change.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "core/base/boot_id.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/host_name.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/job_file.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<DirectoryOwner>> OwnForChange(const std::string& model_dir,
                                                             absl::string_view tool,
                                                             StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::optional<StoredJobFile> found,
                   ReadJobFile(FileSystem::Real(), model_dir));
  if (!found.has_value()) return nullptr;
  DirectoryOwner::Options options;
  options.model_dir = model_dir;
  options.self = found->job;
  options.self.set_owner(RandomId());
  options.self.set_task(std::string(tool));
  options.self.set_host(HostName());
  options.self.set_pid(getpid());
  options.self.set_boot_id(BootId());
  return DirectoryOwner::Take(std::move(options), FileSystem::Real(), Clock::Real(), stop);
}

}  // namespace keelson
