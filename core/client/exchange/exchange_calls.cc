#include "core/client/exchange/exchange_calls.h"

#include <utility>

#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

using State = MessageCall::State;

}  // namespace

ExchangeCalls::ExchangeCalls(ExchangeOptions options, const ShardPlans* plans,
                             const ExchangeMemory* memory)
    : options_(std::move(options)),
      plans_(*plans),
      memory_(memory),
      steps_(memory->depth() + 1),
      servers_(plans->size()) {
  for (size_t slot = 0; slot <= memory->depth(); ++slot) {
    ExchangeStep& step = steps_[slot];
    step.slot = slot;
    for (size_t s = 0; s < plans_.size(); ++s) {
      const auto& messages = plans_[s];
      ShardRound& round = step.rounds.emplace_back();
      round.calls.resize(messages.size());
      if (slot == pull_slot()) continue;
      for (size_t m = 0; m < messages.size(); ++m) {
        round.calls[m].push = MakePush(slot, s, &messages[m]);
      }
    }
  }
  for (size_t s = 0; s < plans_.size(); ++s) {
    for (const PlannedMessage& message : plans_[s]) {
      servers_[s].known_versions.emplace_back(message.blocks.size());
    }
    servers_[s].value_sequences.resize(plans_[s].size());
  }
}

BulkRequest ExchangeCalls::NewRequest(size_t shard) const {
  BulkRequest request;
  const v1::TaskId task = TaskToProto(options_.self);
  request.role = task.role();
  request.task_index = task.index();
  request.incarnation = options_.membership.incarnation;
  request.membership_secret = options_.membership.secret;
  request.member_epoch = options_.member_epoch;
  request.placement_fingerprint = options_.placement_fingerprint;
  if (options_.names_shards) request.shard = static_cast<uint32_t>(shard) + 1;
  return request;
}

std::unique_ptr<OutgoingPush> ExchangeCalls::MakePush(size_t slot, size_t shard,
                                                      const PlannedMessage* plan) const {
  BulkRequest request = NewRequest(shard);
  request.steps_under_way = static_cast<uint32_t>(memory_->depth());
  return std::make_unique<OutgoingPush>(plan, std::move(request), memory_->gradients(slot),
                                        memory_->owner());
}

ExchangeStep* ExchangeCalls::Begin(size_t slot, BulkMethod method, State state) {
  ExchangeStep& step = steps_[slot];
  step.active = true;
  step.landed = false;
  step.reset = false;
  step.sequence = 0;
  step.values_for = 0;
  step.wanted = nullptr;
  step.rounds_done = 0;
  step.first_ready.reset();
  step.held_since.reset();
  step.aggregation.reset();
  step.absent.clear();
  step.result = {};
  for (size_t s = 0; s < step.rounds.size(); ++s) {
    ShardRound& round = step.rounds[s];
    round.calls.resize(plans_[s].size());
    StartRound(method, state, &round);
    round.pulling = false;
    round.store_changed = false;
    round.pulled_shard_step = servers_[s].shard_step;
    for (size_t m = 0; m < round.calls.size(); ++m) {
      round.calls[m].landed = false;
      round.calls[m].blocks_ready = plans_[s][m].blocks.empty();
      round.calls[m].awaits_rows = HasRows(s) && m + 1 == round.calls.size();
      round.calls[m].base_sequence = servers_[s].value_sequences[m];
    }
    if (round.calls.empty()) ++step.rounds_done;
  }
  return &step;
}

void ExchangeCalls::AddRowCalls(BulkMethod method, ExchangeStep* step) {
  if (step->rows == nullptr) return;
  for (size_t s = 0; s < plans_.size(); ++s) {
    std::vector<MessageCall>& calls = step->rounds[s].calls;
    for (size_t i = 1; i < step->rows->num_messages(s); ++i) {
      MessageCall& call = calls.emplace_back();
      call.state = State::kReady;
      call.method = method;
      if (method == BulkMethod::kPull) continue;
      call.base_sequence = step->sequence - 1;
      call.push = MakePush(step->slot, s, &no_blocks_);
    }
  }
}

bool ExchangeCalls::HasRows(size_t shard) const {
  return !options_.shards_with_rows.empty() && options_.shards_with_rows[shard];
}

const PlannedMessage& ExchangeCalls::PlanOf(size_t shard, size_t message) const {
  return message < plans_[shard].size() ? plans_[shard][message] : no_blocks_;
}

std::optional<size_t> ExchangeCalls::RowMessageOf(const ExchangeStep& step, size_t shard,
                                                  size_t message) const {
  if (step.rows == nullptr || !HasRows(shard) || message + 1 < plans_[shard].size()) {
    return std::nullopt;
  }
  return message + 1 - plans_[shard].size();
}

const MessageCall& ExchangeCalls::CallOf(size_t slot, size_t shard, size_t message) const {
  return steps_[slot].rounds[shard].calls[message];
}

MessageCall& ExchangeCalls::CallOf(size_t slot, size_t shard, size_t message) {
  return const_cast<MessageCall&>(std::as_const(*this).CallOf(slot, shard, message));
}

const ExchangeStep* ExchangeCalls::OlderThan(const ExchangeStep& step) const {
  for (const ExchangeStep& other : steps_) {
    if (other.active && !other.landed && other.sequence < step.sequence) return &other;
  }
  return nullptr;
}

ExchangeStep* ExchangeCalls::NextAt(size_t shard) {
  ExchangeStep* oldest = nullptr;
  for (ExchangeStep& step : steps_) {
    if (!step.active || step.landed) continue;
    if (oldest != nullptr && oldest->sequence < step.sequence) continue;
    if (MayStart(step, shard)) oldest = &step;
  }
  return oldest;
}

bool ExchangeCalls::MayStart(const ExchangeStep& step, size_t shard) const {
  const ShardRound& round = step.rounds[shard];
  if (round.next == round.calls.size() || round.calls[round.next].state != State::kReady) {
    return false;
  }
  const ExchangeStep* const older = OlderThan(step);
  return older == nullptr || (older->rounds[shard].calls[round.next].state == State::kDone &&
                              !older->rounds[shard].pulling);
}

}  // namespace keelson
