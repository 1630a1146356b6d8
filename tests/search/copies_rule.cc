#include "tests/search/copies_rule.h"

namespace keelson {
namespace {

constexpr int kSilencesOfTheLost = 2;

}  // namespace

void CopiesRule::Doubt(int process) {
  for (Shard& shard : shards_) shard.sure.erase(process);
}

void CopiesRule::NoteServing(Shard* shard, int process, bool at_home) {
  shard->holders.insert(process);
  // Where it was before it has the replica, if it has gone home.
  if (shard->serving != process && !at_home) shard->sure.clear();
  shard->serving = process;
  shard->sure.insert(process);
}

void CopiesRule::NoteCall(size_t s, int process, bool at_home, absl::string_view what, bool done) {
  if (ended_.contains(process)) return;
  Shard& shard = shards_[s];
  // A status is asked for again.
  if (!done && what == "GetStatus" && ++silences_[process] < kSilencesOfTheLost) return;
  if (!done) return Doubt(process);
  silences_.erase(process);
  if (what == "Initialize") {
    shard = {{process}, {process}, process};
  } else if (what == "ReplicateShard") {
    shard.holders.insert(process);
    shard.sure = {process};
    if (shard.serving >= 0) shard.sure.insert(shard.serving);
  } else if (what == "ChiefHeartbeat") {
    NoteServing(&shard, process, at_home);
  } else if (what == "Finish") {
    shard.holders.erase(process);
    shard.sure.erase(process);
    Doubt(process);
  }
}

bool CopiesRule::NoteLost(int process, bool chief) {
  ended_.insert(process);
  bool lost = false;
  for (Shard& shard : shards_) {
    const bool held = shard.holders.erase(process) > 0;
    shard.sure.erase(process);
    if (shard.serving == process) shard.serving = -1;
    if (held && shard.sure.empty()) lost = true;
    // The next one does not know where replicas are.
    if (!chief) continue;
    shard.sure.clear();
    shard.serving = -1;
  }
  return lost;
}

}  // namespace keelson
