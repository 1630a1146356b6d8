// Checks of the configuration of data that need no data.
#ifndef KEELSON_CORE_CONFIG_DATA_CHECKS_H_
#define KEELSON_CORE_CONFIG_DATA_CHECKS_H_

#include "absl/status/status.h"
#include "core/model/spec/model_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// `data` is complete. INVALID_ARGUMENT: the text begins with the field's path,
// "data.csv.separator: expected …, found …".
absl::Status CheckDataConfig(const v1::DataConfig& data, const ModelSpec& model);
// The same of the records of an external model.
absl::Status CheckExternalData(const v1::DataConfig& data);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_DATA_CHECKS_H_
