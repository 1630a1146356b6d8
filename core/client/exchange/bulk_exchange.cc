// A step is done only when every shard has acknowledged every message, and a server may die between
// any two of them. So a message is encoded once and repeated with the same bytes and sequence until
// it is answered: the server's blocks skip what they have applied. Error feedback forces this too,
// because encoding changes the residual. Gradients are sent in place, so a slot is reusable only
// when the transport has released them, which may be after the answer (ReleaseGradients).
#include "core/client/exchange/bulk_exchange.h"

#include <algorithm>
#include <utility>

#include "core/client/exchange/gradient_release.h"
#include "core/client/services/retry.h"

namespace keelson {
namespace {

using State = MessageCall::State;

// How often the stop signal is checked while calls are under way.
constexpr absl::Duration kStopPoll = absl::Milliseconds(100);

}  // namespace

BulkExchange::BulkExchange(ExchangeOptions options, const ShardPlans* plans, ExchangeMemory* memory,
                           BulkTransport* transport, const Clock* clock, const StopSignal* stop)
    : memory_(memory),
      transport_(transport),
      clock_(clock),
      stop_(stop),
      servers_(options.servers),
      landings_(*plans, memory->num_variables()),
      calls_(std::move(options), plans, memory),
      sender_(&calls_, memory, transport, clock),
      answers_(&calls_, memory, &landings_) {}

// ---- Steps.

ExchangeStep* BulkExchange::Begin(size_t slot, BulkMethod method, State state) {
  ExchangeStep* const step = calls_.Begin(slot, method, state);
  if (step->rounds_done == step->rounds.size()) CompleteStep(step);
  return step;
}

void BulkExchange::BeginStep(size_t slot, int64_t step_number,
                             std::optional<Aggregation> aggregation) {
  const BulkMethod method = aggregation.has_value() ? BulkMethod::kPush : BulkMethod::kPushPull;
  ExchangeStep* const step = Begin(slot, method, State::kIncomplete);
  step->aggregation = aggregation;
  step->sequence = ++sequence_;
  landings_.Reset();
  step->result.step = step_number;
}

void BulkExchange::BeginPull(int64_t values_for, std::shared_ptr<RowTransfer> rows) {
  ExchangeStep* const step = Begin(pull_slot(), BulkMethod::kPull, State::kReady);
  step->values_for = values_for;
  step->first_ready = clock_->Monotonic();
  step->rows = std::move(rows);
  calls_.AddRowCalls(BulkMethod::kPull, step);
}

void BulkExchange::AwaitPull(int64_t values_for, ParameterClient::StillWanted wanted) {
  ExchangeStep& step = calls_.step(pull_slot());
  step.wanted = std::move(wanted);
  if (std::exchange(step.values_for, values_for) == values_for || step.landed) return;
  sender_.AskAgain(pull_slot());
}

void BulkExchange::Omit(size_t slot, size_t variable) {
  std::vector<uint8_t>& absent = calls_.step(slot).absent;
  absent.resize(memory_->num_variables());
  absent[variable] = 1;
}

void BulkExchange::MessageReady(size_t slot, MessageId id) {
  ExchangeStep& step = calls_.step(slot);
  MessageCall& call = step.rounds[id.shard].calls[id.message];
  call.blocks_ready = true;
  if (call.awaits_rows) return;
  if (!step.first_ready.has_value()) step.first_ready = clock_->Monotonic();
  call.state = State::kReady;
}

void BulkExchange::RowsReady(size_t slot, std::shared_ptr<RowTransfer> rows) {
  ExchangeStep& step = calls_.step(slot);
  step.rows = std::move(rows);
  calls_.AddRowCalls(step.aggregation.has_value() ? BulkMethod::kPush : BulkMethod::kPushPull,
                     &step);
  for (size_t s = 0; s < calls_.plans().size(); ++s) {
    if (!calls_.HasRows(s)) continue;
    const MessageId last{s, calls_.plans()[s].size() - 1};
    MessageCall& call = calls_.CallOf(slot, s, last.message);
    call.awaits_rows = false;
    if (call.blocks_ready) MessageReady(slot, last);
  }
}

bool BulkExchange::Done(size_t slot) const {
  const ExchangeStep& step = calls_.step(slot);
  return step.landed && !AnyHeld(step);
}

PushResult BulkExchange::Publish(size_t slot) {
  ExchangeStep& step = calls_.step(slot);
  step.active = false;
  step.rows.reset();
  if (step.aggregation.has_value()) return step.result;  // no values were sent
  for (size_t s = 0; s < step.rounds.size(); ++s) {
    if (!step.rounds[s].calls.empty())
      calls_.server(s).shard_step = step.rounds[s].landed_shard_step;
    // No push is under way during a pull.
    std::vector<uint64_t>& sequences = calls_.server(s).value_sequences;
    std::fill(sequences.begin(), sequences.end(), slot == pull_slot() ? sequence_ : step.sequence);
  }
  if (slot != pull_slot() && memory_->depth() > 1) {
    memory_->SwapLanding();
    for (const ExchangeStep& other : calls_.steps()) {
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
      for (const PlannedBlock& block : calls_.plans()[s][m].blocks) memory_->CopyToLanding(block);
      calls_.server(s).value_sequences[m] = step.sequence;
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

void BulkExchange::SetServers(const std::vector<BulkServer>& servers) {
  servers_.resize(servers.size());
  for (size_t s = 0; s < servers.size(); ++s) {
    if (servers[s] == servers_[s]) continue;
    servers_[s] = servers[s];
    sender_.Redirect(s, servers[s]);
  }
}

// ---- Driving.

bool BulkExchange::Drive(absl::Duration timeout) {
  if (status_.ok() && stop_->raised()) {
    // Returning false makes the caller check the status before it waits again.
    Fail(absl::CancelledError("asked to stop"));
    return false;
  }
  if (status_.ok()) {
    sender_.Start();
    ReleaseGradients(absl::MakeSpan(calls_.steps()), transport_);
  }
  if (!sender_.any_in_flight() && timeout <= absl::ZeroDuration()) return false;
  std::optional<BulkCompletion> completion = transport_->Next(WaitLimit(timeout));
  if (!completion.has_value()) return false;
  Handle(*std::move(completion));
  return true;
}

absl::Duration BulkExchange::WaitLimit(absl::Duration timeout) const {
  if (!status_.ok()) return timeout;
  if (sender_.any_in_flight() || sender_.any_pausing()) timeout = std::min(timeout, kStopPoll);
  timeout = sender_.WaitLimit(timeout);
  for (const ExchangeStep& step : calls_.steps()) {
    if (step.active && step.landed && AnyHeld(step)) timeout = std::min(timeout, kReleasePoll);
  }
  return timeout;
}

void BulkExchange::Fail(absl::Status status) { status_ = std::move(status); }

// Nobody else keeps the caller's memory alive; the exchange's own is shared with who reads it.
void BulkExchange::Abandon() {
  AbandonGradients(calls_.steps(), /*lent=*/memory_->owner() == nullptr, transport_);
}

// ---- Answers.

void BulkExchange::Handle(BulkCompletion completion) {
  const CallId id = FromTag(completion.tag);
  sender_.NoteEnded(id);
  if (!status_.ok() || sender_.RepeatRedirected(id)) return;
  absl::Status status = completion.status;
  if (sender_.RepeatWaiting(id, status)) return;
  // A server that has no room for a message at the moment refuses it as RESOURCE_EXHAUSTED.
  if (IsTransient(status) || absl::IsResourceExhausted(status)) {
    const absl::Status paused = sender_.Repeat(id, status);
    if (!paused.ok()) Fail(paused);
    return;
  }
  ExchangeStep& step = calls_.step(id.slot);
  if (status.ok()) {
    status = answers_.Receive(id.slot, id.shard, id.message, completion.response);
  } else if (step.aggregation.has_value() &&
             status.code() == absl::StatusCode::kFailedPrecondition) {
    step.result.refused = true;
    status = absl::OkStatus();
  }
  if (!status.ok()) return Fail(std::move(status));
  FinishMessage(&step, id.shard, &calls_.CallOf(id.slot, id.shard, id.message));
}

void BulkExchange::FinishMessage(ExchangeStep* step, size_t shard, MessageCall* call) {
  call->state = State::kDone;
  ShardRound& round = step->rounds[shard];
  if (++round.done < round.calls.size()) return;
  // The values of earlier answers, which came from another store, are replaced.
  if (std::exchange(round.store_changed, false) && !step->aggregation.has_value() &&
      !answers_.Current(*step, shard)) {
    round.pulling = true;
    StartRound(BulkMethod::kPull, State::kReady, &round);
    return;
  }
  round.pulling = false;
  if (++step->rounds_done == step->rounds.size()) CompleteStep(step);
}

}  // namespace keelson
