#include "worker/progress.h"

#include <algorithm>

namespace keelson {
namespace {

void AddSums(const v1::WorkerProgress& from, v1::WorkerProgress* to) {
  to->set_steps(to->steps() + from.steps());
  to->set_examples(to->examples() + from.examples());
  to->set_loss_sum(to->loss_sum() + from.loss_sum());
  to->mutable_losses()->MergeFrom(from.losses());
  to->set_non_finite_losses(to->non_finite_losses() + from.non_finite_losses());
  to->set_staleness_sum(to->staleness_sum() + from.staleness_sum());
  to->set_staleness_max(std::max(to->staleness_max(), from.staleness_max()));
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

void AddLeaseProgress(uint64_t lease_id, int64_t completed, v1::WorkerProgress* report) {
  v1::LeaseProgress* progress = report->add_leases();
  progress->set_lease_id(lease_id);
  progress->set_completed_steps(completed);
}

}  // namespace

void Progress::AddLease(uint64_t lease_id, int64_t tickets) {
  MutexLock lock(&mu_);
  leases_[lease_id].tickets = tickets;
}

void Progress::DropLeases() {
  MutexLock lock(&mu_);
  leases_.clear();
  undelivered_.clear();
}

bool Progress::IsValid(const Ticket& ticket) const {
  MutexLock lock(&mu_);
  return leases_.contains(ticket.lease_id);
}

void Progress::Finish(const FinishedStep& step) {
  MutexLock lock(&mu_);
  AddSums(SumsOf(step), &sums_);
  const auto found = leases_.find(step.ticket.lease_id);
  if (found == leases_.end()) return;
  Lease& lease = found->second;
  if (++lease.completed < lease.tickets) return;
  urgent_ = true;
  changed_.NotifyAll();
}

void Progress::AddNonFiniteLoss() {
  MutexLock lock(&mu_);
  sums_.set_non_finite_losses(sums_.non_finite_losses() + 1);
  urgent_ = true;
  changed_.NotifyAll();
}

v1::WorkerProgress Progress::Take() {
  MutexLock lock(&mu_);
  v1::WorkerProgress report = std::move(sums_);
  sums_ = v1::WorkerProgress();
  urgent_ = false;
  for (const auto& [id, completed] : undelivered_) AddLeaseProgress(id, completed, &report);
  undelivered_.clear();
  for (auto it = leases_.begin(); it != leases_.end();) {
    Lease& lease = it->second;
    if (lease.completed > lease.reported) AddLeaseProgress(it->first, lease.completed, &report);
    lease.reported = lease.completed;
    it = lease.completed == lease.tickets ? leases_.erase(it) : std::next(it);
  }
  return report;
}

void Progress::Restore(const v1::WorkerProgress& undelivered) {
  MutexLock lock(&mu_);
  AddSums(undelivered, &sums_);
  for (const v1::LeaseProgress& progress : undelivered.leases()) {
    const auto held = leases_.find(progress.lease_id());
    if (held != leases_.end()) {
      held->second.reported = 0;
      continue;
    }
    int64_t& completed = undelivered_[progress.lease_id()];
    completed = std::max(completed, progress.completed_steps());
  }
}

void Progress::WaitForUrgent(absl::Duration timeout) {
  MutexLock lock(&mu_);
  if (!urgent_) changed_.WaitFor(&mu_, timeout);
}

void Progress::Wake() {
  MutexLock lock(&mu_);
  urgent_ = true;
  changed_.NotifyAll();
}

}  // namespace keelson
