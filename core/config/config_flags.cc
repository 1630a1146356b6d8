#include "core/config/config_flags.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

absl::StatusOr<v1::TrainConfig> LoadOrDefault(const std::string& path) {
  if (!path.empty()) return LoadTrainConfig(path);
  return ParseTrainConfig(DefaultTrainConfigText(), "default configuration");
}

absl::Status UnknownWire(const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat("--wire: expected one of ",
                                                 absl::StrJoin(WireNames(), ", "), ", found ",
                                                 found.empty() ? "\"\"" : found));
}

absl::Status SetWire(const std::string& name, v1::TransferConfig* transfer) {
  v1::WireFormat push = v1::FLOAT32;
  if (absl::AsciiStrToLower(name) != name ||
      !v1::WireFormat_Parse(absl::AsciiStrToUpper(name), &push)) {
    return UnknownWire(name);
  }
  const bool gradients_only = push == v1::INT8 || push == v1::TOP_K;
  transfer->clear_groups();
  v1::TransferConfig::Group* group = transfer->add_groups();
  group->set_variables("*");
  group->set_push(push);
  group->set_pull(gradients_only ? v1::BFLOAT16 : push);
  return absl::OkStatus();
}

absl::Status CheckAtLeastOne(absl::string_view flag, const std::optional<int64_t>& value) {
  if (!value.has_value() || *value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": expected at least 1, found ", *value));
}

}  // namespace

std::vector<std::string> WireNames() {
  std::vector<std::string> names;
  const auto* formats = v1::WireFormat_descriptor();
  for (int i = 0; i < formats->value_count(); ++i) {
    names.push_back(absl::AsciiStrToLower(formats->value(i)->name()));
  }
  return names;
}

absl::Status ApplyOverrides(const ConfigOverrides& overrides, v1::TrainConfig* config) {
  RETURN_IF_ERROR(CheckAtLeastOne("--training_steps", overrides.training_steps));
  RETURN_IF_ERROR(CheckAtLeastOne("--epochs", overrides.epochs));
  if (overrides.training_steps && overrides.epochs) {
    return absl::InvalidArgumentError(
        absl::StrCat("--epochs: expected none beside --training_steps, found ", *overrides.epochs));
  }
  if (overrides.batch_size) config->mutable_train()->set_batch_size(*overrides.batch_size);
  if (overrides.training_steps) {
    config->mutable_train()->set_max_steps(*overrides.training_steps);
    config->mutable_train()->clear_epochs();
  }
  if (overrides.epochs) {
    config->mutable_train()->set_epochs(*overrides.epochs);
    config->mutable_train()->clear_max_steps();
  }
  if (overrides.learning_rate) {
    config->mutable_learning_rate()->set_base(static_cast<float>(*overrides.learning_rate));
  }
  if (overrides.model_dir) config->mutable_checkpoint()->set_model_dir(*overrides.model_dir);
  if (overrides.data_dir) config->mutable_data()->set_data_dir(*overrides.data_dir);
  if (overrides.seed) config->mutable_train()->set_seed(*overrides.seed);
  if (overrides.pipeline_depth) config->mutable_transfer()->set_depth(*overrides.pipeline_depth);
  if (overrides.wire) return SetWire(*overrides.wire, config->mutable_transfer());
  return absl::OkStatus();
}

absl::Status ApplyToScriptConfig(const ConfigOverrides& overrides, v1::TrainConfig* config) {
  const std::pair<absl::string_view, bool> others[] = {
      {"--batch_size", overrides.batch_size.has_value()},
      {"--training_steps", overrides.training_steps.has_value()},
      {"--epochs", overrides.epochs.has_value()},
      {"--learning_rate", overrides.learning_rate.has_value()},
      {"--data_dir", overrides.data_dir.has_value()},
      {"--seed", overrides.seed.has_value()},
      {"--wire", overrides.wire.has_value()},
      {"--pipeline_depth", overrides.pipeline_depth.has_value()}};
  for (const auto& [flag, given] : others) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": expected none with --config=script, whose script says it"));
  }
  return ApplyOverrides(overrides, config);
}

absl::StatusOr<v1::TrainConfig> ResolveTrainConfig(const std::string& config_path,
                                                   const ConfigOverrides& overrides) {
  ASSIGN_OR_RETURN(v1::TrainConfig config, LoadOrDefault(config_path));
  RETURN_IF_ERROR(ApplyOverrides(overrides, &config));
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  return config;
}

}  // namespace keelson
