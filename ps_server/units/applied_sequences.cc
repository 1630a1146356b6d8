#include "ps_server/units/applied_sequences.h"

#include <algorithm>
#include <iterator>

namespace keelson {
namespace {

// The run with `unit`, or the first one behind it.
template <typename Runs>
auto FindRun(Runs* runs, uint32_t unit) {
  return std::partition_point(runs->begin(), runs->end(),
                              [unit](const SequenceRun& run) { return run.end <= unit; });
}

bool Has(const SequenceRuns& runs, SequenceRuns::const_iterator run, uint32_t unit) {
  return run != runs.end() && run->begin <= unit;
}

// Takes `unit` out of its run. Returns the run behind it.
SequenceRuns::iterator CutOut(SequenceRuns* runs, SequenceRuns::iterator run, uint32_t unit) {
  const SequenceRun whole = *run;
  run = runs->erase(run);
  if (unit + 1 < whole.end) run = runs->insert(run, {unit + 1, whole.end, whole.sequence});
  if (whole.begin < unit) run = std::next(runs->insert(run, {whole.begin, unit, whole.sequence}));
  return run;
}

// Adds `unit`, which has no run, before `behind`, and joins it with equal neighbours.
void Insert(SequenceRuns* runs, SequenceRuns::iterator behind, uint32_t unit, uint64_t sequence) {
  const bool before = behind != runs->begin() && std::prev(behind)->end == unit &&
                      std::prev(behind)->sequence == sequence;
  const bool after =
      behind != runs->end() && behind->begin == unit + 1 && behind->sequence == sequence;
  if (before && after) {
    std::prev(behind)->end = behind->end;
    runs->erase(behind);
  } else if (before) {
    std::prev(behind)->end = unit + 1;
  } else if (after) {
    behind->begin = unit;
  } else {
    runs->insert(behind, {unit, unit + 1, sequence});
  }
}

void Put(SequenceRuns* runs, uint32_t unit, uint64_t sequence) {
  auto run = FindRun(runs, unit);
  if (Has(*runs, run, unit)) run = CutOut(runs, run, unit);
  Insert(runs, run, unit, sequence);
}

}  // namespace

std::optional<uint64_t> NewestAt(const SequenceRuns& runs, size_t unit) {
  const auto position = static_cast<uint32_t>(unit);
  const auto run = FindRun(&runs, position);
  return Has(runs, run, position) ? std::make_optional(run->sequence) : std::nullopt;
}

bool AppliedSequences::Take(size_t unit, uint64_t incarnation, uint64_t sequence) {
  Stripe& stripe = StripeOf(incarnation);
  MutexLock lock(&stripe.mu);
  SequenceRuns& runs = stripe.runs[incarnation];
  const std::optional<uint64_t> newest = NewestAt(runs, unit);
  if (newest.has_value() && sequence <= *newest) return false;
  Put(&runs, static_cast<uint32_t>(unit), sequence);
  return true;
}

void AppliedSequences::Restore(size_t unit, uint64_t incarnation, uint64_t sequence) {
  Stripe& stripe = StripeOf(incarnation);
  MutexLock lock(&stripe.mu);
  Put(&stripe.runs[incarnation], static_cast<uint32_t>(unit), sequence);
}

void AppliedSequences::Keep(absl::Span<const uint64_t> incarnations) {
  for (Stripe& stripe : stripes_) {
    MutexLock lock(&stripe.mu);
    std::erase_if(stripe.runs, [incarnations](const auto& entry) {
      return !std::binary_search(incarnations.begin(), incarnations.end(), entry.first);
    });
  }
}

SequenceTable AppliedSequences::Table() const {
  SequenceTable table;
  for (const Stripe& stripe : stripes_) {
    MutexLock lock(&stripe.mu);
    table.insert(stripe.runs.begin(), stripe.runs.end());
  }
  return table;
}

}  // namespace keelson
