#include "core/config/config_flags.h"

#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

absl::StatusOr<v1::TrainConfig> LoadOrDefault(const std::string& path) {
  if (!path.empty()) return LoadTrainConfig(path);
  return ParseTrainConfig(DefaultTrainConfigText(), "default configuration");
}

}  // namespace

void ApplyOverrides(const ConfigOverrides& overrides, v1::TrainConfig* config) {
  if (overrides.batch_size) config->mutable_train()->set_batch_size(*overrides.batch_size);
  if (overrides.training_steps) {
    config->mutable_train()->set_max_steps(*overrides.training_steps);
    config->mutable_train()->clear_epochs();
  }
  if (overrides.learning_rate) {
    config->mutable_learning_rate()->set_base(static_cast<float>(*overrides.learning_rate));
  }
  if (overrides.model_dir) config->mutable_checkpoint()->set_model_dir(*overrides.model_dir);
  if (overrides.data_dir) config->mutable_data()->set_data_dir(*overrides.data_dir);
  if (overrides.seed) config->mutable_train()->set_seed(*overrides.seed);
}

absl::StatusOr<v1::TrainConfig> ResolveTrainConfig(const std::string& config_path,
                                                   const ConfigOverrides& overrides) {
  ASSIGN_OR_RETURN(v1::TrainConfig config, LoadOrDefault(config_path));
  ApplyOverrides(overrides, &config);
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  return config;
}

}  // namespace keelson
