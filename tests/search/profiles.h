// Faults that are drawn together, since a rare order of events takes several at once.
#ifndef KEELSON_TESTS_SEARCH_PROFILES_H_
#define KEELSON_TESTS_SEARCH_PROFILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/search/dice.h"
#include "tests/search/scenario.h"

namespace keelson {

// What a schedule's faults are about. Those from kHosts on need clusters whose workers host shards.
enum class FaultProfile {
  kAny,        // any faults at any time (scenario.cc)
  kPoints,     // any faults at any points
  kCommits,    // a round is committed while a chief is followed by another one
  kCuts,       // snapshots are cut, written and committed while roles end
  kMembers,    // memberships end while servers are slow or away
  kChiefs,     // a chief is replaced, and wakes up, while servers are restarted
  kDrains,     // servers are drained, and messages to them lost
  kRestarts,   // all start again while storage fails
  kHosts,      // hosts of a collective cluster end at points of steps, replicas and moves
  kHybrid,     // the same of chief, servers and hosts of a hybrid cluster
  kRegisters,  // hosts come and go while their announcements are lost or late, or the leader is
               // away
};

// "commits"
std::string FaultProfileName(FaultProfile profile);

// Nothing: there is no profile of that name.
std::optional<FaultProfile> ParseFaultProfile(absl::string_view name);

// The profile of a seed.
FaultProfile DrawProfile(uint64_t seed);

// Makes the job one in which the profile's faults meet what they are about. Not kAny.
void AdaptJob(FaultProfile profile, Dice* dice, Scenario* scenario);

// Draws faults for that job, no more than 7.
std::vector<SimFault> DrawFaults(FaultProfile profile, const Scenario& scenario, Dice* dice);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_PROFILES_H_
