#include "core/client/sharded_parameter_client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

size_t ByteCount(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

absl::Status MalformedPull(int shard, absl::string_view what) {
  return absl::InternalError(absl::StrCat("ps-", shard, ": malformed answer to Pull: ", what));
}

// Position in `ours` of each of the placement's variables.
absl::StatusOr<std::vector<int>> MatchVariables(absl::Span<const VariableSpec> ours,
                                                absl::Span<const VariableSpec> placed) {
  std::vector<int> positions;
  for (const VariableSpec& variable : placed) {
    const auto found = std::find_if(ours.begin(), ours.end(), [&](const VariableSpec& candidate) {
      return candidate.name == variable.name && candidate.shape == variable.shape;
    });
    if (found == ours.end()) {
      return absl::InvalidArgumentError(absl::StrCat("placement: the model has no variable ",
                                                     variable.name, variable.shape.ToString()));
    }
    positions.push_back(static_cast<int>(found - ours.begin()));
  }
  if (placed.size() != ours.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement: expected ", ours.size(), " variables, found ", placed.size()));
  }
  return positions;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardedParameterClient>> ShardedParameterClient::Create(
    const Options& options, absl::Span<const VariableSpec> variables, const Placement& placement,
    std::vector<ParameterService*> shards, const Clock* clock, const StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::vector<int> positions,
                   MatchVariables(variables, placement.variables()));
  if (static_cast<int>(shards.size()) != placement.num_shards()) {
    return absl::InvalidArgumentError(absl::StrCat("placement: expected ", shards.size(),
                                                   " shards, found ", placement.num_shards()));
  }
  std::unique_ptr<ShardedParameterClient> client(
      new ShardedParameterClient(options, variables, placement, clock, stop));
  for (size_t s = 0; s < shards.size(); ++s) {
    Shard& shard = client->shards_.emplace_back();
    shard.service = shards[s];
    for (PlannedMessage& plan : PlanTransfers(placement, static_cast<int>(s))) {
      for (PlannedBlock& block : plan.blocks) {
        block.variable = positions[static_cast<size_t>(block.variable)];
      }
      Message& message = shard.messages.emplace_back();
      message.known_versions.assign(plan.blocks.size(), 0);
      message.plan = std::move(plan);
    }
  }
  return client;
}

ShardedParameterClient::ShardedParameterClient(const Options& options,
                                               absl::Span<const VariableSpec> variables,
                                               const Placement& placement, const Clock* clock,
                                               const StopSignal* stop)
    : options_(options),
      placement_fingerprint_(placement.Fingerprint()),
      clock_(clock),
      stop_(stop),
      pool_(options.threads) {
  for (const VariableSpec& variable : variables) values_.emplace_back(variable.shape);
}

absl::Status ShardedParameterClient::ForEachShard(
    absl::FunctionRef<absl::Status(int, Shard*)> work) {
  pool_.RunAll(static_cast<int>(shards_.size()), [&](int i) {
    Shard& shard = shards_[static_cast<size_t>(i)];
    shard.status = work(i, &shard);
  });
  for (const Shard& shard : shards_) RETURN_IF_ERROR(shard.status);
  return absl::OkStatus();
}

absl::Status ShardedParameterClient::Pull() {
  return ForEachShard([this](int i, Shard* shard) { return PullShard(i, shard); });
}

absl::Status ShardedParameterClient::PullShard(int index, Shard* shard) {
  for (size_t m = 0; m < shard->messages.size();) {
    ASSIGN_OR_RETURN(const bool received, PullMessage(index, shard, &shard->messages[m]));
    // The server was initialised anew: what came before is of the old store.
    m = received ? m + 1 : 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ShardedParameterClient::PullMessage(int index, Shard* shard,
                                                         Message* message) {
  v1::PullRequest request;
  FillHeader(request.mutable_header());
  request.set_placement_fingerprint(placement_fingerprint_);
  for (const v1::BlockRange& range : message->plan.ranges) *request.add_ranges() = range;
  request.mutable_known_versions()->Add(message->known_versions.begin(),
                                        message->known_versions.end());
  v1::PullResponse response;
  RETURN_IF_ERROR(
      CallWithRetries(options_.retry, absl::StrCat("pulling from ps-", index), clock_, stop_, [&] {
        response.Clear();  // of what a failed call may have left
        return shard->service->Pull(request, &response);
      }));
  if (shard->store_id != response.store_id()) {
    const bool first_contact = shard->store_id == 0;
    shard->store_id = response.store_id();
    for (Message& other : shard->messages) {
      std::fill(other.known_versions.begin(), other.known_versions.end(), 0);
    }
    if (!first_contact) return false;
  }
  if (message == &shard->messages.front()) shard->pulled_step = response.shard_step();
  RETURN_IF_ERROR(Receive(index, response, message));
  return true;
}

absl::Status ShardedParameterClient::Receive(int index, const v1::PullResponse& response,
                                             Message* message) {
  const char* from = response.payload().data();
  size_t left = response.payload().size();
  size_t position = 0;
  for (const v1::BlockHeader& header : response.blocks()) {
    const auto& planned = message->plan.blocks;
    // Headers come in the order asked for; unchanged blocks are missing.
    while (position < planned.size() && (planned[position].partition != header.partition() ||
                                         planned[position].block != header.block())) {
      ++position;
    }
    if (position == planned.size()) return MalformedPull(index, "a block that was not asked for");
    const PlannedBlock& block = planned[position];
    const size_t bytes = ByteCount(block.num_elements);
    if (bytes > left) return MalformedPull(index, "payload shorter than its blocks");
    std::memcpy(values_[static_cast<size_t>(block.variable)].data() + block.first_element, from,
                bytes);
    message->known_versions[position] = header.version();
    from += bytes;
    left -= bytes;
    ++position;
  }
  if (left != 0) return MalformedPull(index, absl::StrCat(left, " bytes beyond its blocks"));
  const auto& known = message->known_versions;
  if (std::find(known.begin(), known.end(), 0) != known.end()) {
    return MalformedPull(index, "a block that the caller does not have is missing");
  }
  return absl::OkStatus();
}

absl::StatusOr<PushResult> ShardedParameterClient::Push(int64_t step,
                                                        absl::Span<const Tensor> gradients) {
  ++sequence_;
  RETURN_IF_ERROR(
      ForEachShard([&](int i, Shard* shard) { return PushShard(i, step, gradients, shard); }));
  PushResult result;
  for (const Shard& shard : shards_) {
    result.staleness = std::max(result.staleness, shard.staleness);
    result.retries += shard.retries;
  }
  return result;
}

absl::Status ShardedParameterClient::PushShard(int index, int64_t step,
                                               absl::Span<const Tensor> gradients, Shard* shard) {
  shard->retries = 0;
  shard->staleness = 0;
  v1::PushRequest request;
  FillHeader(request.mutable_header());
  request.set_placement_fingerprint(placement_fingerprint_);
  request.set_sequence(sequence_);
  request.set_step(step);
  request.set_pulled_shard_step(shard->pulled_step);
  for (const Message& message : shard->messages) {
    request.set_last_part(&message == &shard->messages.back());
    request.clear_ranges();
    for (const v1::BlockRange& range : message.plan.ranges) *request.add_ranges() = range;
    std::string* payload = request.mutable_payload();
    payload->clear();
    payload->reserve(ByteCount(message.plan.num_elements));
    for (const PlannedBlock& block : message.plan.blocks) {
      const float* from = gradients[static_cast<size_t>(block.variable)].data();
      payload->append(reinterpret_cast<const char*>(from + block.first_element),
                      ByteCount(block.num_elements));
    }
    v1::PushResponse response;
    int64_t calls = 0;
    RETURN_IF_ERROR(
        CallWithRetries(options_.retry, absl::StrCat("pushing to ps-", index), clock_, stop_, [&] {
          ++calls;
          return shard->service->Push(request, &response);
        }));
    shard->retries += calls - 1;
    shard->staleness = std::max(shard->staleness, response.staleness());
  }
  return absl::OkStatus();
}

void ShardedParameterClient::FillHeader(v1::RequestHeader* header) const {
  *header->mutable_task() = TaskToProto(options_.self);
  header->set_incarnation(options_.incarnation);
}

}  // namespace keelson
