#include "bench/message_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/status_macros.h"
#include "core/client/grpc_parameter_client.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(30);

uint64_t ToTag(size_t shard, size_t message) {
  return static_cast<uint64_t>(shard) << 32 | static_cast<uint64_t>(message);
}

}  // namespace

MessageClient::MessageClient(std::unique_ptr<MessageSource> source,
                             std::unique_ptr<BulkTransport> transport, int in_flight)
    : source_(std::move(source)), in_flight_(in_flight), transport_(std::move(transport)) {
  for (size_t s = 0; s < transport_->num_shards(); ++s) {
    shards_.emplace_back().started.resize(source_->num_messages(s));
  }
}

absl::StatusOr<ClientReport> MessageClient::Run(const Window& window) {
  Meter meter(window);
  do {
    StartCalls();
    ASSIGN_OR_RETURN(const Meter::Operation operation, FinishOne());
    meter.Count(operation);
  } while (!meter.over());
  while (under_way_ > 0) RETURN_IF_ERROR(FinishOne().status());
  return meter.Report();
}

void MessageClient::StartCalls() {
  for (size_t s = 0; s < shards_.size(); ++s) {
    Shard& shard = shards_[s];
    // A server with few messages has them all under way.
    while (shard.in_flight < in_flight_ && shard.started[shard.next] == 0) {
      StartNext(s);
    }
  }
}

void MessageClient::StartNext(size_t index) {
  Shard& shard = shards_[index];
  const size_t message = shard.next;
  shard.next = (message + 1) % shard.started.size();
  shard.started[message] = MonotonicSeconds();
  ++shard.in_flight;
  ++under_way_;
  transport_->Start(index, source_->method(), source_->Request(index, message), kCallTimeout,
                    ToTag(index, message));
}

absl::StatusOr<Meter::Operation> MessageClient::FinishOne() {
  std::optional<BulkCompletion> completion = transport_->Next(kCallTimeout);
  if (!completion.has_value()) return absl::DeadlineExceededError("no answer to a bulk call");
  const size_t index = completion->tag >> 32;
  const size_t message = completion->tag & 0xffffffff;
  Shard& shard = shards_[index];
  --shard.in_flight;
  --under_way_;
  Meter::Operation operation;
  operation.started = std::exchange(shard.started[message], 0);
  RETURN_IF_ERROR(completion->status);
  ASSIGN_OR_RETURN(const size_t pulled_bytes, source_->Take(index, message, completion->response));
  operation.ended = MonotonicSeconds();
  operation.pushed_bytes = static_cast<int64_t>(source_->pushed_bytes(index, message));
  operation.pulled_bytes = static_cast<int64_t>(pulled_bytes);
  return operation;
}

std::unique_ptr<LoadClient> MakeMessageClient(const LoadPlan& plan) {
  std::unique_ptr<MessageSource> source;
  if (plan.scenario.workload == Workload::kKeyValues) {
    source = MakeKeyValueSource(plan);
  } else if (plan.scenario.direction == Direction::kPull) {
    source = MakePullSource(plan);
  } else {
    source = MakePushSource(plan);
  }
  return std::make_unique<MessageClient>(
      std::move(source),
      ConnectBulkTransport(ServersAt(plan.addresses), CredentialsAs("worker"),
                           plan.scenario.in_flight),
      plan.scenario.in_flight);
}

}  // namespace keelson::bench
