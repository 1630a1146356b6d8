// A step is one round trip: values come with the answer to a push, so the loop pulls only when they
// are old (ModelValues) or the ticket wants fresh ones. At depth 2 the next step computes while
// the last one is at the servers; whatever needs all of them acknowledged (a pull, a synchronous
// step, waiting for work, the end) drains first. A step counts only when the servers have
// acknowledged it, so that a ticket is reported as done after its gradient, never before.
#include "worker/training_loop.h"

#include <memory>
#include <utility>

#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// The seed is the same for every worker that takes the ticket; the tickets of a synchronous step
// drop different units.
uint64_t DropoutSeed(uint64_t seed, int64_t step, uint64_t part) {
  const auto bits = Philox(seed, StableHash("dropout") + part, static_cast<uint64_t>(step));
  return (static_cast<uint64_t>(bits[0]) << 32) | bits[1];
}

}  // namespace

absl::Status TrainingLoop::Run(Batcher* batcher) {
  const absl::Status status = TrainOnBatches(batcher);
  const absl::Status drained = Drain();
  return status.ok() ? drained : status;
}

namespace {

void CountRowIds(const Batch& batch, v1::WorkerFigures* figures) {
  int64_t all = 0, distinct = 0;
  for (const BatchRows& rows : batch.rows) {
    int64_t of_table = 0;
    for (const std::vector<int32_t>& feature : rows.positions) {
      of_table += static_cast<int64_t>(feature.size());
    }
    const auto distinct_of_table = static_cast<int64_t>(rows.ids.size());
    figures->add_table_row_ids(of_table);
    figures->add_table_distinct_row_ids(distinct_of_table);
    all += of_table;
    distinct += distinct_of_table;
  }
  figures->set_row_ids(all);
  figures->set_distinct_row_ids(distinct);
}

}  // namespace

absl::Status TrainingLoop::TrainOnBatches(Batcher* batcher) {
  while (true) {
    // The chief may be waiting for the step under way before it grants more work.
    if (!batcher->Ready()) RETURN_IF_ERROR(Drain());
    const absl::Duration start = clock_->Monotonic();
    ASSIGN_OR_RETURN(std::optional<PreparedBatch> prepared, batcher->Next());
    if (!prepared.has_value()) return absl::OkStatus();
    if (session_->ended()->raised()) return absl::CancelledError("by a signal");
    if (progress_->IsValid(prepared->ticket)) {
      FinishedStep step;
      step.ticket = prepared->ticket;
      step.input = clock_->Monotonic() - start;
      CountRowIds(prepared->batch, &step.figures);
      RETURN_IF_ERROR(TrainStep(*prepared, step));
    }
    batcher->Recycle(std::move(prepared->batch));
  }
}

absl::Status TrainingLoop::TrainStep(const PreparedBatch& prepared, FinishedStep step) {
  const absl::Duration start = clock_->Monotonic();
  const std::unique_ptr<StepExchange> exchange = StepExchange::Make(prepared.ticket, parts_);
  if (!exchange->overlaps()) RETURN_IF_ERROR(Drain());
  RETURN_IF_ERROR(PrepareValues(prepared));
  step.pull = clock_->Monotonic() - start;
  ASSIGN_OR_RETURN(const bool computed, Compute(prepared, exchange.get(), &step));
  if (computed) return Push(exchange.get(), step);
  progress_->AddNonFiniteLoss();
  return absl::OkStatus();
}

absl::Status TrainingLoop::PrepareValues(const PreparedBatch& prepared) {
  TableExchange* const tables = parts_.tables;
  const bool lacks_rows = tables != nullptr && !tables->Has(prepared.batch);
  if (lacks_rows || values_.MustPull(prepared.ticket)) {
    RETURN_IF_ERROR(Drain());
    if (lacks_rows) RETURN_IF_ERROR(tables->Request(prepared.batch));
    RETURN_IF_ERROR(values_.Pull(
        prepared.ticket, [this, ticket = prepared.ticket] { return progress_->IsValid(ticket); }));
  }
  RETURN_IF_ERROR(values_.Load());
  return tables == nullptr ? absl::OkStatus() : tables->Load(prepared.batch);
}

absl::StatusOr<bool> TrainingLoop::Compute(const PreparedBatch& prepared, StepExchange* exchange,
                                           FinishedStep* step) {
  const absl::Duration start = clock_->Monotonic();
  if (parts_.histograms != nullptr) parts_.histograms->BeginStep();
  StepOptions options;
  options.dropout_seed = DropoutSeed(options_.seed, prepared.ticket.step, exchange->part());
  options.clip_global_norm = options_.clip_global_norm;
  ASSIGN_OR_RETURN(const StepResult result, exchange->Compute(prepared.batch, options));
  step->loss = result.loss;
  step->compute = clock_->Monotonic() - start;
  return result.has_gradients;
}

absl::Status TrainingLoop::Push(StepExchange* exchange, const FinishedStep& step) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const bool wanted, exchange->Offer());
  if (!wanted) {
    progress_->Drop(step.ticket);
    return absl::OkStatus();
  }
  if (parts_.histograms != nullptr) parts_.histograms->EndStep(step.ticket.step + 1);
  under_way_.push_back(step);
  // The step counts once the servers have it, even if the device fails here.
  const absl::Status loading = exchange->LoadAnswer();
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client_->End());
  const absl::Duration ended = clock_->Monotonic();
  under_way_.back().push = ended - start;
  exchange->NoteEnded(ended);
  Acknowledge(pushed);
  return loading;
}

absl::Status TrainingLoop::Drain() {
  if (under_way_.empty()) return absl::OkStatus();
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client_->Drain());
  values_.Invalidate();
  under_way_.back().push += clock_->Monotonic() - start;
  Acknowledge(pushed);
  return absl::OkStatus();
}

void TrainingLoop::Acknowledge(const std::optional<PushResult>& pushed) {
  if (!pushed.has_value()) return;
  FinishedStep step = under_way_.front();
  under_way_.pop_front();
  // A server has moved on to another attempt at the step, or has done it. A chief that knows of
  // neither hands its records out again when it is told.
  if (pushed->refused) return progress_->Refuse(step.ticket);
  ++finished_steps_;
  step.staleness = pushed->staleness;
  step.figures.set_push_retries(pushed->retries);
  step.figures.set_bytes_pushed(pushed->bytes_pushed);
  step.figures.set_bytes_pulled(pushed->bytes_pulled);
  step.figures.set_credit_wait_seconds(absl::ToDoubleSeconds(pushed->waited_for_credit));
  progress_->Finish(step);
}

}  // namespace keelson
