#include "tests/search/snapshot_rule.h"

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"

namespace keelson {
namespace {

std::string CheckSequences(const v1::ShardState& state, size_t workers) {
  if (static_cast<size_t>(state.applied_size()) > workers) {
    return absl::StrCat("sequences of ", state.applied_size(), " members, of ", workers,
                        " workers");
  }
  for (const v1::ShardState::Applied& member : state.applied()) {
    const int64_t units = state.blocks_size() + int64_t{state.num_row_partitions()};
    if (member.runs_size() <= units) continue;
    return absl::StrCat(member.runs_size(), " runs of sequences of a member, of ", units,
                        " blocks and partitions of rows");
  }
  return "";
}

}  // namespace

std::string CheckSnapshot(const BundleReader& snapshot, size_t servers, size_t workers) {
  const absl::Status whole = snapshot.VerifyAll();
  if (!whole.ok()) return whole.ToString();
  const absl::StatusOr<std::optional<v1::JobState>> job = ReadJobState(snapshot);
  if (!job.ok() || !job->has_value()) {
    return absl::StrCat(snapshot.prefix(), ": no job state: ", job.status().ToString());
  }
  const int64_t round = (*job)->has_committed_round() ? (*job)->committed_round() : -1;
  for (size_t s = 0; s < servers; ++s) {
    const std::string name = ShardStateName(s, servers);
    const absl::StatusOr<std::string> bytes = snapshot.ReadString(name);
    if (!bytes.ok()) return bytes.status().ToString();
    const absl::StatusOr<v1::ShardState> state = ParseShardState(*bytes, snapshot.prefix(), name);
    if (!state.ok()) return state.status().ToString();
    const int64_t found = state->has_committed_round() ? state->committed_round() : -1;
    if (found != round) {
      return absl::StrCat(snapshot.prefix(), ": ", name, " has committed round ", found,
                          ", the job state ", round);
    }
    const std::string wrong = CheckSequences(*state, workers);
    if (!wrong.empty()) return absl::StrCat(snapshot.prefix(), ": ", name, ": ", wrong);
  }
  return "";
}

}  // namespace keelson
