#include "worker/progress.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/cluster/figures.h"
#include "core/cluster/staleness_buckets.h"

namespace keelson {
namespace {

// A report of them is well below what a chief takes.
constexpr int kMostLogged = 4096;

size_t StalenessBucket(int64_t staleness) {
  const auto bucket = std::lower_bound(kStalenessBounds.begin(), kStalenessBounds.end(), staleness);
  return bucket - kStalenessBounds.begin();
}

v1::WorkerFigures FiguresOf(const FinishedStep& step) {
  v1::WorkerFigures figures = step.figures;
  figures.set_steps(1);
  figures.set_examples(step.ticket.end - step.ticket.begin);
  figures.set_loss_sum(step.loss.value_or(0));
  figures.set_steps_without_loss(step.loss.has_value() ? 0 : 1);
  figures.set_staleness_sum(step.staleness);
  figures.set_staleness_max(step.staleness);
  figures.mutable_staleness_counts()->Resize(static_cast<int>(StalenessCounts().size()), 0);
  figures.set_staleness_counts(static_cast<int>(StalenessBucket(step.staleness)), 1);
  figures.set_pull_seconds(absl::ToDoubleSeconds(step.pull));
  figures.set_input_seconds(absl::ToDoubleSeconds(step.input));
  figures.set_compute_seconds(absl::ToDoubleSeconds(step.compute));
  figures.set_push_seconds(absl::ToDoubleSeconds(step.push));
  return figures;
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
  DropLocked(ticket);
}

void Progress::Refuse(const Ticket& ticket) {
  MutexLock lock(&mu_);
  v1::RefusedPush* const refused = unreported_.add_refused();
  refused->set_lease_id(ticket.lease_id);
  refused->set_step(ticket.step);
  refused->set_attempt(ticket.attempt);
  DropLocked(ticket);
  SetUrgent();
}

void Progress::DropLocked(const Ticket& ticket) {
  ++totals_.dropped_tickets;
  const auto found = leases_.find(ticket.lease_id);
  if (found == leases_.end() || found->second.finished()) return;
  Lease& lease = found->second;
  lease.tickets.resize(lease.completed);
  // The finished part of the lease remains, and is reported again.
  lease.reported = 0;
  if (lease.tickets.empty()) leases_.erase(found);
  done_.NotifyAll();
}

bool Progress::IsValid(const Ticket& ticket) const {
  MutexLock lock(&mu_);
  const auto found = leases_.find(ticket.lease_id);
  return found != leases_.end() && !found->second.finished();
}

void Progress::Finish(const FinishedStep& step) {
  MutexLock lock(&mu_);
  const v1::WorkerFigures figures = FiguresOf(step);
  AddFigures(figures, unreported_.mutable_figures());
  AddFigures(figures, &totals_.figures);
  if (step.loss.has_value()) {
    totals_.loss = step.loss;
    v1::StepLoss* const loss = unreported_.add_losses();
    loss->set_step(step.ticket.step);
    loss->set_loss(*step.loss);
  }
  const auto found = leases_.find(step.ticket.lease_id);
  if (found == leases_.end() || found->second.finished()) return;
  ++found->second.completed;
  if (found->second.finished()) NoteUsedUp();
}

void Progress::AddNonFiniteLoss() {
  MutexLock lock(&mu_);
  v1::WorkerFigures figures;
  figures.set_non_finite_losses(1);
  AddFigures(figures, unreported_.mutable_figures());
  AddFigures(figures, &totals_.figures);
  SetUrgent();
}

bool Progress::Log(const std::string& name, int64_t step, double value) {
  MutexLock lock(&mu_);
  if (unreported_.logged_size() >= kMostLogged) return false;
  v1::LoggedValue* const logged = unreported_.add_logged();
  logged->set_name(name);
  logged->set_step(step);
  logged->set_value(value);
  return true;
}

v1::WorkerProgress Progress::Take() {
  MutexLock lock(&mu_);
  v1::WorkerProgress report = std::exchange(unreported_, v1::WorkerProgress());
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
  AddFigures(undelivered.figures(), unreported_.mutable_figures());
  unreported_.mutable_losses()->MergeFrom(undelivered.losses());
  unreported_.mutable_refused()->MergeFrom(undelivered.refused());
  for (const v1::LeaseProgress& progress : undelivered.leases()) {
    const auto found = leases_.find(progress.lease_id());
    if (found != leases_.end()) found->second.reported = 0;
  }
}

void Progress::Acknowledge(const v1::WorkerProgress& delivered,
                           const v1::StateVersions& state_versions) {
  MutexLock lock(&mu_);
  for (const v1::LeaseProgress& progress : delivered.leases()) {
    const auto found = leases_.find(progress.lease_id());
    if (found == leases_.end()) continue;
    Lease& lease = found->second;
    if (progress.completed_steps() != static_cast<int64_t>(lease.tickets.size())) continue;
    acknowledged_.emplace(state_versions.current(),
                          AcknowledgedLease{found->first, std::move(lease)});
    leases_.erase(found);
  }
  ForgetStored(state_versions.stored());
}

namespace {

template <typename Lease>
v1::HeldLease ToHeldLease(uint64_t id, const Lease& lease) {
  v1::HeldLease claim;
  claim.set_lease_id(id);
  claim.set_completed_steps(lease.completed);
  for (const Ticket& ticket : lease.tickets) *claim.add_tickets() = ToStepTicket(ticket);
  return claim;
}

}  // namespace

std::vector<v1::HeldLease> Progress::Held() const {
  MutexLock lock(&mu_);
  std::vector<v1::HeldLease> held;
  for (const auto& [version, known] : acknowledged_) {
    held.push_back(ToHeldLease(known.id, known.lease));
  }
  for (const auto& [id, lease] : leases_) held.push_back(ToHeldLease(id, lease));
  return held;
}

void Progress::Keep(const std::vector<v1::HeldLease>& held, const v1::RegisterResponse& answer) {
  MutexLock lock(&mu_);
  const std::set<uint64_t> kept(answer.kept_leases().begin(), answer.kept_leases().end());
  std::set<uint64_t> finished;
  for (const v1::HeldLease& claim : held) {
    if (claim.completed_steps() == claim.tickets_size()) finished.insert(claim.lease_id());
  }
  std::map<uint64_t, Lease> all = std::exchange(leases_, {});
  for (auto& [version, known] : std::exchange(acknowledged_, {})) {
    all.emplace(known.id, std::move(known.lease));
  }
  for (auto& [id, lease] : all) {
    if (finished.contains(id)) {
      lease.reported = lease.completed;
      acknowledged_.emplace(answer.state_versions().current(),
                            AcknowledgedLease{id, std::move(lease)});
    } else if (kept.contains(id)) {
      lease.reported = 0;
      leases_.emplace(id, std::move(lease));
    }
  }
  ForgetStored(answer.state_versions().stored());
  SetUrgent();
}

void Progress::DropLeases() {
  MutexLock lock(&mu_);
  ++totals_.ended_memberships;
  leases_.clear();
  acknowledged_.clear();
  done_.NotifyAll();
}

void Progress::ForgetStored(uint64_t stored) {
  acknowledged_.erase(acknowledged_.begin(), acknowledged_.upper_bound(stored));
}

bool Progress::AnyLeft() const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [](const auto& entry) { return !entry.second.finished(); });
}

void Progress::NoteUsedUp() {
  if (waiting_until_done_ == 0) return SetUrgent();
  // A lease of several that is not the last one is told with the next heartbeat.
  if (!AnyLeft()) done_.NotifyAll();
}

void Progress::SetUrgent() {
  urgent_ = true;
  changed_.NotifyAll();
  done_.NotifyAll();
}

WorkerTotals Progress::totals() const {
  MutexLock lock(&mu_);
  return totals_;
}

void Progress::WaitForUrgent(absl::Duration timeout) {
  MutexLock lock(&mu_);
  if (!urgent_) changed_.WaitFor(&mu_, timeout);
}

void Progress::WaitUntilDone(absl::Duration timeout) {
  MutexLock lock(&mu_);
  ++waiting_until_done_;
  // An early end does no harm: the caller then asks as without the wait.
  if (AnyLeft() && !urgent_) done_.WaitFor(&mu_, timeout);
  --waiting_until_done_;
}

void Progress::Wake() {
  MutexLock lock(&mu_);
  SetUrgent();
}

}  // namespace keelson
