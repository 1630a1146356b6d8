// What a chief does when it starts and the servers are there already: adopt the cluster that is
// running, or start over from the newest snapshot.
#ifndef KEELSON_CHIEF_SERVERS_ADOPTION_H_
#define KEELSON_CHIEF_SERVERS_ADOPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// What the shards of this job look like.
struct ExpectedShards {
  uint64_t config_hash = 0;
  uint64_t placement_fingerprint = 0;
};

struct Adoption {
  bool adopted = false;
  // One line for the log: why not, or what is adopted.
  std::string reason;

  // ---- When adopted.
  // The books to go on with.
  v1::ChiefMemory memory;
  // The books' job state is that of the snapshot.
  bool from_snapshot = false;
  // By server: its shard stays as it is. The others are restored.
  std::vector<bool> keeps;
};

// A cluster is adopted when at least one server holds its shard of this job and some chief's memory
// of it is left. It is this job's when its job_id is that of the newest snapshot. A snapshot
// without job_id, which is none of ours, fits when the memory says that the job went on from its
// step; where there is no snapshot, the servers alone say which job it is.
//
// The newest memory becomes the books, whichever server has it. When `snapshot` is newer still (it
// was taken after the last memory was left), its job state takes the place of the memory's, and the
// leases, which it has as unfinished ranges, are left to the workers to claim.
//
// `servers[s]` is what server s said (GetStatus with memory); `snapshot` the state of the newest
// snapshot that can be read. A pure function.
Adoption DecideAdoption(const ExpectedShards& expected, const std::vector<v1::ShardStatus>& servers,
                        const std::optional<v1::JobState>& snapshot);

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_ADOPTION_H_
