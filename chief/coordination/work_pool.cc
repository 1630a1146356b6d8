#include "chief/coordination/work_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// The number of steps or batches by which an adopted lease may lie beyond the ledger's cursor. Real
// gaps are about a second of work; the limit keeps a damaged message from exhausting this process's
// memory.
constexpr int64_t kLongestGap = 1 << 20;

}  // namespace

std::string WorkOptions::OfSteps() const {
  return max_steps == kEndlessSteps ? "" : absl::StrCat(" of ", max_steps);
}

void WorkPool::ContinueFrom(const v1::JobState& state) {
  next_step_ = state.global_step();
  next_epoch_ = state.next_epoch();
  next_position_ = state.next_position();
  if (state.num_records() == num_records_) {
    for (const v1::JobState::Range& range : state.unfinished()) {
      AddRecords({range.epoch(), range.begin(), range.end()});
    }
  } else if (next_position_ > 0) {
    ++next_epoch_;
    next_position_ = 0;
  }
}

bool WorkPool::NoBatchLeft() const {
  if (!is_stream_) return false;
  // Those of a file that a predecessor knew may have come back before this chief has found it.
  if (!returned_.empty()) return returned_.First().end > known_;
  const int64_t left = known_ - next_position_;
  return left < (ended_ ? 1 : batch_size_);
}

bool WorkPool::StreamIsUsedUp() const {
  return stream_ended() && returned_.empty() && next_position_ >= known_;
}

WorkTicket WorkPool::Take() {
  const RecordRange records = !returned_.empty() ? returned_.TakeFirst()
                              : is_stream_
                                  ? AdvanceCursor(std::min(batch_size_, known_ - next_position_))
                                  : AdvanceCursor(batch_size_);
  return {TakeStep(), records.epoch, records.begin, records.end};
}

int64_t WorkPool::TakeStep() {
  return free_steps_.empty() ? next_step_++ : free_steps_.extract(free_steps_.begin()).value();
}

RecordRange WorkPool::AdvanceCursor(int64_t size) {
  const int64_t end = next_position_ + std::min(size, num_records_ - next_position_);
  const RecordRange records = {next_epoch_, next_position_, end};
  next_position_ = end;
  if (next_position_ == num_records_) {
    ++next_epoch_;
    next_position_ = 0;
  }
  return records;
}

std::vector<RecordRange> WorkPool::TakeBatches(int64_t count) {
  std::vector<RecordRange> batches;
  for (int64_t wanted = count; wanted > 0; --wanted) {
    if (!returned_.empty()) {
      batches.push_back(returned_.TakeFirst());
      continue;
    }
    const int64_t share = (num_records_ - next_position_ + wanted - 1) / wanted;
    batches.push_back(AdvanceCursor(std::min(batch_size_, share)));
  }
  return batches;
}

int64_t WorkPool::StepsLeftOf(int64_t epochs, int64_t batches_per_step) const {
  WorkPool rest = *this;
  int64_t steps = 0;
  // What came back shares its last step with what follows.
  for (; !rest.returned_.empty(); ++steps) rest.TakeBatches(batches_per_step);
  if (rest.next_epoch_ >= epochs) return steps;
  const int64_t size = batch_size_ * batches_per_step;
  return steps + StepsFor(1, num_records_ - rest.next_position_, size) +
         StepsFor(epochs - rest.next_epoch_ - 1, num_records_, size);
}

void WorkPool::RestartSteps(int64_t step) {
  free_steps_.clear();
  next_step_ = step;
}

bool WorkPool::AddRecords(const RecordRange& records) {
  bool added = true;
  for (int64_t begin = records.begin; begin < records.end && added;) {
    const int64_t end = begin + std::min(batch_size_, records.end - begin);
    added = returned_.Add({records.epoch, begin, end});
    begin = end;
  }
  return added;
}

void WorkPool::Add(absl::Span<const WorkTicket> tickets) {
  for (const WorkTicket& ticket : tickets) {
    AddStep(ticket.step);
    AddRecords(ticket.records());
  }
}

bool WorkPool::Plausible(absl::Span<const WorkTicket> tickets) const {
  const int64_t epoch_batches = StepsFor(1, num_records_, batch_size_);
  RecordSet records;
  for (const WorkTicket& ticket : tickets) {
    if (ticket.step < 0 || ticket.step >= max_steps_ || ticket.epoch < 0) return false;
    if (ticket.step - next_step_ > kLongestGap) return false;
    if (ticket.epoch - next_epoch_ > kLongestGap / epoch_batches + 1) return false;
    if (is_stream_ && (ticket.begin - next_position_) / batch_size_ > kLongestGap) return false;
    const bool in_epoch =
        0 <= ticket.begin && ticket.begin < ticket.end && ticket.end <= num_records_;
    if (!in_epoch || !records.Add(ticket.records())) return false;
  }
  return true;
}

bool WorkPool::Has(const RecordRange& records) const {
  if (records.epoch > next_epoch_) return true;
  RecordRange handed_out = records;
  if (records.epoch == next_epoch_) {
    handed_out.end = std::min(records.end, next_position_);
    handed_out.begin = std::min(records.begin, handed_out.end);
  }
  return returned_.Covers(handed_out);
}

bool WorkPool::TakeTicket(WorkTicket* ticket) {
  if (!TakeStepOf(ticket)) return false;
  TakeRecordsOf(*ticket);
  return true;
}

bool WorkPool::TakeStepOf(WorkTicket* ticket) {
  if (ticket->step >= next_step_) {
    while (next_step_ < ticket->step) free_steps_.insert(next_step_++);
    ++next_step_;
    return true;
  }
  if (free_steps_.erase(ticket->step) > 0) return true;
  if (NoStepLeft()) return false;
  ticket->step = TakeStep();
  return true;
}

void WorkPool::TakeRecordsOf(const WorkTicket& ticket) {
  while (std::pair(next_epoch_, next_position_) < std::pair(ticket.epoch, ticket.begin)) {
    const bool same_epoch = next_epoch_ == ticket.epoch;
    const int64_t before = same_epoch ? ticket.begin - next_position_ : batch_size_;
    returned_.Add(AdvanceCursor(std::min(batch_size_, before)));
  }
  if (next_epoch_ == ticket.epoch && next_position_ < ticket.end) {
    AdvanceCursor(ticket.end - next_position_);
  }
  returned_.Remove(ticket.records());
}

int64_t WorkPool::StepsFor(int64_t epochs, int64_t num_records, int64_t batch_size) {
  return epochs * (num_records / batch_size + (num_records % batch_size != 0 ? 1 : 0));
}

}  // namespace keelson
