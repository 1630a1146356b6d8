// The steps of an exchange with the calls of their messages, and the servers to which these go.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_CALLS_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_CALLS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/client/exchange/exchange_memory.h"
#include "core/client/exchange/exchange_options.h"
#include "core/client/exchange/exchange_state.h"
#include "core/client/exchange/outgoing_push.h"
#include "core/client/plan/transfer_plan.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// Not thread-safe. Slots are those of BulkExchange.
class ExchangeCalls {
 public:
  // `plans` and `memory` outlive this.
  ExchangeCalls(ExchangeOptions options, const ShardPlans* plans, const ExchangeMemory* memory);

  const ExchangeOptions& options() const { return options_; }
  const ShardPlans& plans() const { return plans_; }
  size_t pull_slot() const { return memory_->depth(); }

  // By slot.
  std::vector<ExchangeStep>& steps() { return steps_; }
  const std::vector<ExchangeStep>& steps() const { return steps_; }
  ExchangeStep& step(size_t slot) { return steps_[slot]; }
  const ExchangeStep& step(size_t slot) const { return steps_[slot]; }
  ServerState& server(size_t shard) { return servers_[shard]; }
  const ServerState& server(size_t shard) const { return servers_[shard]; }
  const MessageCall& CallOf(size_t slot, size_t shard, size_t message) const;
  MessageCall& CallOf(size_t slot, size_t shard, size_t message);

  // The step that begins in the slot, with the calls of the plan's messages in this state. Shards
  // without messages are done.
  ExchangeStep* Begin(size_t slot, BulkMethod method, MessageCall::State state);
  // Adds the calls of row messages that do not ride on one of the plan.
  void AddRowCalls(BulkMethod method, ExchangeStep* step);

  bool HasRows(size_t shard) const;
  // What the plan has of the message; one of rows alone has no blocks.
  const PlannedMessage& PlanOf(size_t shard, size_t message) const;
  // The message's number among the shard's row messages; none: it has no rows.
  std::optional<size_t> RowMessageOf(const ExchangeStep& step, size_t shard, size_t message) const;
  // The oldest step that has a message for the shard which may be sent now; null: none has.
  ExchangeStep* NextAt(size_t shard);

  // A request with what all of the shard have: who sends it, and under which placement.
  BulkRequest NewRequest(size_t shard) const;

 private:
  std::unique_ptr<OutgoingPush> MakePush(size_t slot, size_t shard,
                                         const PlannedMessage* plan) const;
  bool MayStart(const ExchangeStep& step, size_t shard) const;
  const ExchangeStep* OlderThan(const ExchangeStep& step) const;

  const ExchangeOptions options_;
  const ShardPlans& plans_;
  const PlannedMessage no_blocks_;
  const ExchangeMemory* const memory_;
  std::vector<ExchangeStep> steps_;
  std::vector<ServerState> servers_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_CALLS_H_
