#include "chief/reporting/figures_testing.h"

namespace keelson {

v1::WorkerFigures SumsAfter(int64_t steps) {
  v1::WorkerFigures sums;
  sums.set_steps(steps);
  sums.set_examples(10 * steps);
  sums.set_staleness_sum(2 * steps);
  sums.set_staleness_max(5);
  for (int bucket = 0; bucket < 9; ++bucket) sums.add_staleness_counts(bucket == 2 ? steps : 0);
  sums.set_push_retries(3);
  sums.set_compute_seconds(0.25 * static_cast<double>(steps));
  sums.set_credit_wait_seconds(0.5 * static_cast<double>(steps));
  sums.set_bytes_pushed(100 * steps);
  sums.set_bytes_pulled(200 * steps);
  return sums;
}

}  // namespace keelson
