#include "cli/snapshot_config.h"

#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {

absl::StatusOr<v1::TrainConfig> ReadConfigOf(const std::string& snapshot, const std::string& path) {
  const std::string beside = JoinPath(DirectoryOf(snapshot), "train_config.textproto");
  ASSIGN_OR_RETURN(v1::TrainConfig config, LoadTrainConfig(path.empty() ? beside : path));
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  return config;
}

}  // namespace keelson
