#include "core/client/exchange/message_sender.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {
namespace {

using State = MessageCall::State;

// The credits of a server that has not yet granted any.
constexpr uint32_t kUnknownCredits = 4;

// How long the first call waits for a step to be committed before it is made again, and the pause
// before.
constexpr absl::Duration kFirstWait = absl::Seconds(1);
constexpr absl::Duration kWaitPause = absl::Milliseconds(1);

// The time for pauses, which is real even when a test moves the clock.
absl::Duration RealTime() { return Clock::Real()->Monotonic(); }

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

std::string WaitingFor(BulkMethod method, size_t shard) {
  return absl::StrCat(method == BulkMethod::kPull ? "pulling from" : "pushing to", " ps-", shard);
}

}  // namespace

MessageSender::MessageSender(ExchangeCalls* calls, const ExchangeMemory* memory,
                             BulkTransport* transport, const Clock* clock)
    : calls_(calls),
      memory_(memory),
      transport_(transport),
      clock_(clock),
      residuals_(MakeResiduals(calls->plans(), memory->values().elements)) {}

void MessageSender::Start() {
  RetryDue();
  ExchangeStep* held = nullptr;
  bool started = true;
  // Servers take turns, so that none waits until all messages of another are written.
  while (started) {
    started = false;
    held = nullptr;
    const size_t shards = calls_->plans().size();
    for (size_t i = 0; i < shards; ++i) {
      started |= StartNext((options().first_shard + i) % shards, &held);
    }
  }
  NoteHeldBack(held);
}

bool MessageSender::StartNext(size_t shard, ExchangeStep** held) {
  ExchangeStep* const step = calls_->NextAt(shard);
  if (step == nullptr) return false;
  const ServerState& server = calls_->server(shard);
  if (server.in_flight >= InFlightLimit(server)) {
    if (InFlightLimit(server) < options().max_in_flight) *held = step;
    return false;
  }
  ShardRound& round = step->rounds[shard];
  Launch(step->slot, shard, round.next++);
  return true;
}

int MessageSender::InFlightLimit(const ServerState& server) const {
  const uint32_t credits = server.credits == 0 ? kUnknownCredits : server.credits;
  return static_cast<int>(std::min(static_cast<uint32_t>(options().max_in_flight), credits));
}

void MessageSender::NoteHeldBack(ExchangeStep* held) {
  for (ExchangeStep& step : calls_->steps()) {
    if (&step == held && !step.held_since.has_value()) {
      step.held_since = clock_->Monotonic();
    } else if (&step != held && step.held_since.has_value()) {
      step.result.waited_for_credit += clock_->Monotonic() - *step.held_since;
      step.held_since.reset();
    }
  }
}

void MessageSender::RetryDue() {
  if (pausing_.empty()) return;
  const absl::Duration now = RealTime();
  for (const uint64_t tag : std::exchange(pausing_, {})) {
    const CallId id = FromTag(tag);
    const ServerState& server = calls_->server(id.shard);
    if (calls_->CallOf(id.slot, id.shard, id.message).retry_at <= now &&
        server.in_flight < InFlightLimit(server)) {
      Launch(id.slot, id.shard, id.message);
    } else {
      pausing_.push_back(tag);
    }
  }
}

void MessageSender::Launch(size_t slot, size_t shard, size_t message) {
  ExchangeStep& step = calls_->step(slot);
  const ShardRound& round = step.rounds[shard];
  MessageCall& call = calls_->CallOf(slot, shard, message);
  ServerState& server = calls_->server(shard);
  const bool pull = call.method == BulkMethod::kPull;
  if (!call.attempted) {
    call.first_start = clock_->Monotonic();
    call.pause = options().retry.first_pause;
    call.patience = std::min(kFirstWait, options().call_timeout);
    if (!pull) {
      // Answers to steps with an aggregation bring no values, so the base may be any time ago.
      const uint64_t unseen =
          std::min<uint64_t>(step.sequence - 1 - call.base_sequence, memory_->depth() - 1);
      const std::optional<size_t> rows = calls_->RowMessageOf(step, shard, message);
      call.push->Encode(
          {step.sequence, step.result.step, round.pulled_shard_step, static_cast<uint32_t>(unseen),
           step.aggregation,
           /*last_part=*/message + 1 == round.calls.size(),
           rows.has_value() ? step.rows->message(shard, *rows) : nullptr, step.absent},
          absl::MakeSpan(residuals_));
    }
  }
  call.attempted = true;
  call.redirected = false;
  call.state = State::kInFlight;
  call.asked_store = server.store_id;
  ++server.in_flight;
  ++in_flight_;
  const bool waits = pull && step.values_for != 0;
  transport_->Start(shard, call.method, pull ? EncodePull(slot, shard, message) : call.push->Rope(),
                    waits ? call.patience : options().call_timeout, ToTag({slot, shard, message}));
}

