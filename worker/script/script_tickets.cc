#include "worker/script/script_tickets.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {

void ScriptTickets::Want(uint64_t more) {
  if (more == 0) return;
  MutexLock lock(&mu_);
  wanted_ += more;
  changed_.NotifyAll();
}

absl::StatusOr<std::optional<Ticket>> ScriptTickets::Oldest(uint64_t number) const {
  MutexLock lock(&mu_);
  if (!unfinished_.empty() && unfinished_.front().number == number) {
    return unfinished_.front().ticket;
  }
  const std::string oldest =
      unfinished_.empty() ? "none" : absl::StrCat(unfinished_.front().number);
  return absl::InvalidArgumentError(
      absl::StrCat("the script's message: expected the oldest ticket that is not finished, ",
                   oldest, ", found ", number));
}

void ScriptTickets::FinishOldest() {
  MutexLock lock(&mu_);
  unfinished_.pop_front();
}

bool ScriptTickets::empty() const {
  MutexLock lock(&mu_);
  return unfinished_.empty();
}

bool ScriptTickets::none_is_fetched() const {
  MutexLock lock(&mu_);
  return awaits_ && wanted_ == 0 && !wants_reserve_ && !stopped_;
}

void ScriptTickets::WantReserve() {
  MutexLock lock(&mu_);
  if (reserve_.has_value()) return;
  wants_reserve_ = true;
  changed_.NotifyAll();
}

std::optional<Ticket> ScriptTickets::TakeReserve() {
  MutexLock lock(&mu_);
  return std::exchange(reserve_, std::nullopt);
}

bool ScriptTickets::wanted() const {
  MutexLock lock(&mu_);
  return wanted_ > 0;
}

bool ScriptTickets::AwaitWanted() {
  MutexLock lock(&mu_);
  awaits_ = true;
  while (wanted_ == 0 && !wants_reserve_ && !stopped_) changed_.Wait(&mu_);
  awaits_ = false;
  return !stopped_;
}

void ScriptTickets::Stop() {
  MutexLock lock(&mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

void ScriptTickets::Restart() {
  MutexLock lock(&mu_);
  stopped_ = false;
  wants_reserve_ = false;
}

std::optional<uint64_t> ScriptTickets::AddFetched(const Ticket& ticket) {
  MutexLock lock(&mu_);
  if (wanted_ == 0) {
    wants_reserve_ = false;
    reserve_ = ticket;
    return std::nullopt;
  }
  --wanted_;
  unfinished_.push_back({next_number_, ticket});
  return next_number_++;
}

uint64_t ScriptTickets::Add(const Ticket& ticket) {
  MutexLock lock(&mu_);
  unfinished_.push_back({next_number_, ticket});
  return next_number_++;
}

void ScriptTickets::Invalidate() {
  MutexLock lock(&mu_);
  for (Entry& entry : unfinished_) entry.ticket.reset();
  reserve_.reset();
}

}  // namespace keelson
