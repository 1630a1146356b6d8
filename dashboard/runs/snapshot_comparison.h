// The distances between the variables of two snapshots.
#ifndef KEELSON_DASHBOARD_RUNS_SNAPSHOT_COMPARISON_H_
#define KEELSON_DASHBOARD_RUNS_SNAPSHOT_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/tensor/shape.h"

namespace keelson {

struct VariableChange {
  std::string name;
  Shape shape;
  // Euclidean; norm_change is that of b - a.
  double norm_a = 0;
  double norm_b = 0;
  double norm_change = 0;
  double max_change = 0;
  // norm_change / norm_a; infinite where norm_a alone is 0.
  double relative_change = 0;
};

// Compares the float32 variables that both have with the same shape, the largest relative change
// first; without optimizer slots and job state. Reads all of both, a part at a time. Errors of
// BundleReader.
absl::StatusOr<std::vector<VariableChange>> CompareSnapshots(const std::string& prefix_a,
                                                             const std::string& prefix_b,
                                                             FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_SNAPSHOT_COMPARISON_H_
