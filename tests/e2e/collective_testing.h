// Jobs of real programs without parameter servers, for tests.
#ifndef KEELSON_TESTS_E2E_COLLECTIVE_TESTING_H_
#define KEELSON_TESTS_E2E_COLLECTIVE_TESTING_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/job.h"

namespace keelson {

// Steps of a job that something happens to.
inline constexpr int kLongSteps = 800;

// A job without servers, with or without a chief; all its tasks share the machine.
class CollectiveJob : public Job {
 public:
  explicit CollectiveJob(int max_steps, bool chief = true, Evaluator evaluator = Evaluator::kNone);
  CollectiveJob(const std::string& config, bool chief, Evaluator evaluator, int workers = 2);

  const Task& leader() const { return leader_; }
  std::vector<Task> Trainers() const;
  // The job has done all its steps, and left the model.
  void ExpectTrained(int max_steps) const;
  nlohmann::json ReadJson(const std::string& file) const;

 private:
  const Task leader_;
};

// A job whose steps are all of the same size, and whose model has no threshold: sums are added in
// the order of arrival, and one that differs in its last bit makes a ReLU of another step flip.
std::string EvenConfig(int steps = kLongSteps);

// The same with steps that take long enough for processes to come and go meanwhile.
std::string SlowConfig(int steps = kLongSteps);

// Nothing was lost: no snapshot was read, and the model is what a job of a chief and so many
// workers makes to which nothing happened.
void ExpectNothingLost(const CollectiveJob& job, const std::string& config = EvenConfig(),
                       int workers = 2, double tolerance = 1e-5);

}  // namespace keelson

#endif  // KEELSON_TESTS_E2E_COLLECTIVE_TESTING_H_
