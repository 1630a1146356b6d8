// The content of a snapshot beside tensors: the state of the job and its servers.
#ifndef KEELSON_CORE_TENSOR_FILES_KEELSON_STATE_H_
#define KEELSON_CORE_TENSOR_FILES_KEELSON_STATE_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/bundle_reader.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

inline constexpr absl::string_view kJobStateTensor = "_keelson/job";

struct KeelsonState {
  // Nothing: the bundle was imported, or TensorFlow wrote it.
  std::optional<v1::JobState> job;
  // By the tensor's name, "_keelson/shard-0-of-2".
  std::map<std::string, v1::ShardState> shards;
};

// DATA_LOSS, naming the tensor: it is not such a message. Otherwise as BundleReader::ReadString and
// ParseShardState.
absl::StatusOr<KeelsonState> ReadKeelsonState(const BundleReader& bundle);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_KEELSON_STATE_H_
