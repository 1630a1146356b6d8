#include "ps_server/service/credit_ledger.h"

#include <algorithm>
#include <iterator>

namespace keelson {
namespace {

constexpr absl::Duration kForgetInterval = absl::Seconds(1);

}  // namespace

uint32_t CreditLedger::Note(uint64_t incarnation) {
  const absl::Duration now = clock_->Monotonic();
  MutexLock lock(&mu_);
  last_call_[incarnation] = now;
  if (now >= next_forget_) Forget(now);
  return Credits();
}

CreditLedger::Share CreditLedger::share() {
  const absl::Duration now = clock_->Monotonic();
  MutexLock lock(&mu_);
  Forget(now);
  return {static_cast<int>(last_call_.size()), Credits()};
}

void CreditLedger::Forget(absl::Duration now) {
  for (auto client = last_call_.begin(); client != last_call_.end();) {
    const bool silent = now - client->second > options_.active_for;
    client = silent ? last_call_.erase(client) : std::next(client);
  }
  next_forget_ = now + kForgetInterval;
}

uint32_t CreditLedger::Credits() const {
  const auto clients = std::max<int64_t>(1, static_cast<int64_t>(last_call_.size()));
  const int64_t fair = options_.receive_budget_bytes / (clients * options_.message_bytes);
  return static_cast<uint32_t>(std::clamp<int64_t>(fair, 1, options_.max_credits));
}

}  // namespace keelson
