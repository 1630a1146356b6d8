// Computes the number of bulk messages that each client may have in flight, so that all of them fit
// into the memory that the server reserves for them.
#ifndef KEELSON_PS_SERVER_SERVICE_CREDIT_LEDGER_H_
#define KEELSON_PS_SERVER_SERVICE_CREDIT_LEDGER_H_

#include <cstdint>
#include <unordered_map>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// Divides a budget of bytes evenly among the clients (incarnations) that have called lately.
// Thread-safe.
class CreditLedger {
 public:
  struct Options {
    int64_t receive_budget_bytes = 256 << 20;
    // The largest payload that senders use.
    int64_t message_bytes = kBulkPayloadBytes;
    // More messages in flight than this do not make a client faster.
    uint32_t max_credits = 8;
    // A client counts for this long after its last call.
    absl::Duration active_for = absl::Seconds(10);
  };

  struct Share {
    int active_clients = 0;
    // The credits of each client: budget / (clients * message), at least 1, at most max_credits.
    uint32_t credits = 0;
  };

  // `clock` outlives the ledger.
  CreditLedger(const Options& options, const Clock* clock) : options_(options), clock_(clock) {}

  // Notes a call of `incarnation`, and returns the credits that it has now.
  uint32_t Note(uint64_t incarnation);

  Share share();

 private:
  // Forgets clients that have not called for `active_for`. Note calls it once a second, so that it
  // costs little.
  void Forget(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t Credits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Clock* const clock_;

  Mutex mu_;
  // When each client called last.
  std::unordered_map<uint64_t, absl::Duration> last_call_ ABSL_GUARDED_BY(mu_);
  absl::Duration next_forget_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_CREDIT_LEDGER_H_
