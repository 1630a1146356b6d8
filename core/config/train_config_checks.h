#ifndef KEELSON_CORE_CONFIG_TRAIN_CONFIG_CHECKS_H_
#define KEELSON_CORE_CONFIG_TRAIN_CONFIG_CHECKS_H_

#include "absl/status/status.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Checks a config whose defaults are set. INVALID_ARGUMENT: the first field that is missing, out of
// range, or does not fit the others; the text begins with its path.
absl::Status CheckTrainConfig(const v1::TrainConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_TRAIN_CONFIG_CHECKS_H_
