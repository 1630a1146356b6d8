// The configuration of a training job (proto/keelson/v1/train_config.proto): reading, completing,
// checking and comparing it. Every role of a job does the same.
#ifndef KEELSON_CORE_CONFIG_TRAIN_CONFIG_H_
#define KEELSON_CORE_CONFIG_TRAIN_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/cluster_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Reads a text proto, without completing or checking its values. INVALID_ARGUMENT: a syntax error
// or an unknown field, as "file:line:column: message". DATA_LOSS: the file is above 16 MiB.
// Errors of ReadFile.
absl::StatusOr<v1::TrainConfig> LoadTrainConfig(const std::string& path);
// `source_name` stands for the file in messages.
absl::StatusOr<v1::TrainConfig> ParseTrainConfig(absl::string_view text,
                                                 absl::string_view source_name);

// The text that is used when no file is given: configs/mnist_mlp.textproto, compiled in.
std::string DefaultTrainConfigText();

// Gives every absent field the default that the proto names, then checks everything that can be
// checked without data. A second call changes nothing. Two defaults are not set: what depends on
// the data, learning_rate.cosine.decay_steps (0: the rest of max_steps), and on the cluster,
// consistency.mode (WithModeOf). INVALID_ARGUMENT: the text
// begins with the field's path, "train.batch_size: expected > 0, found -3".
absl::Status FinalizeTrainConfig(v1::TrainConfig* config);

// Call for a role that writes to or reads from the model directory.
// INVALID_ARGUMENT: checkpoint.model_dir is empty.
absl::Status RequireModelDir(const v1::TrainConfig& config);

// The config without data.data_dir and checkpoint.model_dir, which may differ between machines.
v1::TrainConfig WithoutDirectories(v1::TrainConfig config);

// A hash of a finalized config without data.data_dir and checkpoint.model_dir, which may differ
// between machines. The same on every machine.
uint64_t ConfigHash(const v1::TrainConfig& config);

// Whether the shards that tasks hold beside training have replicas (CollectiveConfig).
bool WantsReplicas(const v1::TrainConfig& config, const ClusterSpec& cluster);

// The config with the consistency mode that the cluster decides, if it says none: async with
// servers, wherever the variables are placed, and with a stream of records; without servers
// synchronous, a step being the mean of as many batches as tasks train at first.
v1::TrainConfig WithModeOf(v1::TrainConfig config, const ClusterSpec& cluster);

// Whether a cluster of this kind can train the model of a final config. INVALID_ARGUMENT: without
// servers nobody holds tables, and no script computes the gradients; placement names servers that
// are not there or workers that are not listed; collective.min_workers in one process;
// consistency.deterministic_sum where the mode that the cluster decides is async. The text begins
// with the field's path.
absl::Status CheckFitsCluster(const v1::TrainConfig& config, const ClusterSpec& cluster);

// 16 hexadecimal digits.
std::string HashToString(uint64_t hash);

// FAILED_PRECONDITION: `who` ("worker-1") has another configuration than this task; both hashes.
absl::Status ConfigMismatch(uint64_t ours, uint64_t theirs, absl::string_view who);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_TRAIN_CONFIG_H_
