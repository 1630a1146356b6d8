#include "core/client/transport/bulk_transport.h"

#include <algorithm>
#include <utility>

namespace keelson {

void InlineBulkTransport::Start(size_t shard, BulkMethod method, ByteRope request,
                                absl::Duration timeout, uint64_t tag) {
  absl::StatusOr<ByteRope> response = shards_[shard]->Bulk(method, std::move(request));
  BulkCompletion& completion = completed_.emplace_back();
  completion.tag = tag;
  completion.status = response.status();
  if (response.ok()) completion.response = *std::move(response);
}

std::optional<BulkCompletion> InlineBulkTransport::Next(absl::Duration timeout) {
  if (!completed_.empty()) {
    std::optional<BulkCompletion> completion = std::move(completed_.front());
    completed_.pop_front();
    return completion;
  }
  MutexLock lock(&mu_);
  // An infinite timeout would overflow the clock's type; an early return is harmless.
  if (!woken_ && timeout > absl::ZeroDuration()) {
    changed_.WaitFor(&mu_, std::min(timeout, absl::Hours(1)));
  }
  woken_ = false;
  return std::nullopt;
}

void InlineBulkTransport::Wake() {
  MutexLock lock(&mu_);
  woken_ = true;
  changed_.NotifyAll();
}

}  // namespace keelson
