// The configuration from a file and the flags that override single fields of it.
#ifndef KEELSON_CORE_CONFIG_CONFIG_FLAGS_H_
#define KEELSON_CORE_CONFIG_CONFIG_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Values of the flags with these names; absent ones change nothing. Each main defines the flags
// and fills this in.
struct ConfigOverrides {
  std::optional<int64_t> batch_size;      // train.batch_size
  std::optional<int64_t> training_steps;  // train.max_steps, in place of train.epochs
  std::optional<int64_t> epochs;          // train.epochs, in place of train.max_steps
  std::optional<double> learning_rate;    // learning_rate.base
  std::optional<std::string> model_dir;   // checkpoint.model_dir
  std::optional<std::string> data_dir;    // data.data_dir
  std::optional<uint64_t> seed;           // train.seed
  std::optional<std::string> wire;        // transfer.groups: one for all variables, see WireNames
  std::optional<int64_t> pipeline_depth;  // transfer.depth
};

// The values of --wire, in lower case: the formats of gradients. Values are sent in the same one,
// or in bfloat16 if it is for gradients only (int8, top_k).
std::vector<std::string> WireNames();

// INVALID_ARGUMENT: `wire` is none of WireNames; `training_steps` or `epochs` is below 1, or both
// are there.
absl::Status ApplyOverrides(const ConfigOverrides& overrides, v1::TrainConfig* config);

// The same where a script says all but the model directory. INVALID_ARGUMENT: another one is there.
absl::Status ApplyToScriptConfig(const ConfigOverrides& overrides, v1::TrainConfig* config);

// The job's configuration: the file (empty path: the compiled-in default), then the overrides,
// then FinalizeTrainConfig. Errors of LoadTrainConfig, ApplyOverrides and FinalizeTrainConfig.
absl::StatusOr<v1::TrainConfig> ResolveTrainConfig(const std::string& config_path,
                                                   const ConfigOverrides& overrides);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_CONFIG_FLAGS_H_
