// Shared code of the tests of failures: counting jobs at a known pace, and the figures that each
// test prints.
#ifndef KEELSON_TESTS_E2E_FAILURE_TESTING_H_
#define KEELSON_TESTS_E2E_FAILURE_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/counting_job.h"
#include "tests/support/job.h"
#include "tests/support/step_watch.h"

namespace keelson {

// Each way between a worker and a server: so slow that round trips determine the pace of a job (50
// steps a second by each worker) even where other processes compete for the cores: a step may take
// 5 ms more before StepWatch no longer takes the job's speed for full.
inline constexpr absl::Duration kPaceDelay = absl::Milliseconds(8);
// The most steps, about, that a worker does at that pace between two reports to the chief: so many
// tickets may be done twice when it crashes.
inline constexpr int64_t kMostUnreportedSteps = 100;

// A counting job on two servers, without an evaluator, whose workers are held to the pace; all the
// ways from workers to servers are links. The chief's lease is short.
struct PacedJob {
  explicit PacedJob(const CountingJobOptions& counting, int workers = 2,
                    Job::Evaluator evaluator = Job::Evaluator::kNone);

  // Sets all links between workers and servers.
  void SetPace(const LinkConditions& conditions);
  // Lets the workers run as fast as they can, and waits for the end of all but `killed`.
  void Finish(const std::vector<Task>& killed = {});

  // Newest snapshot and marker, which are those of the last step, or the test fails.
  CountedSnapshot FinalSnapshot() const;
  // Fails unless every server has applied every step once and no more than `most_twice` again.
  void ExpectCounts(int64_t most_twice) const;

  const CountingJobOptions counting;
  const int workers;
  Job job;
  // The watches of ps-0 and ps-1, once StartAndWatch was called.
  std::vector<std::unique_ptr<StepWatch>> watches;

  // Starts all, and watches the servers until they have counted `step`.
  void StartAndWatch(int64_t step);
};

// "[ figure   ] worker killed and replaced: from kill to full speed: 0.52 s"
void PrintFigure(const std::string& event, const std::string& figure);
// "1.23 s"
std::string Seconds(absl::Duration duration);

}  // namespace keelson

#endif  // KEELSON_TESTS_E2E_FAILURE_TESTING_H_
