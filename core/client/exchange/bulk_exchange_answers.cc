// The part of BulkExchange that handles the end of a call.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/client/exchange/bulk_exchange.h"
#include "core/client/exchange/incoming_values.h"

namespace keelson {
namespace {

using State = MessageCall::State;

absl::Status Malformed(size_t shard, BulkMethod method, absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("ps-", shard, ": malformed answer to ", BulkMethodName(method), ": ", what));
}

std::string WaitingFor(BulkMethod method, size_t shard) {
  return absl::StrCat(method == BulkMethod::kPull ? "pulling from" : "pushing to", " ps-", shard);
}

}  // namespace

void BulkExchange::Handle(BulkCompletion completion) {
  const CallId id = FromTag(completion.tag);
  --in_flight_;
  --servers_[id.shard].in_flight;
  if (!status_.ok()) return;
  absl::Status status = completion.status;
  // A server that has no room for a message at the moment refuses it as RESOURCE_EXHAUSTED.
  if (IsTransient(status) || absl::IsResourceExhausted(status)) {
    ScheduleRetry(id.slot, id.shard, id.message, status);
    return;
  }
  ExchangeStep& step = steps_[id.slot];
  if (status.ok()) {
    status = Receive(id.slot, id.shard, id.message, completion.response);
  } else if (step.aggregation.has_value() &&
             status.code() == absl::StatusCode::kFailedPrecondition) {
    step.result.refused = true;
    status = absl::OkStatus();
  }
  if (!status.ok()) return Fail(std::move(status));
  FinishMessage(&step, id.shard, &CallOf(id.slot, id.shard, id.message));
}

void BulkExchange::ScheduleRetry(size_t slot, size_t shard, size_t message,
                                 const absl::Status& status) {
  MessageCall& call = CallOf(slot, shard, message);
  ServerState& server = servers_[shard];
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration waited = now - call.first_start;
  const auto text = [&] {
    return absl::StrCat(WaitingFor(call.method, shard), " for ", absl::FormatDuration(waited), ": ",
                        status.message());
  };
  if (waited >= options_.retry.give_up_after) return Fail(absl::Status(status.code(), text()));
  if (now - std::max(call.first_start, server.reported) >= options_.retry.report_every) {
    LogWarning(text());
    server.reported = now;
  }
  ++steps_[slot].result.retries;
  call.state = State::kPausing;
  call.retry_at = RealTime() + call.pause;
  call.pause = NextPause(options_.retry, call.pause);
  pausing_.push_back(ToTag({slot, shard, message}));
}

absl::Status BulkExchange::Receive(size_t slot, size_t shard, size_t message,
                                   const ByteRope& response) {
  ExchangeStep& step = steps_[slot];
  ShardRound& round = step.rounds[shard];
  const MessageCall& call = round.calls[message];
  const bool pull = call.method == BulkMethod::kPull;

  ByteCursor cursor(response);
  answer_ = {};
  const absl::StatusOr<size_t> payload =
      DecodeBulkResponse(&cursor, &answer_, PlanOf(shard, message).blocks.size());
  if (!payload.ok()) return Malformed(shard, call.method, payload.status().message());
  servers_[shard].credits = answer_.credits;
  NoteStore(shard, answer_.store_id);
  const absl::Status taken = TakeAnswer(slot, shard, message, &cursor);
  if (!taken.ok()) return Malformed(shard, call.method, taken.message());
  // The server counts a step with the last part of its push; the answers to other parts do not
  // include it.
  const bool counted = pull || message + 1 == round.calls.size();
  round.landed_shard_step =
      std::min(round.landed_shard_step, answer_.shard_step + (counted ? 0 : 1));
  step.result.staleness = std::max(step.result.staleness, answer_.staleness);
  step.result.bytes_pulled += static_cast<int64_t>(response.size());
  if (!pull) step.result.bytes_pushed += static_cast<int64_t>(call.push->size());
  return absl::OkStatus();
}

