// The configuration of the job that a snapshot is of.
#ifndef KEELSON_CLI_SNAPSHOT_CONFIG_H_
#define KEELSON_CLI_SNAPSHOT_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Reads and completes the configuration at `path`; where that is empty, the one that the job has
// left beside its snapshots, "train_config.textproto". Errors of LoadTrainConfig and
// FinalizeTrainConfig.
absl::StatusOr<v1::TrainConfig> ReadConfigOf(const std::string& snapshot, const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CLI_SNAPSHOT_CONFIG_H_
