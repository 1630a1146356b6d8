// The servers, not the snapshot, say how far the job is: their values are newer, and rolling back
// the healthy ones would lose steps for a crash of the chief (ADR 0010). The two passes below first
// choose the job, by servers that hold their shard, and then its newest state from any server: one
// that was restarted has an empty shard but may hold the newest state. When the snapshot is newer
// still, only its ledger is used; the servers keep their values.
#include "chief/servers/adoption.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

Adoption StartOver(std::string reason) {
  Adoption decision;
  decision.reason = std::move(reason);
  return decision;
}

bool HoldsShard(const ExpectedShards& expected, const v1::ShardStatus& server, size_t s) {
  return server.state() == v1::ShardStatus::READY && server.config_hash() == expected.config_hash &&
         server.placement_fingerprint() == expected.placement_fingerprint && server.shard() == s;
}

// The server holds a shard of a model of this configuration that is divided otherwise.
bool HoldsOtherShard(const ExpectedShards& expected, const v1::ShardStatus& server) {
  return server.state() == v1::ShardStatus::READY && server.config_hash() == expected.config_hash &&
         server.placement_fingerprint() != expected.placement_fingerprint;
}

std::string WhyNoShard(const ExpectedShards& expected,
                       const std::vector<v1::ShardStatus>& servers) {
  const bool other = std::any_of(
      servers.begin(), servers.end(),
      [&expected](const v1::ShardStatus& server) { return HoldsOtherShard(expected, server); });
  if (!other) return "no server holds its shard of this job";
  return absl::StrCat("the model is held in other shards than the ", servers.size(),
                      " of this cluster, and goes on from the newest snapshot");
}

// The job state persisted at `server`; nothing if there is none, or it is not readable.
std::optional<v1::PersistedJobState> PersistedStateOf(const v1::ShardStatus& server) {
  v1::PersistedJobState persisted;
  if (server.job_state().empty() || !persisted.ParseFromString(server.job_state()))
    return std::nullopt;
  if (persisted.job().job_id() == 0) return std::nullopt;
  return persisted;
}

// A chief that was replaced may have persisted a higher version than its successor.
bool IsNewer(const v1::ShardStatus& a, const v1::ShardStatus& b) {
  return std::pair(a.job_state_term(), a.job_state_version()) >
         std::pair(b.job_state_term(), b.job_state_version());
}

// Whether the shard lacks at most the newest round. No shard has two rounds more than another one,
// whatever happens; but the first round after asynchronous steps may follow on one long past, and a
// shard that has not committed it has pushes of it.
bool IsCurrent(const v1::ShardStatus& server, int64_t newest_round) {
  return server.committed_round() >= newest_round - 1 || server.open_round() == newest_round;
}

int64_t NewestRound(const ExpectedShards& expected, const std::vector<v1::ShardStatus>& servers) {
  int64_t newest = -1;
  for (size_t s = 0; s < servers.size(); ++s) {
    if (HoldsShard(expected, servers[s], s)) {
      newest = std::max(newest, servers[s].committed_round());
    }
  }
  return newest;
}

bool FitsSnapshot(const v1::PersistedJobState& persisted, const v1::JobState& snapshot) {
  if (snapshot.job_id() == 0) return persisted.snapshot_step() == snapshot.global_step();
  return persisted.job().job_id() == snapshot.job_id();
}

// The snapshot was taken by the chief that wrote `persisted`, or by a later one.
void TakeLedgerOf(const v1::JobState& snapshot, v1::PersistedJobState* persisted) {
  *persisted->mutable_job() = snapshot;
  persisted->clear_leases();
  persisted->clear_returned();
  persisted->clear_next_step();
  persisted->set_snapshot_step(snapshot.global_step());
}

}  // namespace

Adoption DecideAdoption(const ExpectedShards& expected, const std::vector<v1::ShardStatus>& servers,
                        const std::optional<v1::JobState>& snapshot) {
  std::vector<std::optional<v1::PersistedJobState>> states;
  std::optional<size_t> newest;  // of the servers that hold their shard
  bool any_shard = false;
  bool any_state = false;
  states.reserve(servers.size());
  for (size_t s = 0; s < servers.size(); ++s) {
    const std::optional<v1::PersistedJobState>& persisted =
        states.emplace_back(PersistedStateOf(servers[s]));
    if (!HoldsShard(expected, servers[s], s)) continue;
    any_shard = true;
    if (!persisted.has_value()) continue;
    any_state = true;
    if (snapshot.has_value() && !FitsSnapshot(*persisted, *snapshot)) continue;
    if (!newest.has_value() || IsNewer(servers[s], servers[*newest])) newest = s;
  }
  if (!any_shard) return StartOver(WhyNoShard(expected, servers));
  if (!any_state) return StartOver("no server holds a job state");
  if (!newest.has_value()) {
    return StartOver("the servers hold another job than that of the newest snapshot");
  }
  const int64_t newest_round = NewestRound(expected, servers);
  Adoption decision;
  decision.adopted = true;
  const uint64_t job_id = states[*newest]->job().job_id();
  int kept = 0;
  for (size_t s = 0; s < servers.size(); ++s) {
    const std::optional<v1::PersistedJobState>& persisted = states[s];
    const bool this_job = !persisted.has_value() || persisted->job().job_id() == job_id;
    const bool current = IsCurrent(servers[s], newest_round);
    decision.keeps.push_back(this_job && current && HoldsShard(expected, servers[s], s));
    kept += decision.keeps.back() ? 1 : 0;
    if (persisted.has_value() && this_job && IsNewer(servers[s], servers[*newest])) newest = s;
  }
  decision.persisted = *states[*newest];
  decision.from_snapshot = snapshot.has_value() && snapshot->job_id() == job_id &&
                           snapshot->state_version() > decision.persisted.job().state_version();
  if (decision.from_snapshot) TakeLedgerOf(*snapshot, &decision.persisted);
  decision.reason = absl::StrCat(
      "adopting the running job at step ", decision.persisted.job().global_step(), ": ", kept,
      " of ", servers.size(), " servers keep their shards, ", decision.persisted.members_size(),
      " members and ", decision.persisted.leases_size(), " leases are expected back");
  return decision;
}

int64_t RememberedStep(const std::vector<v1::ShardStatus>& servers) {
  int64_t step = 0;
  for (const v1::ShardStatus& server : servers) {
    const std::optional<v1::PersistedJobState> persisted = PersistedStateOf(server);
    if (!persisted.has_value()) continue;
    step = std::max({step, persisted->job().global_step(), persisted->snapshot_step()});
  }
  return step;
}

int64_t StepOfJob(const std::vector<v1::ShardStatus>& servers, uint64_t job_id) {
  int64_t step = 0;
  for (const v1::ShardStatus& server : servers) {
    const std::optional<v1::PersistedJobState> persisted = PersistedStateOf(server);
    if (!persisted.has_value() || persisted->job().job_id() != job_id) continue;
    step = std::max(step, persisted->job().global_step());
    // That of a round is newer.
    if (server.state() == v1::ShardStatus::READY) {
      step = std::max(step, server.committed_round() + 1);
    }
  }
  return step;
}

}  // namespace keelson
