// A table of what a configuration's variables start from.
#ifndef KEELSON_CLI_INITIAL_VALUES_TEXT_H_
#define KEELSON_CLI_INITIAL_VALUES_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/model/spec/model_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// A row for each variable and each table: its name, its shape, and the distribution or the file and
// the tensor that its values come from. Where the files are here, it says what was found in them,
// with the report of WarmStart below; otherwise where a job would look, with the error below.
// INVALID_ARGUMENT: the configuration makes no sense (WithInitialValues).
absl::StatusOr<std::string> InitialValuesTable(const v1::TrainConfig& config,
                                               const ModelSpec& model);

}  // namespace keelson

#endif  // KEELSON_CLI_INITIAL_VALUES_TEXT_H_
