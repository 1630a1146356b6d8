// Memberships that are over, until every server refuses them and their work may go to others.
#ifndef KEELSON_CHIEF_COORDINATION_ENDED_MEMBERS_H_
#define KEELSON_CHIEF_COORDINATION_ENDED_MEMBERS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace keelson {

// Thread-safe.
class EndedMembers {
 public:
  // These incarnations are not in the MemberList of `epoch`.
  void Add(uint64_t epoch, const std::vector<uint64_t>& incarnations) {
    MutexLock lock(&mu_);
    std::vector<uint64_t>& ended = ended_[epoch];
    ended.insert(ended.end(), incarnations.begin(), incarnations.end());
  }

  // Every server knows the MemberList of `epoch`, or a newer one. Returns those who are in none of
  // these lists, each once.
  std::vector<uint64_t> TakeTold(uint64_t epoch) {
    MutexLock lock(&mu_);
    std::vector<uint64_t> told;
    while (!ended_.empty() && ended_.begin()->first <= epoch) {
      const std::vector<uint64_t>& ended = ended_.begin()->second;
      told.insert(told.end(), ended.begin(), ended.end());
      ended_.erase(ended_.begin());
    }
    return told;
  }

  bool empty() const {
    MutexLock lock(&mu_);
    return ended_.empty();
  }

 private:
  mutable Mutex mu_;
  std::map<uint64_t, std::vector<uint64_t>> ended_ ABSL_GUARDED_BY(mu_);  // by epoch
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_ENDED_MEMBERS_H_
