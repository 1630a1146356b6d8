// Fetches the tickets that a script wants, and tells it which records they have.
#ifndef KEELSON_WORKER_SCRIPT_TICKET_FEED_H_
#define KEELSON_WORKER_SCRIPT_TICKET_FEED_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/data/ticket.h"
#include "core/script/script_socket.h"
#include "worker/script/script_tickets.h"

namespace keelson {

// In which order the job visits the script's records.
struct ScriptRecords {
  int64_t count = 0;
  uint64_t seed = 0;
  bool sequential = false;
  int64_t order_group = 0;  // see RecordOrder
};

// Runs on a thread of its own: waiting for work must not keep the script's steps waiting, without
// which there may never be work. The methods may be called by any thread.
class TicketFeed {
 public:
  // All outlive the feed. `step` is the newest global step that the agent knows. `source` ends its
  // waits when the feed is about to be destroyed.
  TicketFeed(const ScriptRecords& records, TicketSource* source, ScriptTickets* tickets,
             const std::atomic<int64_t>* step, ScriptSocket* script);
  ~TicketFeed();

  // The script wants so many more. Those that the source has are told at once, by the caller, who
  // is the only one that asks for tickets; the others follow. An error of the socket.
  absl::Status Give(uint64_t count);

  // No ticket follows, and the script has been told if it wants one.
  bool done() const { return done_; }
  // The error with which the source or the socket ended it.
  absl::Status status() const;

 private:
  void Run();
  absl::Status Fetch();
  absl::Status TellNoMore();
  absl::Status Tell(uint64_t number, const Ticket& ticket);

  const ScriptRecords records_;
  TicketSource* const source_;
  ScriptTickets* const tickets_;
  const std::atomic<int64_t>* const step_;
  ScriptSocket* const script_;
  std::atomic<bool> done_ = false;
  std::atomic<bool> told_no_more_ = false;
  mutable Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  Thread thread_;  // last: it uses everything above
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_TICKET_FEED_H_
