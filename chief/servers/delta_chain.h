// Decides which snapshots of a job are deltas.
#ifndef KEELSON_CHIEF_SERVERS_DELTA_CHAIN_H_
#define KEELSON_CHIEF_SERVERS_DELTA_CHAIN_H_

#include <cstdint>
#include <optional>

#include "chief/servers/server_cuts.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Which snapshots of a job with tables are deltas (core/checkpoint/snapshot_chain.h).
struct DeltaPolicy {
  // One of so many snapshots is whole; with 0 and 1 all are.
  int64_t full_every = 0;
};

// The newest snapshot that a chief has committed, and those that it builds on. The next one is a
// delta on it, but whole where a server does not know what has changed since, where that is more
// than half of the rows, and when the deltas have become half as large as the whole snapshot below
// them. Not thread-safe.
class DeltaChain {
 public:
  explicit DeltaChain(DeltaPolicy policy) : policy_(policy) {}

  // What servers are to tell of changes since the base, if the next snapshot may be a delta.
  ServerCuts::Changes ChangesToTell() const;
  // On what the cut is written as a delta; nothing: it becomes a whole snapshot.
  std::optional<v1::SnapshotBase> BaseFor(const ServerCuts::Cut& cut) const;
  // The snapshot of this cut's id, a delta on the newest one or whole, of so many bytes, is
  // committed.
  void Note(uint64_t cut, bool delta, const v1::JobState& state, int64_t bytes);

 private:
  struct Base {
    uint64_t cut = 0;
    v1::SnapshotBase name;
    int64_t whole_bytes = 0;  // of the whole snapshot that its chain begins with
    int64_t delta_bytes = 0;  // of the deltas on that, it included
    int64_t deltas = 0;       // how many
  };

  bool wanted() const { return policy_.full_every > 1; }

  const DeltaPolicy policy_;
  std::optional<Base> base_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_DELTA_CHAIN_H_
