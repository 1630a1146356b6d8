#include "chief/coordination/work_requests.h"

#include <algorithm>

namespace keelson {

const WorkRequests::Requests* WorkRequests::Find(uint64_t incarnation) const {
  const auto found = requests_.find(incarnation);
  return found == requests_.end() ? nullptr : &found->second;
}

bool WorkRequests::Came(uint64_t incarnation, uint64_t sequence) const {
  const Requests* const requests = Find(incarnation);
  return requests != nullptr && sequence != 0 && sequence <= requests->newest;
}

bool WorkRequests::Note(uint64_t incarnation, uint64_t sequence) {
  Requests& requests = requests_[incarnation];
  if (sequence <= requests.newest) return false;
  requests.newest = sequence;
  return true;
}

bool WorkRequests::Overtaken(uint64_t incarnation, uint64_t sequence) const {
  const Requests* const requests = Find(incarnation);
  return requests != nullptr && sequence < requests->newest;
}

void WorkRequests::EndWait(uint64_t incarnation) {
  const auto found = requests_.find(incarnation);
  // It goes with the membership.
  if (found != requests_.end()) --found->second.waiting;
}

bool WorkRequests::AnyWaits(uint64_t incarnation) const {
  const Requests* const requests = Find(incarnation);
  return requests != nullptr && requests->waiting > 0;
}

int64_t WorkRequests::TicketsFor(uint64_t incarnation, int64_t left, absl::Duration now) const {
  int64_t tickets = 1;
  const auto pace = paces_.find(incarnation);
  if (pace != paces_.end()) {
    const double took = absl::ToDoubleSeconds(now - pace->second.granted_at);
    const double wanted = absl::ToDoubleSeconds(options_.work_per_lease);
    tickets = static_cast<int64_t>(static_cast<double>(pace->second.tickets) * wanted /
                                   std::max(took, 1e-3));
    // A lease grows at most twofold: the batcher asks ahead, so the first measured times are too
    // short.
    tickets = std::min(tickets, pace->second.tickets * 2);
  }
  // Leases get smaller towards the end, so that all workers finish together.
  const auto workers = static_cast<int64_t>(std::max<size_t>(1, paces_.size()));
  return std::clamp<int64_t>(std::min(tickets, left / (2 * workers)), 1,
                             options_.max_tickets_per_lease);
}

void WorkRequests::Grant(uint64_t incarnation, uint64_t sequence, const WorkLease& lease,
                         absl::Duration now) {
  paces_[incarnation] = {now, static_cast<int64_t>(lease.tickets.size())};
  Requests& requests = requests_[incarnation];
  requests.granted = sequence;
  requests.lease = lease;
}

std::optional<WorkLease> WorkRequests::Granted(uint64_t incarnation, uint64_t sequence) const {
  const Requests* const requests = Find(incarnation);
  if (requests == nullptr || sequence == 0 || sequence != requests->granted) return std::nullopt;
  return requests->lease;
}

void WorkRequests::Forget(uint64_t incarnation) {
  paces_.erase(incarnation);
  requests_.erase(incarnation);
}

}  // namespace keelson
