#include "chief/lifecycle/round_committer.h"

#include <optional>

#include "core/base/log.h"

namespace keelson {
namespace {

// The pause before a round that could not be committed is tried again.
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

}  // namespace

void RoundCommitter::Run(const StopSignal& end) {
  while (!end.raised()) {
    const std::optional<RoundQueue::Round> round =
        rounds_->WaitForRound(absl::InfiniteDuration(), &end);
    if (!round.has_value()) continue;
    const absl::Status status = Commit(*round, end);
    if (status.ok()) continue;
    if (absl::IsFailedPrecondition(status)) {
      LogWarning("step ", round->step, " is computed again: ", status.message());
      rounds_->RoundFailed(*round);
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
