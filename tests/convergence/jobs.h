// The data and the cluster of the convergence tests.
#ifndef KEELSON_TESTS_CONVERGENCE_JOBS_H_
#define KEELSON_TESTS_CONVERGENCE_JOBS_H_

#include "absl/time/time.h"
#include "tests/support/job.h"

namespace keelson {

inline constexpr absl::Duration kHangLimit = absl::Minutes(10);
inline constexpr char kRealDigits[] = "../shared/data/mnist";
inline constexpr Job::Layout kCluster = {};

}  // namespace keelson

#endif  // KEELSON_TESTS_CONVERGENCE_JOBS_H_
