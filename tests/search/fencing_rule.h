// What must be true of a chief whose place another one has taken.
#ifndef KEELSON_TESTS_SEARCH_FENCING_RULE_H_
#define KEELSON_TESTS_SEARCH_FENCING_RULE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace keelson {

// A chief commits no snapshot if, before its last part was written, a server has obeyed a chief
// that was started later and owned the model directory; and no server obeys a chief after it has
// obeyed such a one. A chief that cannot take the directory has no term of its own, by which
// servers would tell it from another; it can commit nothing either. Processes are known by the
// order of their starts. Not thread-safe.
class FencingRule {
 public:
  // The number of what happens now: the calls of others begin before or after it.
  int64_t Now() { return ++events_; }
  // A chief has written that it owns the model directory.
  void NoteOwner(int chief) { owners_.insert(chief); }
  // A part of a snapshot was written, as the chief learns.
  void NoteWritten(int chief) { written_[chief] = ++events_; }
  // A server has carried out a chief's call, which began at `begun`. Returns what is wrong; empty:
  // nothing.
  std::string NoteObeyed(int server, int chief, int64_t begun);
  // A process has ended.
  void NoteEnd(int process) { obeyed_.erase(process); }
  // The chief has committed a snapshot. Returns what is wrong; empty: nothing.
  std::string CheckCommit(int chief) const;

 private:
  struct Obeyed {
    int chief = -1;
    int64_t since = 0;
  };

  int64_t events_ = 0;
  std::set<int> owners_;
  std::map<int, int64_t> written_;  // by chief
  std::map<int, Obeyed> obeyed_;    // by server that lives: the latest owner
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_FENCING_RULE_H_
