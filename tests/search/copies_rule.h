// What must be true of shards that have replicas at other hosts.
#ifndef KEELSON_TESTS_SEARCH_COPIES_RULE_H_
#define KEELSON_TESTS_SEARCH_COPIES_RULE_H_

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// A process that ends takes nothing with it as long as another one has each of its shards, as the
// newest chief knows: then no shard is made of a snapshot, or of initial values, and no step is
// lost. Which processes those are follows from what the calls of a chief that has no rival have
// brought, in synchronous mode. Where that is not certain, as after a call that failed, a process
// does not count. Processes are known by the order of their starts. Not thread-safe.
class CopiesRule {
 public:
  explicit CopiesRule(size_t shards) : shards_(shards) {}

  // A call of the newest chief about shard `s` has ended at a process (SimControlWatch::on_end), as
  // the chief knows; `at_home`: the process is of the shard's home.
  void NoteCall(size_t s, int process, bool at_home, absl::string_view what, bool done);
  // A process, be it the chief's, has ended. True: it may have taken the only copy of a shard away.
  bool NoteLost(int process, bool chief);
  // The chief calls the process again, which was out of reach and had not ended.
  void NoteReturned(int process) { ended_.erase(process); }

 private:
  struct Shard {
    std::set<int> holders;  // may have the shard, in some state
    std::set<int> sure;     // have its newest state, and the chief knows that
    int serving = -1;
  };

  // The process is not counted any more.
  void Doubt(int process);
  static void NoteServing(Shard* shard, int process, bool at_home);

  std::vector<Shard> shards_;
  std::set<int> ended_;
  std::map<int, int> silences_;  // in a row, of processes that were asked for their status
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_COPIES_RULE_H_
