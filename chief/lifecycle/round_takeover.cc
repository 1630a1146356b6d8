#include "chief/lifecycle/round_takeover.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace keelson {
namespace {

// The limit for one server's commit: a server that ends now is restored once the job goes on.
constexpr absl::Duration kRoundPatience = absl::Seconds(5);

}  // namespace

void TakeRoundsOver(const Adoption& adoption, const std::vector<v1::ShardStatus>& shards,
                    Coordinator* coordinator, ServerGroup* servers, const StopSignal& stop) {
  RoundCommits::Round newest = {-1};
  for (size_t s = 0; s < shards.size(); ++s) {
    const v1::ShardStatus& shard = shards[s];
    if (!adoption.keeps[s] || shard.committed_round() < newest.step) continue;
    if (shard.committed_round() > newest.step) newest = {shard.committed_round()};
    newest.contributions = std::max(newest.contributions, shard.committed_contributions());
  }
  if (newest.step < 0) return;
  coordinator->start()->NoteCommittedRounds(newest.step);
  servers->rounds()->NoteCommitted(newest.step);
  for (size_t s = 0; s < shards.size(); ++s) {
    const v1::ShardStatus& shard = shards[s];
    if (!adoption.keeps[s] || shard.committed_round() >= newest.step) continue;
    absl::Status status = absl::FailedPreconditionError("it does not have the pushes");
    if (shard.open_round() == newest.step) {
      newest.attempt = shard.open_attempt();
      status = servers->rounds()->CommitAt(s, newest, kRoundPatience, stop);
    }
    if (!absl::IsFailedPrecondition(status)) continue;
    servers->rounds()
        ->LoseAt(s, newest, status.message(), kRoundPatience, stop)
        .IgnoreError();  // a cut tells
  }
}

}  // namespace keelson
