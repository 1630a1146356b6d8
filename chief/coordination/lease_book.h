// The leases of a work ledger: which worker holds which tickets, and which leases were taken back.
#ifndef KEELSON_CHIEF_COORDINATION_LEASE_BOOK_H_
#define KEELSON_CHIEF_COORDINATION_LEASE_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chief/coordination/record_set.h"
#include "chief/coordination/work_pool.h"

namespace keelson {

// A pure state machine: no threads, no I/O, no time. Not thread-safe: a WorkLedger owns it.
class LeaseBook {
 public:
  struct Lease {
    // An inherited lease comes from persisted state, and its worker has not confirmed it yet.
    enum Origin { kGranted, kInherited, kConfirmed, kAdopted };

    uint64_t worker = 0;
    int64_t completed = 0;
    std::vector<WorkTicket> tickets;
    Origin origin = kGranted;

    bool from_predecessor() const { return origin == kInherited || origin == kConfirmed; }
    int64_t size() const { return static_cast<int64_t>(tickets.size()); }
    absl::Span<const WorkTicket> unfinished() const {
      return absl::MakeConstSpan(tickets).subspan(completed);
    }
  };
  // What TakeBack has taken back.
  struct TakenBack {
    int64_t leases = 0;
    std::vector<WorkTicket> tickets;  // those that were not completed
  };

  // So many leases that were granted here and taken back are remembered, the newest ones. Reports
  // on them come within seconds of it.
  static constexpr size_t kMostTakenBack = 10'000;

  // The first lease that is granted here has the number `first_id`, not 0.
  explicit LeaseBook(uint64_t first_id) : first_id_(first_id), next_id_(first_id) {}

  // A lease number that was never used.
  uint64_t NewId() { return next_id_++; }
  // Whether NewId has returned this number.
  bool WasGranted(uint64_t id) const { return id >= first_id_ && id < next_id_; }
  // Whether this lease was taken back, as far as it is remembered.
  bool WasTakenBack(uint64_t id) const { return taken_back_.contains(id); }
  size_t taken_back() const { return taken_back_.size(); }

  void Add(uint64_t id, Lease lease) { leases_[id] = std::move(lease); }
  // The first `completed` tickets of the lease are done; a lease that is done is forgotten. Returns
  // the number of tickets that were not done before: 0 for a repetition.
  // ABORTED: the lease is not the worker's: taken back, another worker's, or never granted here.
  // INVALID_ARGUMENT: `completed` is negative or more than the lease has.
  absl::StatusOr<int64_t> Complete(uint64_t worker, uint64_t id, int64_t completed);
  // Its worker knows of this lease.
  void Confirm(uint64_t worker, uint64_t id);
  // Takes back the leases for which `condition` holds.
  TakenBack TakeBack(absl::FunctionRef<bool(const Lease&)> condition);

  // ---- What is held.

  const std::map<uint64_t, Lease>& leases() const { return leases_; }  // by id
  bool Holds(uint64_t id) const { return leases_.contains(id); }
  bool empty() const { return leases_.empty(); }
  // Calls `visit` with all tickets that are not completed.
  void ForEachUnfinished(absl::FunctionRef<void(const WorkTicket&)> visit) const;
  // The number of those that the worker holds.
  int64_t Outstanding(uint64_t worker) const;
  // Adds the workers that hold tickets which they have not completed.
  void AddOwing(std::set<uint64_t>* workers) const;
  // The workers other than `but` that hold a part of `records` by persisted state only.
  std::set<uint64_t> InheritorsOf(const RecordSet& records, uint64_t but) const;

 private:
  void NoteTakenBack(uint64_t id);

  uint64_t first_id_;
  uint64_t next_id_;
  std::map<uint64_t, Lease> leases_;
  std::set<uint64_t> taken_back_;  // ids
  // It is not remembered which ids before this one were taken back.
  uint64_t unknown_before_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_LEASE_BOOK_H_
