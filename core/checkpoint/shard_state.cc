#include "core/checkpoint/shard_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using Applied = v1::ShardState::Applied;

absl::Status CheckRuns(const v1::ShardState& state, const std::string& where) {
  const auto num_blocks = static_cast<uint32_t>(state.blocks_size());
  for (const Applied& applied : state.applied()) {
    uint32_t end = 0;
    for (const Applied::Run& run : applied.runs()) {
      if (run.begin() < end || run.end() <= run.begin() || run.end() > num_blocks) {
        return absl::DataLossError(absl::StrCat(where, ": applied to blocks ", run.begin(), " to ",
                                                run.end(), ", expected from ", end, " to at most ",
                                                num_blocks));
      }
      end = run.end();
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShardStateName(size_t shard, size_t num_shards) {
  return absl::StrCat(kShardStatePrefix, shard, "-of-", num_shards);
}

absl::Status CheckFormat(absl::string_view where, uint32_t known, uint32_t found) {
  if (found <= known) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(where, ": expected at most format ", known,
                                                    ", found ", found,
                                                    ": a newer version of Keelson has written it"));
}

absl::StatusOr<v1::ShardState> ParseShardState(const std::string& bytes, const std::string& prefix,
                                               const std::string& name) {
  const std::string where = absl::StrCat(prefix, ": ", name);
  v1::ShardState state;
  if (!state.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(where, ": not a ShardState"));
  }
  RETURN_IF_ERROR(CheckFormat(where, kShardStateFormat, state.format()));
  RETURN_IF_ERROR(CheckRuns(state, where));
  return state;
}

std::vector<v1::ShardState::WorkerSequence> AppliedBy(const v1::ShardState& state, int block) {
  const auto& listed = state.blocks(block).applied();
  std::vector<v1::ShardState::WorkerSequence> pushes(listed.begin(), listed.end());
  const auto unit = static_cast<uint32_t>(block);
  for (const Applied& applied : state.applied()) {
    const auto run =
        std::partition_point(applied.runs().begin(), applied.runs().end(),
                             [unit](const Applied::Run& run) { return run.end() <= unit; });
    if (run == applied.runs().end() || unit < run->begin()) continue;
    pushes.emplace_back().set_incarnation(applied.incarnation());
    pushes.back().set_sequence(run->sequence());
  }
  return pushes;
}

absl::StatusOr<std::string> SerializeState(const google::protobuf::MessageLite& message,
                                           absl::string_view name, size_t most_bytes) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > most_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": expected at most ", most_bytes, " bytes, found ", bytes));
  }
  return message.SerializeAsString();
}

}  // namespace keelson
