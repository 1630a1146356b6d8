// A step is done only when every shard has acknowledged every message, and a server may die between
// any two of them. So a message is encoded once and repeated with the same bytes and sequence until
// it is answered: the server's blocks skip what they have applied. Error feedback forces this too,
// because encoding changes the residual. Gradients are sent in place, so a slot is reusable only
// when the transport has released them, which may be after the answer (ReleaseGradients).
#include "core/client/exchange/bulk_exchange.h"

#include <algorithm>
#include <utility>

#include "core/client/exchange/gradient_release.h"
#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

using State = MessageCall::State;

// The credits of a server that has not yet granted any.
constexpr uint32_t kUnknownCredits = 4;
// How often the stop signal is checked while calls are under way.
constexpr absl::Duration kStopPoll = absl::Milliseconds(100);

BulkRequest CommonRequest(const ExchangeOptions& options) {
  BulkRequest request;
  const v1::TaskId task = TaskToProto(options.self);
  request.role = task.role();
  request.task_index = task.index();
  request.incarnation = options.membership.incarnation;
  request.membership_secret = options.membership.secret;
  request.member_epoch = options.member_epoch;
  request.placement_fingerprint = options.placement_fingerprint;
  return request;
}

bool HasFeedback(WireFormat format) { return !IsElementwise(format); }

// Gradients that are bytes already were encoded with the encoder's own error feedback.
std::vector<std::vector<float>> MakeResiduals(const ShardPlans& plans,
                                              absl::Span<const absl::Span<float>> values) {
  std::vector<std::vector<float>> residuals(values.size());
  if (values.empty()) return residuals;
  for (const auto& messages : plans) {
    for (const PlannedMessage& message : messages) {
      for (const PlannedBlock& block : message.blocks) {
        const size_t v = block.variable;
        if (HasFeedback(block.push)) residuals[v].resize(values[v].size());
      }
    }
  }
  return residuals;
}

}  // namespace

