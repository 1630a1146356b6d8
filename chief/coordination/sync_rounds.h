// Synchronous steps with backup workers.
// Source: Chen et al., "Revisiting Distributed Synchronous SGD", 2016.
//
// A round is one step on several batches, its tickets. Of these `replicas_to_aggregate` count;
// where there are more, the round is contested: the workers that ask first are admitted, before
// they send, for all servers at once. A ticket:
//
//            Grant         Admit             Stage
//   waiting ──────► held ────────► admitted ───────► staged
//      ▲   its worker is lost │
//      └──────────────────────┘    (an uncontested ticket is admitted when it is granted)
//
// When enough are staged, the round can be committed. A worker that is lost with an admitted ticket
// may have sent a part of its gradient: the round is then begun again as a newer attempt, and what
// was sent for the older one counts nowhere. A worker that is lost with a staged ticket leaves a
// complete gradient, which counts.
//
// A pure state machine: no threads, no I/O, no time. Not thread-safe.
#ifndef KEELSON_CHIEF_COORDINATION_SYNC_ROUNDS_H_
#define KEELSON_CHIEF_COORDINATION_SYNC_ROUNDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "chief/coordination/record_set.h"

namespace keelson {

class SyncRounds {
 public:
  // A round to be committed by the servers, with the number of pushes that each block must have.
  struct Round {
    int64_t step = 0;
    uint32_t attempt = 0;
    uint32_t contributions = 0;

    friend bool operator==(const Round&, const Round&) = default;
  };

  explicit SyncRounds(int64_t replicas_to_aggregate) : wanted_(replicas_to_aggregate) {}

  // Opens a round with a ticket for each of `batches`, which are at least replicas_to_aggregate. No
  // round may be open.
  void Open(int64_t step, uint32_t attempt, std::vector<RecordRange> batches);
  // Begins the round again as this attempt: all tickets are waiting.
  void Restart(uint32_t attempt);
  void Close();

  bool open() const { return !tickets_.empty(); }
  bool contested() const { return num_tickets() > wanted_; }
  bool AnyGranted() const;
  int64_t step() const { return step_; }
  uint32_t attempt() const { return attempt_; }

  // A ticket's records, leased to `worker` as `lease_id`. Returns nothing when enough tickets are
  // out, or the worker has its share. As many tickets are wanted as there are workers, clamped to
  // [replicas_to_aggregate, all]; a worker gets more than one only when there are fewer workers
  // than that. With `place`, the worker's among these workers from 0 on, the tickets go round the
  // workers in order, whoever asks first: the worker gets those whose place, too, leaves the
  // remainder `place` when it is divided by their number.
  std::optional<RecordRange> Grant(uint64_t worker, uint64_t lease_id, int64_t alive_workers,
                                   std::optional<int64_t> place = std::nullopt);
  // The place of this ticket among those of the round, from 0 on. The worker holds it.
  size_t PlaceOf(uint64_t worker, uint64_t lease_id) const { return *Find(worker, lease_id); }
  // The most tickets that Grant gives one of so many workers.
  int64_t MostOf(int64_t alive_workers) const;

  // Whether the gradient of this ticket counts; the same when asked again. False for a ticket that
  // is not the worker's, or of an older attempt.
  bool Admit(uint64_t worker, uint64_t lease_id, uint32_t attempt);

  bool Holds(uint64_t worker, uint64_t lease_id) const;
  // The gradient is at all servers. False: the ticket is not the worker's or was not admitted.
  bool Stage(uint64_t worker, uint64_t lease_id);

  // Whether a server's refusal of the ticket's gradient is news, so that the caller must call
  // Restart: the ticket was admitted, and is not staged.
  bool Refuse(uint64_t worker, uint64_t lease_id, uint32_t attempt) const;

  // The worker is lost. False: the attempt is lost with it, and the caller must call Restart.
  bool Lose(uint64_t worker);

  // Adds the workers whose gradients the round waits for. Others that hold tickets of a round that
  // has been decided are not waited for.
  void AddOwing(std::set<uint64_t>* workers) const;

  // The round to commit, or nothing while too few tickets are staged.
  std::optional<Round> Staged() const;
  // The batches that count.
  std::vector<RecordRange> StagedBatches() const;

 private:
  enum State { kWaiting, kHeld, kAdmitted, kStaged };
  struct Ticket {
    RecordRange records;
    State state = kWaiting;
    uint64_t worker = 0;
    uint64_t lease_id = 0;
  };

  int64_t num_tickets() const { return static_cast<int64_t>(tickets_.size()); }
  // The number of tickets that have reached at least `state`.
  int64_t Count(State state) const;
  int64_t CountOf(uint64_t worker) const;
  // The first ticket that waits, of those that Grant may give at `place`.
  std::optional<size_t> FirstWaiting(int64_t alive_workers, std::optional<int64_t> place) const;
  // How many tickets are out at a time.
  int64_t WantedOf(int64_t alive_workers) const;
  // The ticket of this lease; nothing: no ticket is leased so.
  std::optional<size_t> Find(uint64_t worker, uint64_t lease_id) const;
  void Enter(size_t ticket, State state);
  // The ticket is waiting, as at first.
  void Free(size_t ticket);

  int64_t wanted_;
  int64_t step_ = 0;
  uint32_t attempt_ = 0;
  std::vector<Ticket> tickets_;
  // What follows from the tickets, so that no report looks at all of them.
  std::array<int64_t, kStaged + 1> in_state_ = {};
  std::map<std::pair<uint64_t, uint64_t>, size_t> leased_;  // by worker and lease
  std::set<size_t> waiting_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_SYNC_ROUNDS_H_
