// What must be true of work that passes from a worker to another.
#ifndef KEELSON_TESTS_SEARCH_HANDING_RULE_H_
#define KEELSON_TESTS_SEARCH_HANDING_RULE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/wire/bulk_messages.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// Once a worker is given work that was another one's, no server applies a push that the other one
// makes of it. Of jobs whose mode is never synchronous: a synchronous step is begun again while its
// workers stay. Not thread-safe.
class HandingRule {
 public:
  // A chief has given the member this work. Chiefs are known by the order of their starts, and what
  // one gives is in the order of the leases' numbers.
  void NoteGranted(int chief, uint64_t incarnation, const v1::AcquireWorkResponse& work);
  // Grows with each of these calls.
  int64_t now() const { return now_; }
  // A server has executed a push. Returns what is wrong; empty: nothing. `begun`: only what was
  // given until then counts, which was now() when the server began with the push; one whose threads
  // are not run for a while may have applied it long before it is noted.
  std::string NotePushed(const BulkRequest& push, const BulkResponse& answer,
                         int64_t begun = std::numeric_limits<int64_t>::max()) const;

 private:
  using Records = std::pair<int64_t, int64_t>;  // epoch and first position

  struct Holder {
    std::pair<int, uint64_t> lease;  // of which chief
    uint64_t incarnation = 0;
    int64_t since = 0;  // now()
  };

  // Whether others were given all work until `begun` that the member was given as this step.
  bool HandedOn(uint64_t incarnation, int64_t step, int64_t begun) const;

  int64_t now_ = 0;
  std::map<Records, Holder> holders_;
  // By member and step: with which records it was given the step. Work that came back is given out
  // again, to the same member even, and a step then with other records.
  std::map<std::pair<uint64_t, int64_t>, std::set<Records>> granted_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_HANDING_RULE_H_
