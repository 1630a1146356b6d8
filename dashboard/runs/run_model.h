// The model of a run and its configuration, read from train_config.textproto.
#ifndef KEELSON_DASHBOARD_RUNS_RUN_MODEL_H_
#define KEELSON_DASHBOARD_RUNS_RUN_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/model_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct RunModel {
  v1::TrainConfig config;
  std::string text;  // of the file
  // A script's model has its name and variables alone.
  ModelSpec spec;
  // Class names; empty for a regression.
  std::vector<std::string> classes;

  // What a script computes: its variables are known, and nothing else.
  bool external() const { return config.model().has_external(); }
  // "classification", "binary", "regression" or "retrieval"; not of a script's model.
  const char* kind() const;
  int64_t num_parameters() const;
  // The metrics by which the job itself judges: early stopping's, then that of the best exports.
  std::vector<std::string> judged_metrics() const;
};

// `source_name` stands for the file in messages. INVALID_ARGUMENT: as ParseTrainConfig and
// InferVariables. Only the parts that concern the model are checked: an older or newer program may
// have written the rest.
absl::StatusOr<RunModel> ParseRunModel(const std::string& text, const std::string& source_name);

// MODEL_DIR/train_config.textproto
std::string RunConfigPath(const std::string& model_dir);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_RUN_MODEL_H_
