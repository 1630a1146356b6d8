#include "chief/lifecycle/round_committer.h"

#include <optional>

#include "core/base/log.h"

namespace keelson {
namespace {

// The pause before a round that could not be committed is tried again.
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

}  // namespace

void RoundCommitter::Run(const StopSignal& end) {
  std::optional<RoundQueue::Round> round;
  while (!end.raised()) {
    // One that a server has committed is no longer in the queue, and is to be committed by all.
    const bool begun = round.has_value() && servers_->rounds()->committed() >= round->step;
    if (!begun) round = rounds_->WaitForRound(absl::InfiniteDuration(), &end);
    if (!round.has_value()) continue;
    const absl::Status status = Commit(*round, end);
    if (status.ok()) {
      round.reset();
    } else if (absl::IsFailedPrecondition(status)) {
      LogWarning("step ", round->step, " is computed again: ", status.message());
      rounds_->RoundFailed(*round);
      round.reset();
    } else if (absl::IsAborted(status)) {
      leadership_->NoteReplaced(status);
      return;
    } else if (!absl::IsCancelled(status)) {
      trouble_.Note(status);
      end.WaitFor(kRetryPause);
    }
  }
}

absl::Status RoundCommitter::Commit(const RoundQueue::Round& round, const StopSignal& end) {
  return servers_->rounds()->Commit({round.step, round.attempt, round.contributions}, end,
                                    [&] { rounds_->RoundCommitted(round); });
}

}  // namespace keelson
