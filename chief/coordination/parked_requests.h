// Requests of members that wait without a thread each.
#ifndef KEELSON_CHIEF_COORDINATION_PARKED_REQUESTS_H_
#define KEELSON_CHIEF_COORDINATION_PARKED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace keelson {

// Says which requests are to be tried again, and when. A member has at most one request of a kind
// here. A pure data structure: time is given. Not thread-safe.
class ParkedRequests {
 public:
  enum class Kind { kModel, kWork };
  using Id = uint64_t;  // never 0
  // Gives an answer to the one who asked.
  using Answer = std::function<void()>;
  // Tries to answer a request. Returns how the answer is given, or null: it waits on. `last`: it
  // must be answered now.
  using Attempt = std::function<Answer(bool last)>;

  // The attempts of one call of TryDue, so that the caller's lock is not held for thousands.
  static constexpr size_t kAttemptsAtOnce = 64;

  // A request is tried again each time that `renewal` has passed.
  explicit ParkedRequests(absl::Duration renewal) : renewal_(renewal) {}

  // Keeps a request that has just been tried. It is answered at `until` at the latest, or when
  // another one of this kind and incarnation is parked.
  Id Park(Kind kind, uint64_t incarnation, absl::Duration now, absl::Duration until,
          Attempt attempt);
  // False: it is not here any more.
  bool Withdraw(Id id);

  // The member's request of this kind is to be tried. False: there is none.
  bool MakeDue(Kind kind, uint64_t incarnation);
  void MakeAllDue() { rest_ = requests_.size(); }

  // When the next one is to be tried; infinite: there is none.
  absl::Duration NextDue() const;
  // Tries those that are due. What is answered is not here any more, and the answers are given by
  // the caller.
  std::vector<Answer> TryDue(absl::Duration now);

  bool empty() const { return requests_.empty(); }

 private:
  using Key = std::pair<Kind, uint64_t>;
  struct Request {
    Key key;
    Attempt attempt;
    absl::Duration until;
    absl::Duration due;
    bool overtaken = false;
  };
  using Requests = std::map<Id, Request>;

  void SetDue(Id id, Request* request, absl::Duration due);
  void Remove(Requests::iterator request);
  // The next one to be tried; the end: none is due.
  Requests::iterator Next(absl::Duration now);
  void Try(Requests::iterator request, absl::Duration now, std::vector<Answer>* answers);

  const absl::Duration renewal_;
  Id newest_ = 0;
  Requests requests_;
  std::map<Key, Id> by_member_;  // the newest of each member
  std::set<std::pair<absl::Duration, Id>> due_;
  // All are to be tried: so many more, in turn, after this one.
  size_t rest_ = 0;
  Id tried_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_PARKED_REQUESTS_H_
