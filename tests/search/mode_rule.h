// What must be true of a job's consistency mode while it is changed.
#ifndef KEELSON_TESTS_SEARCH_MODE_RULE_H_
#define KEELSON_TESTS_SEARCH_MODE_RULE_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "core/cluster/consistency.h"

namespace keelson {

// An answered change is in force from then on, whatever happens to the chief; one without an answer
// may come into force at any time. The change is lost only with all servers that lived at its
// answer and had been called by the chief since it was asked. Not thread-safe.
class ModeRule {
 public:
  explicit ModeRule(const ConsistencyMode& configured) : configured_(configured) {}

  // A request is sent. Returns its number, from 0.
  size_t Ask(const ConsistencyMode& mode);
  // The chief has called a process of a server.
  void NoteCalled(int process);
  // It was answered, while these processes of servers lived.
  void NoteAnswer(size_t request, std::set<int> servers);
  // It was refused, and not executed.
  void NoteRefusal(size_t request) { open_.erase(request); }
  // A process has ended.
  void NoteEnd(int process) { holders_.erase(process); }

  bool changes() const { return !asked_.empty(); }
  // Whether the job is in no other mode at any time.
  bool synchronous() const;
  // What is wrong with a job that ends with this mode; empty: nothing.
  std::string Check(const ConsistencyMode& found) const;

 private:
  const ConsistencyMode configured_;
  std::vector<ConsistencyMode> asked_;
  // Those without an answer.
  std::set<size_t> open_;
  // Of each, the others that had none when it was asked.
  std::vector<std::set<size_t>> open_when_asked_;
  // The processes that the chief has called since each was asked.
  std::vector<std::set<int>> called_;
  // The one that was answered last; those that were sent later may have been executed before it.
  size_t answered_ = 0;
  // The processes of servers that have that change and live; empty: there is none, or its change
  // may be lost.
  std::set<int> holders_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_MODE_RULE_H_
