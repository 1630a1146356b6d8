// Sends the messages of an exchange: which one is next at each server, and the repetition of those
// whose calls have failed.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_MESSAGE_SENDER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_MESSAGE_SENDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/client/exchange/exchange_calls.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/exchange/exchange_options.h"
#include "core/client/exchange/exchange_state.h"
#include "core/client/transport/bulk_transport.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// In the order, and with the limits, that BulkExchange names. Not thread-safe.
class MessageSender {
 public:
  // All outlive this.
  MessageSender(ExchangeCalls* calls, const ExchangeMemory* memory, BulkTransport* transport,
                const Clock* clock);

  // Sends what may be sent, the repetitions that are due first.
  void Start();
  // The transport has given the call back.
  void NoteEnded(const CallId& id);
  // Has the message sent again after a pause, since its call has failed. Not OK: it has failed for
  // RetryOptions::give_up_after, with the status's code.
  absl::Status Repeat(const CallId& id, const absl::Status& status);
  // The shard is with another server from now on: what was sent and is not answered, or waits to be
  // repeated, goes there without a pause, and with new patience.
  void Redirect(size_t shard, const BulkServer& server);
  // Whether the call, which has ended, was one to a server that the shard has left; then its
  // message is sent again.
  bool RepeatRedirected(const CallId& id);
  // Whether the call, which has failed with `status`, was a pull that waited for a step, and the
  // step has taken longer than a call; then its message is sent again.
  bool RepeatWaiting(const CallId& id, const absl::Status& status);
  // What was sent of the slot's pull and is not answered is given up and sent again at once.
  void AskAgain(size_t slot);

  bool any_in_flight() const { return in_flight_ > 0; }
  bool any_pausing() const { return !pausing_.empty(); }
  // The time until the next repetition, if it is shorter than `timeout`.
  absl::Duration WaitLimit(absl::Duration timeout) const;

 private:
  const ExchangeOptions& options() const { return calls_->options(); }
  bool StartNext(size_t shard, ExchangeStep** held);
  void RetryDue();
  void RetryAtOnce(MessageCall* call) const;
  void RepeatAtOnce(const CallId& id, MessageCall* call);
  void Launch(size_t slot, size_t shard, size_t message);
  ByteRope EncodePull(size_t slot, size_t shard, size_t message) const;
  int InFlightLimit(const ServerState& server) const;
  void NoteHeldBack(ExchangeStep* held);

  ExchangeCalls* const calls_;
  const ExchangeMemory* const memory_;
  BulkTransport* const transport_;
  const Clock* const clock_;
  // Error feedback, per variable; empty for variables that are encoded without it.
  std::vector<std::vector<float>> residuals_;
  std::vector<uint64_t> pausing_;  // tags of calls to be repeated
  int in_flight_ = 0;              // at all servers
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_MESSAGE_SENDER_H_
