#include "core/client/transport/bulk_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace keelson {

std::string BulkMethodPath(BulkMethod method) {
  return absl::StrCat("/keelson.v1.ParameterService/", BulkMethodName(method));
}

InlineBulkTransport::InlineBulkTransport(std::vector<BulkHandler*> shards,
                                         std::function<void()> wake)
    : shards_(std::move(shards)), waits_(std::make_shared<Waits>()) {
  MutexLock lock(&waits_->mu);
  waits_->wake = wake == nullptr ? [this] { Wake(); } : std::move(wake);
}

InlineBulkTransport::~InlineBulkTransport() {
  MutexLock lock(&waits_->mu);
  waits_->wake = nullptr;
}

void InlineBulkTransport::Start(size_t shard, BulkMethod method, ByteRope request,
                                absl::Duration timeout, uint64_t tag) {
  Try({shard, method, std::move(request), tag, Clock::Real()->Monotonic() + timeout});
}

void InlineBulkTransport::Try(Waiting call) {
  BulkHandler* const handler = shards_[call.shard];
  if (call.method == BulkMethod::kPull) {
    const uint64_t key = next_key_++;
    const bool now = handler->MayAnswer(call.method, call.request, [waits = waits_, key] {
      MutexLock lock(&waits->mu);
      waits->over.push_back(key);
      if (waits->wake != nullptr) waits->wake();
    });
    if (!now) {
      waiting_.emplace(key, std::move(call));
      return;
    }
  }
  Complete(call.tag, handler->Bulk(call.method, std::move(call.request)));
}

void InlineBulkTransport::TryThoseOver() {
  if (waiting_.empty()) return;
  std::vector<uint64_t> over;
  {
    MutexLock lock(&waits_->mu);
    over.swap(waits_->over);
  }
  for (const uint64_t key : over) {
    auto call = waiting_.extract(key);
    if (!call.empty()) Try(std::move(call.mapped()));
  }
  const absl::Duration now = Clock::Real()->Monotonic();
  GiveUp([now](const Waiting& call) { return call.deadline <= now; },
         absl::DeadlineExceededError("the wait was too long"));
}

void InlineBulkTransport::GiveUp(absl::FunctionRef<bool(const Waiting& call)> which,
                                 const absl::Status& status) {
  for (auto call = waiting_.begin(); call != waiting_.end();) {
    if (!which(call->second)) {
      ++call;
      continue;
    }
    Complete(call->second.tag, status);
    call = waiting_.erase(call);
  }
}

void InlineBulkTransport::Complete(uint64_t tag, absl::StatusOr<ByteRope> response) {
  BulkCompletion& completion = completed_.emplace_back();
  completion.tag = tag;
  completion.status = response.status();
  if (response.ok()) completion.response = *std::move(response);
}

void InlineBulkTransport::Reset(size_t shard) {
  GiveUp([shard](const Waiting& call) { return call.shard == shard; },
         absl::UnavailableError("the call was given up"));
}

std::optional<BulkCompletion> InlineBulkTransport::Next(absl::Duration timeout) {
  TryThoseOver();
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
