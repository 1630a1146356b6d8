// The servers, not the snapshot, say how far the job is: their values are newer, and rolling back
// the healthy ones would lose steps for a crash of the chief (ADR 0010). The two passes below first
// choose the job, by servers that hold their shard, and then its newest state from any server: one
// that was restarted has an empty shard but may hold the newest state. When the snapshot is newer
// still, only its ledger is used; the servers keep their values.
#include "chief/servers/adoption.h"

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

// The job state persisted at `server`; nothing if there is none, or it is not readable.
std::optional<v1::ChiefMemory> MemoryOf(const v1::ShardStatus& server) {
  v1::ChiefMemory memory;
  if (server.memory().empty() || !memory.ParseFromString(server.memory())) return std::nullopt;
  if (memory.job().job_id() == 0) return std::nullopt;
  return memory;
}

bool FitsSnapshot(const v1::ChiefMemory& memory, const v1::JobState& snapshot) {
  if (snapshot.job_id() == 0) return memory.snapshot_step() == snapshot.global_step();
  return memory.job().job_id() == snapshot.job_id();
}

// The snapshot was taken by the chief that persisted `memory`, or by a later one.
void TakeBooksOf(const v1::JobState& snapshot, v1::ChiefMemory* memory) {
  *memory->mutable_job() = snapshot;
  memory->clear_leases();
  memory->clear_returned();
  memory->clear_next_step();
  memory->set_snapshot_step(snapshot.global_step());
}

}  // namespace

Adoption DecideAdoption(const ExpectedShards& expected, const std::vector<v1::ShardStatus>& servers,
                        const std::optional<v1::JobState>& snapshot) {
  std::vector<std::optional<v1::ChiefMemory>> memories;
  const v1::ChiefMemory* newest = nullptr;  // of the servers that hold their shard
  bool any_shard = false;
  bool any_memory = false;
  memories.reserve(servers.size());
  for (size_t s = 0; s < servers.size(); ++s) {
    const std::optional<v1::ChiefMemory>& memory = memories.emplace_back(MemoryOf(servers[s]));
    if (!HoldsShard(expected, servers[s], s)) continue;
    any_shard = true;
    if (!memory.has_value()) continue;
    any_memory = true;
    if (snapshot.has_value() && !FitsSnapshot(*memory, *snapshot)) continue;
    if (newest == nullptr || memory->job().book_version() > newest->job().book_version()) {
      newest = &*memory;
    }
  }
  if (!any_shard) return StartOver("no server holds its shard of this job");
  if (!any_memory) return StartOver("no chief has left its memory at a server");
  if (newest == nullptr) {
    return StartOver("the servers hold another job than that of the newest snapshot");
  }
  Adoption decision;
  decision.adopted = true;
  const uint64_t job_id = newest->job().job_id();
  int kept = 0;
  for (size_t s = 0; s < servers.size(); ++s) {
    const std::optional<v1::ChiefMemory>& memory = memories[s];
    const bool this_job = !memory.has_value() || memory->job().job_id() == job_id;
    decision.keeps.push_back(this_job && HoldsShard(expected, servers[s], s));
    kept += decision.keeps.back() ? 1 : 0;
    if (memory.has_value() && this_job &&
        memory->job().book_version() > newest->job().book_version()) {
      newest = &*memory;
    }
  }
  decision.memory = *newest;
  decision.from_snapshot = snapshot.has_value() && snapshot->job_id() == job_id &&
                           snapshot->book_version() > decision.memory.job().book_version();
  if (decision.from_snapshot) TakeBooksOf(*snapshot, &decision.memory);
  decision.reason = absl::StrCat(
      "adopting the running job at step ", decision.memory.job().global_step(), ": ", kept, " of ",
      servers.size(), " servers keep their shards, ", decision.memory.members_size(),
      " members and ", decision.memory.leases_size(), " leases are expected back");
  return decision;
}

}  // namespace keelson
