#include "core/tensor_files/keelson_state.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/shard_state.h"

namespace keelson {
namespace {

template <typename Message>
absl::StatusOr<Message> ReadMessage(const BundleReader& bundle, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(name));
  Message message;
  if (!message.ParseFromString(bytes)) {
    return absl::DataLossError(
        absl::StrCat(bundle.prefix(), ": ", name, ": not a ", message.GetDescriptor()->name()));
  }
  return message;
}

}  // namespace

absl::StatusOr<KeelsonState> ReadKeelsonState(const BundleReader& bundle) {
  KeelsonState state;
  for (const TensorInfo& tensor : bundle.List()) {
    if (tensor.name == kJobStateTensor) {
      ASSIGN_OR_RETURN(state.job, ReadMessage<v1::JobState>(bundle, tensor.name));
    } else if (absl::StartsWith(tensor.name, kShardStatePrefix)) {
      ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(tensor.name));
      ASSIGN_OR_RETURN(state.shards[tensor.name],
                       ParseShardState(bytes, bundle.prefix(), tensor.name));
    }
  }
  return state;
}

}  // namespace keelson
