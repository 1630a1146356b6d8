// The exchange of gradients and values with all servers: when each message is sent, its repetition
// until it is answered, and where its answer goes.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_BULK_EXCHANGE_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_BULK_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/exchange/answer_reader.h"
#include "core/client/exchange/exchange_calls.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/exchange/exchange_options.h"
#include "core/client/exchange/exchange_state.h"
#include "core/client/exchange/landing_tracker.h"
#include "core/client/exchange/message_sender.h"
#include "core/client/plan/transfer_plan.h"
#include "core/client/services/parameter_client.h"
#include "core/client/transport/bulk_transport.h"

namespace keelson {

// A state machine over a BulkTransport, used by one thread. Steps have slots: 0 at depth 1, 0 and 1
// in turn at depth 2; a pull has slot depth.
//
// A shard's messages are sent in the order of the plan, and a message only after its predecessor of
// the step before was answered: a server takes the sequence numbers of a block in ascending order
// only. At each server at most min(max_in_flight, its credits) are in flight. A call that fails
// because the server is unreachable is repeated with the same bytes after a pause in real time;
// RetryOptions::give_up_after counts from the message's first attempt. A shard may move to another
// server: what the one before has not acknowledged by then is sent to the new one with the same
// bytes, and answers that it gives later do not count.
//
// Rows of tables ride on the last message of a shard's plan. What does not fit follows in messages
// of their own, whose number is another in each step; they are the last parts of the push. With
// them the depth is 1.
class BulkExchange {
 public:
  // All outlive the exchange; `memory` is read and written from BeginStep or BeginPull to Publish.
  BulkExchange(ExchangeOptions options, const ShardPlans* plans, ExchangeMemory* memory,
               BulkTransport* transport, const Clock* clock, const StopSignal* stop);

  // The slot must be free: its last step was published. With an aggregation the messages are pushed
  // and their answers have no values.
  void BeginStep(size_t slot, int64_t step, std::optional<Aggregation> aggregation = std::nullopt);
  // The step has no gradient of the variable: what it has at servers stays as it is. Before
  // MessageReady of its blocks, and not with an aggregation.
  void Omit(size_t slot, size_t variable);
  // All gradients of the message's blocks are complete, or omitted.
  void MessageReady(size_t slot, MessageId id);
  // The step's rows are complete. With an aggregation none are wanted.
  void RowsReady(size_t slot, std::shared_ptr<RowTransfer> rows);
  // Fetches blocks that have changed, as they are for the step `values_for` (0: as they are now),
  // and the rows that `rows`, if any, wants. No step may be between BeginStep and Publish.
  void BeginPull(int64_t values_for, std::shared_ptr<RowTransfer> rows = nullptr);
  // The pull that is under way is no longer waited for when `wanted` becomes false; see
  // ParameterClient::PullFor. If it asks for the values for another step than `values_for`, it asks
  // again for what has not come.
  void AwaitPull(int64_t values_for, ParameterClient::StillWanted wanted);
  size_t pull_slot() const { return calls_.pull_slot(); }

  // `servers[s]` has shard s from now on. Shards whose server is the same are not disturbed.
  void SetServers(const std::vector<BulkServer>& servers);

  // Sends what may be sent, waits up to `timeout` for a call to end, and handles it. False when
  // none did. May return before `timeout`.
  bool Drive(absl::Duration timeout);

  // At depth 1: a variable whose values have arrived whole since the step began, and that was not
  // taken since; see ParameterClient::NextValues.
  std::optional<size_t> TakeLanded() { return landings_.Take(); }
  // All answers of the slot's step have landed.
  bool Landed(size_t slot) const { return calls_.step(slot).landed; }

  // All answers of the slot's step have landed, and nothing reads its gradients any more.
  bool Done(size_t slot) const;
  // Hands the values of a slot that is Done to the caller, and frees the slot.
  PushResult Publish(size_t slot);

  // The error that ended the exchange; nothing is sent any more. INTERNAL: a malformed answer.
  // CANCELLED: the stop signal. UNAVAILABLE, DEADLINE_EXCEEDED: a server was unreachable for
  // RetryOptions::give_up_after. Other errors are a server's; but FAILED_PRECONDITION for a step
  // with an aggregation is no error but its result (refused).
  const absl::Status& status() const { return status_; }

  // Call before the transport is destroyed: gives up the calls under way, and waits until nothing
  // reads gradients in the caller's memory.
  void Abandon();

 private:
  ExchangeStep* Begin(size_t slot, BulkMethod method, MessageCall::State state);
  void Handle(BulkCompletion completion);
  void FinishMessage(ExchangeStep* step, size_t shard, MessageCall* call);
  void CompleteStep(ExchangeStep* step);
  void CopyEarlyAnswers(const ExchangeStep& step);
  absl::Duration WaitLimit(absl::Duration timeout) const;
  void Fail(absl::Status status);

  ExchangeMemory* const memory_;
  BulkTransport* const transport_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  std::vector<BulkServer> servers_;  // by shard
  LandingTracker landings_;          // of depth 1
  ExchangeCalls calls_;
  MessageSender sender_;
  AnswerReader answers_;
  uint64_t sequence_ = 0;
  absl::Status status_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_BULK_EXCHANGE_H_
