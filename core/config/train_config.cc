#include "core/config/train_config.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/field_checks.h"
#include "core/config/placement_checks.h"
#include "core/config/shard_layout.h"
#include "core/config/train_config_checks.h"
#include "core/config/train_config_defaults.h"

namespace keelson {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

absl::Status TextError(absl::string_view source, int line, int column, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(source, ":", line, ":", column, ": ", message));
}

absl::Status NoModelDir() {
  return absl::InvalidArgumentError(
      "checkpoint.model_dir: expected a directory that all roles share (--model_dir), found none");
}

// Keeps the first error; its line and column are counted from 0.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(absl::string_view source) : source_(source) {}

  void AddError(int line, int column, const std::string& message) override {
    if (status_.ok()) status_ = TextError(source_, line + 1, column + 1, message);
  }
  const absl::Status& status() const { return status_; }

 private:
  const std::string source_;
  absl::Status status_;
};

std::string SerializeDeterministically(const v1::TrainConfig& config) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  config.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

absl::StatusOr<v1::TrainConfig> LoadTrainConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadBoundedFile(path, kMaxConfigBytes));
  return ParseTrainConfig(text, path);
}

absl::StatusOr<v1::TrainConfig> ParseTrainConfig(absl::string_view text,
                                                 absl::string_view source_name) {
  v1::TrainConfig config;
  FirstError error(source_name);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, &config) && error.status().ok()) return config;
  return error.status();
}

absl::Status FinalizeTrainConfig(v1::TrainConfig* config) {
  SetTrainConfigDefaults(config);
  return CheckTrainConfig(*config);
}

absl::Status RequireModelDir(const v1::TrainConfig& config) {
  return config.checkpoint().model_dir().empty() ? NoModelDir() : absl::OkStatus();
}

v1::TrainConfig WithoutDirectories(v1::TrainConfig config) {
  config.mutable_data()->clear_data_dir();
  config.mutable_checkpoint()->clear_model_dir();
  return config;
}

uint64_t ConfigHash(const v1::TrainConfig& config) {
  v1::TrainConfig hashed = WithoutDirectories(config);
  v1::ConsistencyMode* const mode = hashed.mutable_consistency()->mutable_mode();
  if (mode->mode_case() == v1::ConsistencyMode::MODE_NOT_SET) mode->mutable_async();
  return StableHash(SerializeDeterministically(hashed));
}

bool WantsReplicas(const v1::TrainConfig& config, const ClusterSpec& cluster) {
  const size_t hosts = ShardLayout(config, cluster).hosts().size();
  switch (config.collective().replicas()) {
    case v1::CollectiveConfig::NEVER:
      return false;
    case v1::CollectiveConfig::ALWAYS:
      return hosts > 1;
    default:
      return hosts > 2;
  }
}

v1::TrainConfig WithModeOf(v1::TrainConfig config, const ClusterSpec& cluster) {
  v1::ConsistencyMode* const mode = config.mutable_consistency()->mutable_mode();
  if (mode->mode_case() != v1::ConsistencyMode::MODE_NOT_SET) return config;
  const auto trainers = static_cast<int64_t>(cluster.ShardHosts().size());
  if (trainers == 0 || config.data().has_stream()) {
    mode->mutable_async();
  } else {
    mode->mutable_synchronous()->set_replicas_to_aggregate(trainers);
    mode->mutable_synchronous()->set_total_replicas(trainers);
  }
  return config;
}

absl::Status CheckFitsCluster(const v1::TrainConfig& config, const ClusterSpec& cluster) {
  const int min_workers = config.collective().min_workers();
  if (!cluster.distributed && min_workers > 1) {
    return FieldError("collective.min_workers", "at most 1 in a job of one process", min_workers);
  }
  const v1::TrainConfig with_mode = WithModeOf(config, cluster);
  if (config.consistency().deterministic_sum() &&
      !with_mode.consistency().mode().has_synchronous()) {
    return FieldError("consistency.deterministic_sum",
                      "false, as this cluster's mode is async where consistency.mode says none",
                      "true");
  }
  if (!cluster.collective()) return CheckPlacementFits(config.placement(), cluster);
  const auto& tables = config.model().tables();
  if (tables.empty()) return CheckPlacementFits(config.placement(), cluster);
  return FieldError(
      "model.tables",
      "none in a cluster without parameter servers (TF_CONFIG cluster.ps or --ps_hosts)",
      absl::StrCat(tables.size(), ", the first \"", tables[0].name(), "\""));
}

std::string HashToString(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }

absl::Status ConfigMismatch(uint64_t ours, uint64_t theirs, absl::string_view who) {
  return absl::FailedPreconditionError(absl::StrCat(
      "configuration of ", who, ": expected the hash ", HashToString(ours), ", found ",
      HashToString(theirs), "; start all tasks of a job with the same --config and flags"));
}

}  // namespace keelson
