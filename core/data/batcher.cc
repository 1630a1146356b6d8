#include "core/data/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/data/record_order.h"

namespace keelson {
namespace {

absl::Status CancelledBatcher() { return absl::CancelledError("batcher: cancelled"); }

absl::Status BadPositions(const Ticket& ticket, int64_t num_records) {
  return absl::InvalidArgumentError(absl::StrCat(
      "ticket of step ", ticket.step, ": expected positions 0 <= begin < end <= ", num_records,
      ", found [", ticket.begin, ", ", ticket.end, ") of epoch ", ticket.epoch));
}

bool IsWithin(const Ticket& ticket, int64_t num_records) {
  return ticket.epoch >= 0 && ticket.begin >= 0 && ticket.begin < ticket.end &&
         ticket.end <= num_records;
}

}  // namespace

Batcher::Batcher(const Dataset* dataset, TicketSource* source, BatcherOptions options)
    : dataset_(dataset),
      source_(source),
      options_(std::move(options)),
      rows_(options_.tables),
      thread_([this] { Run(); }) {}

Batcher::~Batcher() {
  Cancel();
  thread_.Join();
}

absl::StatusOr<std::optional<PreparedBatch>> Batcher::Next() {
  MutexLock lock(&mu_);
  while (!cancelled_ && !ended_ && queue_.empty()) changed_.Wait(&mu_);
  if (cancelled_) return CancelledBatcher();
  if (queue_.empty()) {
    RETURN_IF_ERROR(end_status_);
    return std::nullopt;
  }
  PreparedBatch prepared = std::move(queue_.front());
  queue_.pop_front();
  changed_.NotifyAll();
  return prepared;
}

bool Batcher::Ready() const {
  MutexLock lock(&mu_);
  return cancelled_ || ended_ || !queue_.empty();
}

bool Batcher::CopyNextIds(std::vector<std::vector<uint64_t>>* ids) const {
  MutexLock lock(&mu_);
  if (cancelled_ || queue_.empty()) return false;
  const std::vector<BatchRows>& rows = queue_.front().batch.rows;
  ids->resize(rows.size());
  for (size_t t = 0; t < rows.size(); ++t) (*ids)[t] = rows[t].ids;
  return true;
}

void Batcher::Recycle(Batch batch) {
  MutexLock lock(&mu_);
  if (recycled_.size() < Depth()) recycled_.push_back(std::move(batch));
}

void Batcher::Cancel() {
  MutexLock lock(&mu_);
  cancelled_ = true;
  queue_.clear();
  changed_.NotifyAll();
}

void Batcher::Run() {
  while (WaitForRoom()) {
    absl::StatusOr<std::optional<PreparedBatch>> prepared = Prepare();
    if (!prepared.ok() || !prepared->has_value()) return End(prepared.status());
    MutexLock lock(&mu_);
    queue_.push_back(**std::move(prepared));
    changed_.NotifyAll();
  }
}

bool Batcher::WaitForRoom() {
  MutexLock lock(&mu_);
  while (!cancelled_ && queue_.size() >= Depth()) changed_.Wait(&mu_);
  return !cancelled_;
}

absl::StatusOr<std::optional<PreparedBatch>> Batcher::Prepare() {
  ASSIGN_OR_RETURN(const std::optional<Ticket> ticket, source_->Next());
  if (!ticket.has_value()) return std::nullopt;
  PreparedBatch prepared{*ticket, TakeRecycled()};
  RETURN_IF_ERROR(ReadTicket(*ticket, &prepared.batch));
  return prepared;
}

absl::Status Batcher::ReadTicket(const Ticket& ticket, Batch* batch) {
  const int64_t num_records = dataset_->num_records();
  if (!IsWithin(ticket, num_records)) return BadPositions(ticket, num_records);
  const RecordOrder order(num_records, options_.seed, ticket.epoch, options_.sequential,
                          options_.order_group);
  records_.clear();
  for (int64_t position = ticket.begin; position < ticket.end; ++position) {
    records_.push_back(order.Record(position));
  }
  RETURN_IF_ERROR(dataset_->Read(records_, batch));
  rows_.Index(batch);
  return absl::OkStatus();
}

Batch Batcher::TakeRecycled() {
  MutexLock lock(&mu_);
  if (recycled_.empty()) return Batch();
  Batch batch = std::move(recycled_.back());
  recycled_.pop_back();
  return batch;
}

void Batcher::End(absl::Status status) {
  MutexLock lock(&mu_);
  ended_ = true;
  end_status_ = std::move(status);
  changed_.NotifyAll();
}

size_t Batcher::Depth() const { return std::max(1, options_.depth); }

}  // namespace keelson
