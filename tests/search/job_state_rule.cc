#include "tests/search/job_state_rule.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

// Ranges of records that must not overlap.
class DisjointRanges {
 public:
  // Whether the range has nothing in common with those before.
  bool Add(int64_t epoch, int64_t begin, int64_t end) {
    if (begin >= end) return true;
    std::map<int64_t, int64_t>& ranges = ranges_[epoch];
    auto next = ranges.lower_bound(begin);
    if (next != ranges.end() && next->first < end) return false;
    if (next != ranges.begin() && std::prev(next)->second > begin) return false;
    ranges[begin] = end;
    return true;
  }

 private:
  std::map<int64_t, std::map<int64_t, int64_t>> ranges_;  // by epoch, from begin to end
};

std::string Twice(absl::string_view where, int64_t epoch, int64_t begin, int64_t end) {
  return absl::StrCat("records ", begin, "..", end - 1, " of epoch ", epoch, " are ", where,
                      ", and elsewhere, too");
}

}  // namespace

std::string CheckJobState(const v1::PersistedJobState& state, size_t tasks, size_t lost) {
  if (static_cast<size_t>(state.members_size()) > tasks) {
    return absl::StrCat(state.members_size(), " members of ", tasks, " tasks");
  }
  std::set<uint64_t> holders;
  DisjointRanges ranges;
  for (const v1::PersistedJobState::Lease& lease : state.leases()) {
    holders.insert(lease.worker());
    for (int i = static_cast<int>(lease.completed()); i < lease.tickets_size(); ++i) {
      const v1::PersistedJobState::Ticket& ticket = lease.tickets(i);
      if (!ranges.Add(ticket.epoch(), ticket.begin(), ticket.end())) {
        return Twice("leased", ticket.epoch(), ticket.begin(), ticket.end());
      }
    }
  }
  if (holders.size() > tasks + lost) {
    return absl::StrCat("leases of ", holders.size(), " members");
  }
  for (const v1::PersistedJobState::Ticket& ticket : state.returned()) {
    if (!ranges.Add(ticket.epoch(), ticket.begin(), ticket.end())) {
      return Twice("returned", ticket.epoch(), ticket.begin(), ticket.end());
    }
  }
  for (const v1::JobState::Range& range : state.job().unfinished()) {
    if (!ranges.Add(range.epoch(), range.begin(), range.end())) {
      return Twice("unfinished", range.epoch(), range.begin(), range.end());
    }
  }
  return "";
}

}  // namespace keelson
