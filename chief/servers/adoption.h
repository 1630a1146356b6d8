// Decides what a chief does when it starts and finds servers: adopt the cluster that is running, or
// start over from the newest snapshot (ADR 0010).
#ifndef KEELSON_CHIEF_SERVERS_ADOPTION_H_
#define KEELSON_CHIEF_SERVERS_ADOPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// The properties by which shards of this job are recognised.
struct ExpectedShards {
  uint64_t config_hash = 0;
  uint64_t placement_fingerprint = 0;
};

struct Adoption {
  bool adopted = false;
  // One line for the log: what is adopted, or why nothing is.
  std::string reason;

  // ---- Set when adopted. The job state from which to continue.
  v1::PersistedJobState persisted;
  // True: `persisted.job` was replaced by the job state of the snapshot.
  bool from_snapshot = false;
  // By server: its shard stays as it is. The others are restored.
  std::vector<bool> keeps;
};

// A cluster is adopted when at least one server holds its shard of this job and at least one holds
// a chief's persisted job state. It is this job's when its job_id is that of the newest snapshot. A
// snapshot without job_id, which Keelson did not write, fits when the persisted state says that the
// job continued from its step; without a snapshot the servers alone determine the job.
//
// The newest persisted state counts, whichever server has it. When `snapshot` is newer still, its
// job state replaces the persisted one, and the leases, which a snapshot has as unfinished ranges,
// are claimed by their workers.
//
// `servers[s]` is the answer of server s (GetStatus with job_state); `snapshot` is the state of the
// newest snapshot that can be read. A pure function.
Adoption DecideAdoption(const ExpectedShards& expected, const std::vector<v1::ShardStatus>& servers,
                        const std::optional<v1::JobState>& snapshot);

// The newest step that a job state at one of the servers tells of, whatever job it is of; 0: none.
int64_t RememberedStep(const std::vector<v1::ShardStatus>& servers);

// The number of steps of this job that the servers are known to have done; 0: none.
int64_t StepOfJob(const std::vector<v1::ShardStatus>& servers, uint64_t job_id);

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_ADOPTION_H_