// Takes the values of the answer, if its call has any.
absl::Status BulkExchange::TakeAnswer(size_t slot, size_t shard, size_t message,
                                      ByteCursor* cursor) {
  MessageCall& call = CallOf(slot, shard, message);
  const bool pull = call.method == BulkMethod::kPull;
  if (call.method == BulkMethod::kPush) {
    const bool empty = answer_.blocks.empty() && answer_.rows.empty();
    if (empty && cursor->remaining() == 0) return absl::OkStatus();
    return absl::InternalError("expected no values");
  }
  // A pull that was made for another store may lack blocks that are new, so it is repeated.
  if (pull && call.asked_store != 0 && call.asked_store != answer_.store_id) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(TakeBlocksAndRows(slot, shard, message, cursor));
  call.landed = true;
  // A pull without blocks leaves the values as they are.
  if (!answer_.blocks.empty()) landings_.Landed({shard, message});
  return absl::OkStatus();
}

// The rows end the payload.
absl::Status BulkExchange::TakeBlocksAndRows(size_t slot, size_t shard, size_t message,
                                             ByteCursor* cursor) {
  const ExchangeStep& step = steps_[slot];
  const std::optional<size_t> rows = RowMessageOf(step, shard, message);
  uint64_t row_bytes = 0;
  if (rows.has_value()) {
    ASSIGN_OR_RETURN(row_bytes, step.rows->CheckAnswer(shard, *rows, answer_.rows));
  } else if (!answer_.rows.empty()) {
    return absl::InternalError("expected no rows");
  }
  if (row_bytes > cursor->remaining()) {
    return absl::InternalError(absl::StrCat("payload shorter than its rows: expected ", row_bytes,
                                            " bytes, found ", cursor->remaining()));
  }
  const bool planned = message < plans_[shard].size();
  RETURN_IF_ERROR(
      TakeValues(PlanOf(shard, message), answer_,
                 /*whole=*/step.rounds[shard].calls[message].method == BulkMethod::kPushPull,
                 cursor->remaining() - row_bytes, cursor,
                 slot == pull_slot() ? memory_->values() : memory_->landing(),
                 planned ? &servers_[shard].known_versions[message] : &no_versions_));
  if (!rows.has_value()) return absl::OkStatus();
  return step.rows->Take(shard, *rows, answer_.rows, answer_.store_id, cursor);
}

void BulkExchange::NoteStore(size_t shard, uint64_t store_id) {
  ServerState& server = servers_[shard];
  if (store_id == server.store_id) return;
  server.store_id = store_id;
  for (size_t m = 0; m < server.known_versions.size(); ++m) {
    std::vector<uint64_t>& versions = server.known_versions[m];
    std::fill(versions.begin(), versions.end(), 0);
    landings_.Void({shard, m});
  }
  for (ExchangeStep& step : steps_) step.rounds[shard].store_changed = true;
}

// Whether nothing that the step brought from the shard is of another store.
bool BulkExchange::Current(const ExchangeStep& step, size_t shard) const {
  const ServerState& server = servers_[shard];
  return AllKnown(server) && (step.rows == nullptr || step.rows->AllFrom(shard, server.store_id));
}

void BulkExchange::FinishMessage(ExchangeStep* step, size_t shard, MessageCall* call) {
  call->state = State::kDone;
  ShardRound& round = step->rounds[shard];
  if (++round.done < round.calls.size()) return;
  // The values of earlier answers, which came from another store, are replaced.
  if (std::exchange(round.store_changed, false) && !step->aggregation.has_value() &&
      !Current(*step, shard)) {
    round.pulling = true;
    StartRound(BulkMethod::kPull, State::kReady, &round);
    return;
  }
  round.pulling = false;
  if (++step->rounds_done == step->rounds.size()) CompleteStep(step);
}

}  // namespace keelson
