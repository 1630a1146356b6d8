// What may happen to a job in a soak: storms, each with a name, how it begins, how it ends, and
// what is expected of the job afterwards.
#ifndef KEELSON_TESTS_SOAK_STORMS_H_
#define KEELSON_TESTS_SOAK_STORMS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/soak/soak_job.h"

namespace keelson {

// A storm, or a part of one, that has begun.
struct BegunStorm {
  // What was done, to whom: "freeze of ps-1".
  std::string what;
  // It ends at a random time, at the latest after this; or, where `over` is set, once that is true.
  absl::Duration longest;
  std::function<bool()> over;
  // Ends it. Called once, at the latest when the soak heals everything; where `over` is set, never
  // before that is true.
  std::function<void()> end;
  // Must become true after the end, and is asked until it is; empty: nothing is expected but what
  // is checked when the job is done.
  std::function<bool()> expected;
};

struct Storm {
  absl::string_view name;
  // How often it is drawn, compared with others.
  int weight;
  // Begins it. Empty: it cannot begin in the job's present state, and nothing was done.
  std::vector<BegunStorm> (*begin)(SoakJob* job);
  // Whether jobs with synchronous steps over hosts of shards have it.
  bool on_hosts = true;
};

// Those that jobs on such a cluster have.
std::vector<Storm> StormsOf(SoakCluster cluster);

}  // namespace keelson

#endif  // KEELSON_TESTS_SOAK_STORMS_H_
