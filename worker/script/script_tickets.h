// The tickets that a script has, and how many more it wants.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_TICKETS_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_TICKETS_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/data/ticket.h"

namespace keelson {

// Tickets are known to the script by a number, which rises over all memberships of the agent. They
// are finished in the order in which they came. One may be in reserve, of which the script does not
// know: so the next one is there when it is wanted. Thread-safe.
class ScriptTickets {
 public:
  // ---- The script's side.

  void Want(uint64_t more);
  // The ticket that the script is at; nullopt: the membership that it was granted to is over.
  // INVALID_ARGUMENT: `number` is not the oldest one that is not finished.
  absl::StatusOr<std::optional<Ticket>> Oldest(uint64_t number) const;
  void FinishOldest();
  bool empty() const;

  // Whether the side that fetches tickets has nothing to do, until Want or WantReserve is called.
  bool none_is_fetched() const;
  // One is to be fetched ahead, unless one is there.
  void WantReserve();
  std::optional<Ticket> TakeReserve();

  // ---- The side that fetches tickets.

  // Whether the script wants one.
  bool wanted() const;
  // Waits until one is wanted, or one in reserve. False: Stop was called.
  bool AwaitWanted();
  // One is there; its number, if it is wanted, else it is in reserve.
  std::optional<uint64_t> AddFetched(const Ticket& ticket);
  // Ends AwaitWanted, now and later, until Restart.
  void Stop();
  void Restart();
  // One is given to the script; returns its number.
  uint64_t Add(const Ticket& ticket);
  // The membership is over: none of the tickets counts any more.
  void Invalidate();

 private:
  struct Entry {
    uint64_t number = 0;
    std::optional<Ticket> ticket;
  };

  mutable Mutex mu_;
  CondVar changed_;
  uint64_t wanted_ ABSL_GUARDED_BY(mu_) = 0;
  bool wants_reserve_ ABSL_GUARDED_BY(mu_) = false;
  bool awaits_ ABSL_GUARDED_BY(mu_) = false;  // in AwaitWanted
  std::optional<Ticket> reserve_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  std::deque<Entry> unfinished_ ABSL_GUARDED_BY(mu_);  // the oldest first
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_TICKETS_H_
