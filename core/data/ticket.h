// The unit of work of a worker: one step on one batch of records.
#ifndef KEELSON_CORE_DATA_TICKET_H_
#define KEELSON_CORE_DATA_TICKET_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace keelson {

// Permission to take `step` on the records at positions [begin, end) of the epoch's order
// (record_order.h).
struct Ticket {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t lease_id = 0;
  // In synchronous mode (otherwise 0) the number of the attempt at the step; gradients of different
  // attempts are not added up.
  uint32_t attempt = 0;
  // The step takes fewer gradients than it has tickets: before a gradient is sent, the chief is
  // asked whether it counts.
  bool contested = false;
  // Unless the step is begun again, the worker gets no other ticket of this synchronous step.
  bool last_of_step = false;
  // The values are those for this step, which the round of the step before precedes.
  bool follows_round = false;
  // The gradient must be computed from values that were pulled after the ticket was granted.
  bool fresh_values = false;
  // The place of the batch among those of its synchronous step, from 1 on, if gradients are added
  // in that order; 0: as they come.
  uint32_t order = 0;

  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// A source of tickets: the coordinator, or a fake.
class TicketSource {
 public:
  virtual ~TicketSource() = default;

  // The next ticket, nullopt when there is no more work, or an error, after which it is not called
  // again. Called by one thread at a time; may block until there is work.
  virtual absl::StatusOr<std::optional<Ticket>> Next() = 0;
  // What Next would return without a wait, if it is a ticket. Called as Next is.
  virtual std::optional<Ticket> Ready() { return std::nullopt; }
  // False: Next will have to wait.
  virtual bool has_ready() const { return false; }
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_TICKET_H_
