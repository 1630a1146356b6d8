// Draws storms for a job, one after another, and sees each through to what is expected after it.
#ifndef KEELSON_TESTS_SOAK_STORM_SEQUENCE_H_
#define KEELSON_TESTS_SOAK_STORM_SEQUENCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/soak/soak_job.h"
#include "tests/soak/storms.h"

namespace keelson {

// Not thread-safe. The job outlives it.
class StormSequence {
 public:
  explicit StormSequence(SoakJob* job)
      : job_(job), storms_(StormsOf(job->cluster())), counts_(storms_.size()) {}

  // Draws a storm, unless one that was drawn before is waited for. It begins now, or in one of the
  // next calls of Tick; it is dropped when the job's state has not allowed it for some seconds.
  void Draw();

  // Begins the storm that waits, if it can, ends those that are over, asks what is expected of
  // others, and starts processes again that have ended by themselves. `may_be_done`:
  // SoakJob::WatchProcesses.
  void Tick(bool may_be_done);

  // Begins nothing more, ends all, and waits until what is expected after each has come true. Fails
  // the test for each for which that has not happened after `limit`.
  void EndAll(absl::Duration limit);

  // How often each storm has begun, a line for each.
  std::string Counts() const;

 private:
  struct Count {
    int begun = 0;
    int dropped = 0;
  };
  struct Waiting {
    size_t storm;  // of storms_
    absl::Time until;
  };
  struct Running {
    BegunStorm storm;
    absl::Time due;
    bool ended = false;
  };
  void Add(BegunStorm storm);
  void BeginWaiting(absl::Time now);
  // Ends those that are over, and forgets those after which nothing more is expected.
  void See(absl::Time now);

  SoakJob* const job_;
  const std::vector<Storm> storms_;
  std::vector<Count> counts_;  // of storms_
  std::optional<Waiting> waiting_;
  std::vector<Running> running_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SOAK_STORM_SEQUENCE_H_