BulkExchange::BulkExchange(ExchangeOptions options, const ShardPlans* plans, ExchangeMemory* memory,
                           BulkTransport* transport, const Clock* clock, const StopSignal* stop)
    : options_(std::move(options)),
      plans_(*plans),
      memory_(memory),
      transport_(transport),
      clock_(clock),
      stop_(stop),
      residuals_(MakeResiduals(*plans, memory->values().elements)),
      landings_(*plans, memory->num_variables()),
      steps_(memory->depth() + 1),
      servers_(plans->size()) {
  for (size_t slot = 0; slot <= memory->depth(); ++slot) {
    ExchangeStep& step = steps_[slot];
    step.slot = slot;
    for (const auto& messages : plans_) {
      ShardRound& round = step.rounds.emplace_back();
      round.calls.resize(messages.size());
      if (slot == pull_slot()) continue;
      for (size_t m = 0; m < messages.size(); ++m) {
        round.calls[m].push = MakePush(slot, &messages[m]);
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

std::unique_ptr<OutgoingPush> BulkExchange::MakePush(size_t slot,
                                                     const PlannedMessage* plan) const {
  BulkRequest request = CommonRequest(options_);
  request.steps_under_way = static_cast<uint32_t>(memory_->depth());
  return std::make_unique<OutgoingPush>(plan, std::move(request), memory_->gradients(slot),
                                        memory_->owner());
}

// ---- Steps.

ExchangeStep* BulkExchange::Activate(size_t slot, BulkMethod method, State state) {
  ExchangeStep& step = steps_[slot];
  step.active = true;
  step.landed = false;
  step.reset = false;
  step.sequence = 0;
  step.rounds_done = 0;
  step.first_ready.reset();
  step.held_since.reset();
  step.aggregation.reset();
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
  if (step.rounds_done == step.rounds.size()) CompleteStep(&step);
  return &step;
}

void BulkExchange::BeginStep(size_t slot, int64_t step_number,
                             std::optional<Aggregation> aggregation) {
  const BulkMethod method = aggregation.has_value() ? BulkMethod::kPush : BulkMethod::kPushPull;
  ExchangeStep* const step = Activate(slot, method, State::kIncomplete);
  step->aggregation = aggregation;
  step->sequence = ++sequence_;
  landings_.Reset();
  step->result.step = step_number;
}

void BulkExchange::BeginPull(std::shared_ptr<RowTransfer> rows) {
  ExchangeStep* const step = Activate(pull_slot(), BulkMethod::kPull, State::kReady);
  step->first_ready = clock_->Monotonic();
  step->rows = std::move(rows);
  AddRowCalls(BulkMethod::kPull, step);
}

void BulkExchange::MessageReady(size_t slot, MessageId id) {
  ExchangeStep& step = steps_[slot];
  MessageCall& call = step.rounds[id.shard].calls[id.message];
  call.blocks_ready = true;
  if (call.awaits_rows) return;
  if (!step.first_ready.has_value()) step.first_ready = clock_->Monotonic();
  call.state = State::kReady;
}

void BulkExchange::RowsReady(size_t slot, std::shared_ptr<RowTransfer> rows) {
  ExchangeStep& step = steps_[slot];
  step.rows = std::move(rows);
  AddRowCalls(step.aggregation.has_value() ? BulkMethod::kPush : BulkMethod::kPushPull, &step);
  for (size_t s = 0; s < plans_.size(); ++s) {
    if (!HasRows(s)) continue;
    const MessageId last{s, plans_[s].size() - 1};
    MessageCall& call = CallOf(slot, s, last.message);
    call.awaits_rows = false;
    if (call.blocks_ready) MessageReady(slot, last);
  }
}

bool BulkExchange::HasRows(size_t shard) const {
  return !options_.shards_with_rows.empty() && options_.shards_with_rows[shard];
}

// The calls of row messages that do not ride on one of the plan.
void BulkExchange::AddRowCalls(BulkMethod method, ExchangeStep* step) {
  if (step->rows == nullptr) return;
  for (size_t s = 0; s < plans_.size(); ++s) {
    std::vector<MessageCall>& calls = step->rounds[s].calls;
    for (size_t i = 1; i < step->rows->num_messages(s); ++i) {
      MessageCall& call = calls.emplace_back();
      call.state = State::kReady;
      call.method = method;
      if (method == BulkMethod::kPull) continue;
      call.base_sequence = step->sequence - 1;
      call.push = MakePush(step->slot, &no_blocks_);
    }
  }
}

bool BulkExchange::Done(size_t slot) const {
  const ExchangeStep& step = steps_[slot];
  return step.landed && !AnyHeld(step);
}

PushResult BulkExchange::Publish(size_t slot) {
  ExchangeStep& step = steps_[slot];
  step.active = false;
  step.rows.reset();
  if (step.aggregation.has_value()) return step.result;  // no values were sent
  for (size_t s = 0; s < step.rounds.size(); ++s) {
    if (!step.rounds[s].calls.empty()) servers_[s].shard_step = step.rounds[s].landed_shard_step;
    // No push is under way during a pull.
    std::vector<uint64_t>& sequences = servers_[s].value_sequences;
    std::fill(sequences.begin(), sequences.end(), slot == pull_slot() ? sequence_ : step.sequence);
  }
  if (slot != pull_slot() && memory_->depth() > 1) {
    memory_->SwapLanding();
    for (const ExchangeStep& other : steps_) {
      if (other.active) CopyEarlyAnswers(other);
    }
  }
  return step.result;
}

// Answers of the next step that landed before this one was published are now in values(), and are
// missing in the set where that step's other answers will land.
void BulkExchange::CopyEarlyAnswers(const ExchangeStep& step) {
  for (size_t s = 0; s < step.rounds.size(); ++s) {
    for (size_t m = 0; m < step.rounds[s].calls.size(); ++m) {
      if (!step.rounds[s].calls[m].landed) continue;
      for (const PlannedBlock& block : plans_[s][m].blocks) memory_->CopyToLanding(block);
      servers_[s].value_sequences[m] = step.sequence;
    }
  }
}

void BulkExchange::CompleteStep(ExchangeStep* step) {
  step->landed = true;
  const absl::Duration now = clock_->Monotonic();
  if (step->held_since.has_value()) {
    step->result.waited_for_credit += now - *step->held_since;
    step->held_since.reset();
  }
  step->result.duration = now - step->first_ready.value_or(now);
}

const ExchangeStep* BulkExchange::OlderThan(const ExchangeStep& step) const {
  for (const ExchangeStep& other : steps_) {
    if (other.active && !other.landed && other.sequence < step.sequence) return &other;
  }
  return nullptr;
}

// ---- Driving.

bool BulkExchange::Drive(absl::Duration timeout) {
  if (status_.ok() && stop_->raised()) {
    // Returning false makes the caller check the status before it waits again.
    Fail(absl::CancelledError("asked to stop"));
    return false;
  }
  if (status_.ok()) {
    StartMessages();
    ReleaseGradients(absl::MakeSpan(steps_), transport_);
  }
  if (in_flight_ == 0 && timeout <= absl::ZeroDuration()) return false;
  std::optional<BulkCompletion> completion = transport_->Next(WaitLimit(timeout));
  if (!completion.has_value()) return false;
  Handle(*std::move(completion));
  return true;
}

absl::Duration BulkExchange::WaitLimit(absl::Duration timeout) const {
  if (!status_.ok()) return timeout;
  if (in_flight_ > 0 || !pausing_.empty()) timeout = std::min(timeout, kStopPoll);
  for (const uint64_t tag : pausing_) {
    const CallId id = FromTag(tag);
    const absl::Duration left = CallOf(id.slot, id.shard, id.message).retry_at - RealTime();
    timeout = std::clamp(left, absl::ZeroDuration(), timeout);
  }
  for (const ExchangeStep& step : steps_) {
    if (step.active && step.landed && AnyHeld(step)) timeout = std::min(timeout, kReleasePoll);
  }
  return timeout;
}

const PlannedMessage& BulkExchange::PlanOf(size_t shard, size_t message) const {
  return message < plans_[shard].size() ? plans_[shard][message] : no_blocks_;
}

std::optional<size_t> BulkExchange::RowMessageOf(const ExchangeStep& step, size_t shard,
                                                 size_t message) const {
  if (step.rows == nullptr || !HasRows(shard) || message + 1 < plans_[shard].size()) {
    return std::nullopt;
  }
  return message + 1 - plans_[shard].size();
}

const MessageCall& BulkExchange::CallOf(size_t slot, size_t shard, size_t message) const {
  return steps_[slot].rounds[shard].calls[message];
}

MessageCall& BulkExchange::CallOf(size_t slot, size_t shard, size_t message) {
  return const_cast<MessageCall&>(std::as_const(*this).CallOf(slot, shard, message));
}

void BulkExchange::Fail(absl::Status status) { status_ = std::move(status); }

// Nobody else keeps the caller's memory alive; the exchange's own is shared with who reads it.
void BulkExchange::Abandon() {
  AbandonGradients(steps_, /*lent=*/memory_->owner() == nullptr, transport_);
}

// ---- Sending.

void BulkExchange::StartMessages() {
  RetryDue();
  ExchangeStep* held = nullptr;
  bool started = true;
  // Servers take turns, so that none waits until all messages of another are written.
  while (started) {
    started = false;
    held = nullptr;
    for (size_t s = 0; s < servers_.size(); ++s) started |= StartNext(s, &held);
  }
  NoteHeldBack(held);
}

bool BulkExchange::StartNext(size_t shard, ExchangeStep** held) {
  ExchangeStep* const step = NextAt(shard);
  if (step == nullptr) return false;
  const ServerState& server = servers_[shard];
  if (server.in_flight >= InFlightLimit(server)) {
    if (InFlightLimit(server) < options_.max_in_flight) *held = step;
    return false;
  }
  ShardRound& round = step->rounds[shard];
  Launch(step->slot, shard, round.next++);
  return true;
}

// The oldest step that has a message for the shard.
ExchangeStep* BulkExchange::NextAt(size_t shard) {
  ExchangeStep* oldest = nullptr;
  for (ExchangeStep& step : steps_) {
    if (!step.active || step.landed) continue;
    if (oldest != nullptr && oldest->sequence < step.sequence) continue;
    if (MayStart(step, shard)) oldest = &step;
  }
  return oldest;
}

bool BulkExchange::MayStart(const ExchangeStep& step, size_t shard) const {
  const ShardRound& round = step.rounds[shard];
  if (round.next == round.calls.size() || round.calls[round.next].state != State::kReady) {
    return false;
  }
  const ExchangeStep* const older = OlderThan(step);
  return older == nullptr || (older->rounds[shard].calls[round.next].state == State::kDone &&
                              !older->rounds[shard].pulling);
}

int BulkExchange::InFlightLimit(const ServerState& server) const {
  const uint32_t credits = server.credits == 0 ? kUnknownCredits : server.credits;
  return static_cast<int>(std::min(static_cast<uint32_t>(options_.max_in_flight), credits));
}

void BulkExchange::NoteHeldBack(ExchangeStep* held) {
  for (ExchangeStep& step : steps_) {
    if (&step == held && !step.held_since.has_value()) {
      step.held_since = clock_->Monotonic();
    } else if (&step != held && step.held_since.has_value()) {
      step.result.waited_for_credit += clock_->Monotonic() - *step.held_since;
      step.held_since.reset();
    }
  }
}

void BulkExchange::RetryDue() {
  if (pausing_.empty()) return;
  const absl::Duration now = RealTime();
  for (const uint64_t tag : std::exchange(pausing_, {})) {
    const CallId id = FromTag(tag);
    const ServerState& server = servers_[id.shard];
    if (CallOf(id.slot, id.shard, id.message).retry_at <= now &&
        server.in_flight < InFlightLimit(server)) {
      Launch(id.slot, id.shard, id.message);
    } else {
      pausing_.push_back(tag);
    }
  }
}

void BulkExchange::Launch(size_t slot, size_t shard, size_t message) {
  ExchangeStep& step = steps_[slot];
  const ShardRound& round = step.rounds[shard];
  MessageCall& call = CallOf(slot, shard, message);
  ServerState& server = servers_[shard];
  const bool pull = call.method == BulkMethod::kPull;
  if (!call.attempted) {
    call.first_start = clock_->Monotonic();
    call.pause = options_.retry.first_pause;
    if (!pull) {
      // Answers to steps with an aggregation bring no values, so the base may be any time ago.
      const uint64_t unseen =
          std::min<uint64_t>(step.sequence - 1 - call.base_sequence, memory_->depth() - 1);
      const std::optional<size_t> rows = RowMessageOf(step, shard, message);
      call.push->Encode({step.sequence, step.result.step, round.pulled_shard_step,
                         static_cast<uint32_t>(unseen), step.aggregation,
                         /*last_part=*/message + 1 == round.calls.size(),
                         rows.has_value() ? step.rows->message(shard, *rows) : nullptr},
                        absl::MakeSpan(residuals_));
    }
  }
  call.attempted = true;
  call.state = State::kInFlight;
  call.asked_store = server.store_id;
  ++server.in_flight;
  ++in_flight_;
  transport_->Start(shard, call.method, pull ? EncodePull(slot, shard, message) : call.push->Rope(),
                    options_.call_timeout, ToTag({slot, shard, message}));
}

ByteRope BulkExchange::EncodePull(size_t slot, size_t shard, size_t message) const {
  BulkRequest request = CommonRequest(options_);
  request.ranges = PlanOf(shard, message).ranges;
  for (BlockRange& range : request.ranges) {
    range.format = std::exchange(range.pull_format, WireFormat::kFloat32);
  }
  if (message < plans_[shard].size()) {
    request.known_versions = servers_[shard].known_versions[message];
  }
  const std::optional<size_t> i = RowMessageOf(steps_[slot], shard, message);
  const auto rows = i.has_value() ? steps_[slot].rows->message(shard, *i) : nullptr;
  const size_t row_bytes = rows == nullptr ? 0 : rows->read_bytes();
  if (rows != nullptr) request.rows.assign(rows->reads().begin(), rows->reads().end());
  ByteRope rope;
  rope.AppendOwned(EncodeBulkRequest(request, row_bytes));
  if (row_bytes > 0) rope.Append(RowMessage::ReadPayload(rows));
  return rope;
}

}  // namespace keelson
