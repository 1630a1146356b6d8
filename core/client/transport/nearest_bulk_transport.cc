#include "core/client/transport/nearest_bulk_transport.h"

#include <utility>

namespace keelson {

NearestBulkTransport::NearestBulkTransport(std::vector<BulkServer> servers,
                                           std::unique_ptr<MemoryBulkTransport> memory,
                                           Connect connect)
    : servers_(std::move(servers)),
      connect_(std::move(connect)),
      memory_(std::move(memory)),
      current_(memory_.get()) {}

void NearestBulkTransport::Start(size_t shard, BulkMethod method, ByteRope request,
                                 absl::Duration timeout, uint64_t tag) {
  if (other_ == nullptr) ++through_memory_;
  current_.load()->Start(shard, method, std::move(request), timeout, tag);
}

std::optional<BulkCompletion> NearestBulkTransport::Next(absl::Duration timeout) {
  // Memory that was left has ended all of its calls.
  if (through_memory_ == 0 && other_ != nullptr) return other_->Next(timeout);
  std::optional<BulkCompletion> completion = memory_->Next(timeout);
  if (completion.has_value()) --through_memory_;
  return completion;
}

void NearestBulkTransport::Redirect(size_t shard, const BulkServer& server) {
  servers_[shard] = server;
  if (other_ != nullptr) return other_->Redirect(shard, server);
  memory_->Redirect(shard, server);
  if (!memory_->Reach(shard).ok()) LeaveMemory();
}

void NearestBulkTransport::LeaveMemory() {
  for (size_t s = 0; s < servers_.size(); ++s) memory_->Reset(s);
  other_ = connect_(servers_);
  current_ = other_.get();
  // Who called Wake before that has woken the memory.
  other_->Wake();
}

}  // namespace keelson
