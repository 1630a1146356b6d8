#include "chief/coordination/training.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/cluster/figures.h"

namespace keelson {
namespace {

std::optional<v1::StreamStatus> StreamStatusOf(const WorkLedger& ledger) {
  if (!ledger.options().stream) return std::nullopt;
  v1::StreamStatus status;
  const std::vector<v1::StreamFile> files = ledger.stream_files().From(ledger.FirstUndoneRecord());
  if (!files.empty()) status.set_file(files.front().name());
  status.set_done_records(ledger.DoneRecords());
  status.set_known_records(ledger.stream_files().known());
  status.set_ended(ledger.stream_ended());
  return status;
}

WorkDispatcher DispatcherOf(const Training::Options& options, WorkLedger ledger,
                            uint32_t first_attempt) {
  const v1::JobState origin = ledger.origin();
  WorkDispatcher work(std::move(ledger), ModeFrom(origin, options.config_hash, options.mode),
                      first_attempt);
  if (origin.config_hash() == options.config_hash && !origin.end_reason().empty()) {
    work.EndEarly(origin.end_reason());
  }
  return work;
}

}  // namespace

ConsistencyMode ModeFrom(const v1::JobState& origin, uint64_t config_hash,
                         const ConsistencyMode& configured) {
  if (!origin.has_mode() || origin.config_hash() != config_hash) return configured;
  const absl::StatusOr<ConsistencyMode> mode = ConsistencyMode::FromProto(origin.mode());
  return mode.ok() ? *mode : configured;
}

Training::Training(const Options& options, WorkLedger ledger, uint32_t first_attempt)
    : config_hash_(options.config_hash),
      losses_(ledger.completed_steps(), options.loss_interval),
      divergence_(options.max_loss, /*restored=*/ledger.completed_steps() > 0),
      work_(DispatcherOf(options, std::move(ledger), first_attempt)) {}

absl::StatusOr<int64_t> Training::Apply(Task task, uint64_t incarnation,
                                        const WorkerReport& report) {
  const int64_t before = ledger().completed_steps();
  for (const WorkerReport::LeaseProgress& lease : report.leases) {
    const absl::Status status = work_.Complete(incarnation, lease.lease_id, lease.completed);
    // kAborted: the lease was taken back, and its steps belong to other workers now.
    if (!status.ok() && status.code() != absl::StatusCode::kAborted) return status;
  }
  for (const WorkerReport::RefusedPush& push : report.refused) {
    if (!work_.NoteRefused(incarnation, push.lease_id, push.step, push.attempt)) continue;
    LogWarning("step ", push.step, " is tried again: a server has refused the gradient of ",
               task.ToString());
  }
  for (const WorkerReport::StepLoss& loss : report.losses) {
    losses_.Add(loss.step, loss.loss);
    divergence_.Add(loss.loss);
  }
  for (const WorkerReport::LoggedValue& value : report.logged) {
    logged_.Add(value.name, value.step, value.value);
  }
  AddFigures(report.figures, &totals_);
  AddFigures(report.figures, &workers_[task]);
  return std::max<int64_t>(report.figures.steps(), ledger().completed_steps() - before);
}

bool Training::Done(bool workers_away) const {
  return work_.Done() && (ledger().Done() || !workers_away);
}

bool Training::Reached(int64_t step, bool workers_away) const {
  return ledger().completed_steps() >= step || Done(workers_away) ||
         totals_.non_finite_losses() != 0 || !divergence_.Diverged().empty();
}

std::optional<LossCurve::Point> Training::TakeLossPoint() {
  return losses_.TakeComplete(ledger().FirstUnfinishedStep());
}

v1::JobState Training::ToState() const {
  v1::JobState state = work_.ToState();
  state.set_config_hash(config_hash_);
  return state;
}

void Training::ToPersisted(v1::PersistedJobState* persisted) const {
  work_.ToPersisted(persisted);
  persisted->mutable_job()->set_config_hash(config_hash_);
}

void Training::FillStatus(bool workers_away, CoordinatorStatus* status) const {
  status->trained = Done(workers_away);
  status->end_reason = work_.end_reason();
  status->step = ledger().completed_steps();
  const int64_t max_steps = ledger().options().max_steps;
  status->max_steps = max_steps == kEndlessSteps ? 0 : max_steps;
  status->stream = StreamStatusOf(ledger());
  status->epoch = ledger().epochs_completed();
  status->totals = totals_;
  status->workers = workers_;
  status->logged = logged_.newest();
  status->mode = work_.mode();
  status->next_mode = work_.next_mode();
  status->recent_loss = divergence_.mean();
  status->first_loss = divergence_.first();
  status->diverging = divergence_.diverging();
  status->diverged = divergence_.Diverged(/*ended=*/status->trained);
}

}  // namespace keelson
