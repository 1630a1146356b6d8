// The goals of docs/performance.md, checked against results.
#ifndef KEELSON_BENCH_GOALS_H_
#define KEELSON_BENCH_GOALS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/comparison.h"
#include "bench/result.h"
#include "bench/table.h"

namespace keelson::bench {

struct GoalOutcome {
  std::string goal;    // "4 MB push, SGD / raw socket"
  std::string wanted;  // ">= 0.80"
  double found = 0;
  bool met = false;
};

// Goals and what was found.
class GoalList {
 public:
  void AtLeast(const std::string& goal, double wanted, double found);
  void AtMost(const std::string& goal, double wanted, double found);

  std::vector<GoalOutcome> Take() { return std::move(outcomes_); }

 private:
  std::vector<GoalOutcome> outcomes_;
};

// Those whose scenarios were run, in the order of the page.
std::vector<GoalOutcome> CheckGoals(const std::vector<Result>& results,
                                    const std::optional<IdleCpu>& idle);

Table GoalTable(const std::vector<GoalOutcome>& outcomes);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GOALS_H_
