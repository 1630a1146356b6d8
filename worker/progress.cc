#include "worker/progress.h"

#include <algorithm>
#include <set>
#include <utility>

namespace keelson {
namespace {

void AddCounts(const google::protobuf::RepeatedField<int64_t>& from,
               google::protobuf::RepeatedField<int64_t>* to) {
  if (to->size() < from.size()) to->Resize(from.size(), 0);
  for (int i = 0; i < from.size(); ++i) to->Set(i, to->Get(i) + from.Get(i));
}

void AddSums(const v1::WorkerProgress& from, v1::WorkerProgress* to) {
  to->set_steps(to->steps() + from.steps());
  to->set_examples(to->examples() + from.examples());
  to->set_loss_sum(to->loss_sum() + from.loss_sum());
  to->mutable_losses()->MergeFrom(from.losses());
  to->set_non_finite_losses(to->non_finite_losses() + from.non_finite_losses());
  to->set_staleness_sum(to->staleness_sum() + from.staleness_sum());
  to->set_staleness_max(std::max(to->staleness_max(), from.staleness_max()));
  AddCounts(from.staleness_counts(), to->mutable_staleness_counts());
  to->set_pull_seconds(to->pull_seconds() + from.pull_seconds());
  to->set_input_seconds(to->input_seconds() + from.input_seconds());
  to->set_compute_seconds(to->compute_seconds() + from.compute_seconds());
  to->set_push_seconds(to->push_seconds() + from.push_seconds());
  to->set_push_retries(to->push_retries() + from.push_retries());
  to->set_credit_wait_seconds(to->credit_wait_seconds() + from.credit_wait_seconds());
  to->set_bytes_pushed(to->bytes_pushed() + from.bytes_pushed());
  to->set_bytes_pulled(to->bytes_pulled() + from.bytes_pulled());
}

v1::WorkerProgress SumsOf(const FinishedStep& step) {
  v1::WorkerProgress sums;
  sums.set_steps(1);
  sums.set_examples(step.ticket.end - step.ticket.begin);
  sums.set_loss_sum(step.loss);
  v1::StepLoss* loss = sums.add_losses();
  loss->set_step(step.ticket.step);
  loss->set_loss(step.loss);
  sums.set_staleness_sum(step.staleness);
  sums.set_staleness_max(step.staleness);
  sums.mutable_staleness_counts()->Resize(static_cast<int>(WorkerTotals().staleness.size()), 0);
  sums.set_staleness_counts(static_cast<int>(WorkerTotals::StalenessBucket(step.staleness)), 1);
  sums.set_pull_seconds(absl::ToDoubleSeconds(step.pull));
  sums.set_input_seconds(absl::ToDoubleSeconds(step.input));
  sums.set_compute_seconds(absl::ToDoubleSeconds(step.compute));
  sums.set_push_seconds(absl::ToDoubleSeconds(step.push));
  sums.set_push_retries(step.push_retries);
  sums.set_credit_wait_seconds(absl::ToDoubleSeconds(step.waited_for_credit));
  sums.set_bytes_pushed(step.bytes_pushed);
  sums.set_bytes_pulled(step.bytes_pulled);
  return sums;
}

v1::StepTicket ToStepTicket(const Ticket& ticket) {
  v1::StepTicket out;
  out.set_step(ticket.step);
  out.mutable_records()->set_epoch(ticket.epoch);
  out.mutable_records()->set_begin(ticket.begin);
  out.mutable_records()->set_end(ticket.end);
  out.set_attempt(ticket.attempt);
  out.set_contested(ticket.contested);
  return out;
}

}  // namespace

void Progress::AddLease(uint64_t lease_id, std::vector<Ticket> tickets) {
  MutexLock lock(&mu_);
  leases_[lease_id].tickets = std::move(tickets);
}

void Progress::Drop(const Ticket& ticket) {
  MutexLock lock(&mu_);
  ++totals_.dropped_tickets;
  const auto found = leases_.find(ticket.lease_id);
  if (found == leases_.end() || found->second.finished()) return;
  Lease& lease = found->second;
  lease.tickets.resize(static_cast<size_t>(lease.completed));
  // The finished part of the lease remains, and is reported again.
  lease.reported = 0;
  if (lease.tickets.empty()) leases_.erase(found);
}

bool Progress::IsValid(const Ticket& ticket) const {
  MutexLock lock(&mu_);
  const auto found = leases_.find(ticket.lease_id);
  return found != leases_.end() && !found->second.finished();
}

void Progress::Finish(const FinishedStep& step) {
  MutexLock lock(&mu_);
  AddSums(SumsOf(step), &sums_);
  totals_.Add(step);
  const auto found = leases_.find(step.ticket.lease_id);
  if (found == leases_.end() || found->second.finished()) return;
  ++found->second.completed;
  if (found->second.finished()) SetUrgent();
}

void Progress::AddNonFiniteLoss() {
  MutexLock lock(&mu_);
  sums_.set_non_finite_losses(sums_.non_finite_losses() + 1);
  ++totals_.non_finite_losses;
  SetUrgent();
}

v1::WorkerProgress Progress::Take() {
  MutexLock lock(&mu_);
  v1::WorkerProgress report = std::move(sums_);
  sums_ = v1::WorkerProgress();
  urgent_ = false;
  for (auto& [id, lease] : leases_) {
    if (lease.completed == lease.reported) continue;
    v1::LeaseProgress* progress = report.add_leases();
    progress->set_lease_id(id);
    progress->set_completed_steps(lease.completed);
    lease.reported = lease.completed;
  }
  return report;
}

void Progress::Restore(const v1::WorkerProgress& undelivered) {
  MutexLock lock(&mu_);
  AddSums(undelivered, &sums_);
  for (const v1::LeaseProgress& progress : undelivered.leases()) {
    const auto found = leases_.find(progress.lease_id());
    if (found != leases_.end()) found->second.reported = 0;
  }
}

void Progress::Acknowledge(const v1::WorkerProgress& delivered, const v1::BookVersions& books) {
  MutexLock lock(&mu_);
  for (const v1::LeaseProgress& progress : delivered.leases()) {
    const auto found = leases_.find(progress.lease_id());
    if (found == leases_.end()) continue;
    Lease& lease = found->second;
    const bool all = progress.completed_steps() == static_cast<int64_t>(lease.tickets.size());
    if (all && !lease.booked_at.has_value()) lease.booked_at = books.current();
  }
  ForgetStored(books.stored());
}

std::vector<v1::HeldLease> Progress::Held() const {
  MutexLock lock(&mu_);
  std::vector<v1::HeldLease> held;
  for (const auto& [id, lease] : leases_) {
    v1::HeldLease& claim = held.emplace_back();
    claim.set_lease_id(id);
    claim.set_completed_steps(lease.completed);
    for (const Ticket& ticket : lease.tickets) *claim.add_tickets() = ToStepTicket(ticket);
  }
  return held;
}

void Progress::Keep(const std::vector<v1::HeldLease>& held, const v1::RegisterResponse& answer) {
  MutexLock lock(&mu_);
  std::set<uint64_t> finished;
  for (const v1::HeldLease& claim : held) {
    if (claim.completed_steps() == claim.tickets_size()) finished.insert(claim.lease_id());
  }
  const std::set<uint64_t> kept(answer.kept_leases().begin(), answer.kept_leases().end());
  std::erase_if(leases_, [&](const auto& entry) {
    return !kept.contains(entry.first) && !finished.contains(entry.first);
  });
  for (auto& [id, lease] : leases_) {
    const bool told = finished.contains(id);
    lease.reported = told ? lease.completed : 0;
    lease.booked_at = told ? std::optional<uint64_t>(answer.books().current()) : std::nullopt;
  }
  ForgetStored(answer.books().stored());
  SetUrgent();
}

void Progress::DropLeases() {
  MutexLock lock(&mu_);
  ++totals_.ended_memberships;
  leases_.clear();
}

void Progress::ForgetStored(uint64_t stored) {
  std::erase_if(leases_, [&](const auto& entry) {
    return entry.second.booked_at.has_value() && *entry.second.booked_at <= stored;
  });
}

void Progress::SetUrgent() {
  urgent_ = true;
  changed_.NotifyAll();
}

WorkerTotals Progress::totals() const {
  MutexLock lock(&mu_);
  return totals_;
}

void Progress::WaitForUrgent(absl::Duration timeout) {
  MutexLock lock(&mu_);
  if (!urgent_) changed_.WaitFor(&mu_, timeout);
}

void Progress::Wake() {
  MutexLock lock(&mu_);
  SetUrgent();
}

}  // namespace keelson
