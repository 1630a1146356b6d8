// What must be true of calls that wait at the chief for something to happen.
#ifndef KEELSON_TESTS_SEARCH_WAITING_RULE_H_
#define KEELSON_TESTS_SEARCH_WAITING_RULE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

// The chief answers each call two seconds before its caller gives up, whatever storage and other
// processes do. Callers ask again, so without this rule a request that is never answered would only
// make a job slow. Time in which it stands still does not count. Times are virtual. Not
// thread-safe.
class WaitingRule {
 public:
  // The process is about to carry out a call, which has a number of its own.
  void NoteBegin(int64_t call, int process, absl::string_view what, absl::Duration timeout,
                 absl::Duration now);
  void NoteDone(int64_t call) { calls_.erase(call); }
  // The process stands still from now on, or goes on.
  void NotePaused(int process, bool paused, absl::Duration now);
  // The process has ended.
  void NoteEnd(int process);
  // Returns what is wrong; empty: nothing.
  std::string Check(absl::Duration now) const;

 private:
  struct Call {
    int process = 0;
    std::string what;
    absl::Duration due;
  };

  std::map<int64_t, Call> calls_;         // by number
  std::map<int, absl::Duration> paused_;  // since when, by process
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_WAITING_RULE_H_