ByteRope MessageSender::EncodePull(size_t slot, size_t shard, size_t message) const {
  BulkRequest request = calls_->NewRequest(shard);
  request.step = calls_->step(slot).values_for;
  request.ranges = calls_->PlanOf(shard, message).ranges;
  for (BlockRange& range : request.ranges) {
    range.format = std::exchange(range.pull_format, WireFormat::kFloat32);
  }
  if (message < calls_->plans()[shard].size()) {
    request.known_versions = calls_->server(shard).known_versions[message];
  }
  const std::optional<size_t> i = calls_->RowMessageOf(calls_->step(slot), shard, message);
  const auto rows = i.has_value() ? calls_->step(slot).rows->message(shard, *i) : nullptr;
  const size_t row_bytes = rows == nullptr ? 0 : rows->read_bytes();
  if (rows != nullptr) request.rows.assign(rows->reads().begin(), rows->reads().end());
  ByteRope rope;
  rope.AppendOwned(EncodeBulkRequest(request, row_bytes));
  if (row_bytes > 0) rope.Append(RowMessage::ReadPayload(rows));
  return rope;
}

void MessageSender::NoteEnded(const CallId& id) {
  --in_flight_;
  --calls_->server(id.shard).in_flight;
}

absl::Status MessageSender::Repeat(const CallId& id, const absl::Status& status) {
  MessageCall& call = calls_->CallOf(id.slot, id.shard, id.message);
  ServerState& server = calls_->server(id.shard);
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration waited = now - call.first_start;
  const auto text = [&] {
    return absl::StrCat(WaitingFor(call.method, id.shard), " for ", absl::FormatDuration(waited),
                        ": ", status.message());
  };
  if (waited >= options().retry.give_up_after) return absl::Status(status.code(), text());
  if (now - std::max(call.first_start, server.reported) >= options().retry.report_every) {
    LogWarning(text());
    server.reported = now;
  }
  ++calls_->step(id.slot).result.retries;
  call.state = State::kPausing;
  call.retry_at = RealTime() + call.pause;
  call.pause = NextPause(options().retry, call.pause);
  pausing_.push_back(ToTag(id));
  return absl::OkStatus();
}

void MessageSender::Redirect(size_t shard, const BulkServer& server) {
  transport_->Redirect(shard, server);
  // The next answer grants those of the new server.
  calls_->server(shard).credits = 0;
  for (ExchangeStep& step : calls_->steps()) {
    if (!step.active) continue;
    for (MessageCall& call : step.rounds[shard].calls) {
      if (call.state == State::kInFlight) call.redirected = true;
      if (call.state == State::kPausing) RetryAtOnce(&call);
    }
  }
}

bool MessageSender::RepeatRedirected(const CallId& id) {
  MessageCall& call = calls_->CallOf(id.slot, id.shard, id.message);
  if (!call.redirected) return false;
  ++calls_->step(id.slot).result.retries;
  RepeatAtOnce(id, &call);
  return true;
}

bool MessageSender::RepeatWaiting(const CallId& id, const absl::Status& status) {
  ExchangeStep& step = calls_->step(id.slot);
  MessageCall& call = calls_->CallOf(id.slot, id.shard, id.message);
  if (call.method != BulkMethod::kPull || step.values_for == 0) return false;
  if (!absl::IsDeadlineExceeded(status) && !absl::IsOutOfRange(status)) return false;
  if (step.wanted != nullptr && !step.wanted()) step.values_for = 0;
  // It may be the values that take long on their way, and would never come otherwise.
  if (absl::IsDeadlineExceeded(status)) {
    call.patience = std::min(2 * call.patience, options().call_timeout);
  }
  RepeatAtOnce(id, &call);
  call.retry_at += kWaitPause;
  return true;
}

void MessageSender::AskAgain(size_t slot) {
  for (size_t s = 0; s < calls_->plans().size(); ++s) {
    bool any = false;
    for (MessageCall& call : calls_->step(slot).rounds[s].calls) {
      if (call.state == State::kPausing) RetryAtOnce(&call);
      if (call.state != State::kInFlight) continue;
      call.redirected = true;
      any = true;
    }
    if (any) transport_->Reset(s);
  }
}

void MessageSender::RepeatAtOnce(const CallId& id, MessageCall* call) {
  call->state = State::kPausing;
  RetryAtOnce(call);
  pausing_.push_back(ToTag(id));
}

void MessageSender::RetryAtOnce(MessageCall* call) const {
  call->first_start = clock_->Monotonic();
  call->pause = options().retry.first_pause;
  call->retry_at = RealTime();
}

absl::Duration MessageSender::WaitLimit(absl::Duration timeout) const {
  for (const uint64_t tag : pausing_) {
    const CallId id = FromTag(tag);
    const absl::Duration left = calls_->CallOf(id.slot, id.shard, id.message).retry_at - RealTime();
    timeout = std::clamp(left, absl::ZeroDuration(), timeout);
  }
  return timeout;
}

}  // namespace keelson
