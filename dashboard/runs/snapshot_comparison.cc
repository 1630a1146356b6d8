#include "dashboard/runs/snapshot_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"

namespace keelson {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 18;
constexpr char kOwnTensors[] = "_keelson";

// "dense/kernel/Momentum" is a slot of "dense/kernel".
bool IsVariable(const BundleReader& bundle, const TensorInfo& tensor) {
  if (tensor.dtype != BundleDtype::kFloat32 || absl::StartsWith(tensor.name, kOwnTensors))
    return false;
  const size_t slash = tensor.name.rfind('/');
  return slash == std::string::npos || !bundle.Contains(tensor.name.substr(0, slash));
}

absl::StatusOr<VariableChange> Compare(const BundleReader& a, const BundleReader& b,
                                       const TensorInfo& tensor) {
  double squares_a = 0;
  double squares_b = 0;
  double squares_change = 0;
  double max_change = 0;
  const int64_t elements = tensor.shape.num_elements();
  std::vector<float> values_a(std::min(elements, kChunkElements));
  std::vector<float> values_b(values_a.size());
  for (int64_t first = 0; first < elements; first += kChunkElements) {
    const size_t count = std::min(elements - first, kChunkElements);
    RETURN_IF_ERROR(a.ReadElements(tensor.name, first, absl::MakeSpan(values_a.data(), count)));
    RETURN_IF_ERROR(b.ReadElements(tensor.name, first, absl::MakeSpan(values_b.data(), count)));
    for (size_t i = 0; i < count; ++i) {
      const double x = values_a[i];
      const double y = values_b[i];
      squares_a += x * x;
      squares_b += y * y;
      squares_change += (y - x) * (y - x);
      max_change = std::max(max_change, std::abs(y - x));
    }
  }
  VariableChange change;
  change.name = tensor.name;
  change.shape = tensor.shape;
  change.norm_a = std::sqrt(squares_a);
  change.norm_b = std::sqrt(squares_b);
  change.norm_change = std::sqrt(squares_change);
  change.max_change = max_change;
  if (change.norm_a != 0) {
    change.relative_change = change.norm_change / change.norm_a;
  } else if (change.norm_change != 0) {
    change.relative_change = std::numeric_limits<double>::infinity();
  }
  return change;
}

}  // namespace

absl::StatusOr<std::vector<VariableChange>> CompareSnapshots(const std::string& prefix_a,
                                                             const std::string& prefix_b,
                                                             FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> a,
                   BundleReader::Open(prefix_a, file_system));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> b,
                   BundleReader::Open(prefix_b, file_system));
  std::vector<VariableChange> changes;
  for (const TensorInfo& tensor : a->List()) {
    if (!IsVariable(*a, tensor)) continue;
    const absl::StatusOr<TensorInfo> other = b->Info(tensor.name);
    if (!other.ok() || other->dtype != tensor.dtype || other->shape != tensor.shape) continue;
    ASSIGN_OR_RETURN(VariableChange change, Compare(*a, *b, tensor));
    changes.push_back(std::move(change));
  }
  // Values that are not a number sort first, like infinite ones.
  const auto rank = [](const VariableChange& change) {
    return std::isnan(change.relative_change) ? std::numeric_limits<double>::infinity()
                                              : change.relative_change;
  };
  std::stable_sort(
      changes.begin(), changes.end(),
      [&](const VariableChange& x, const VariableChange& y) { return rank(x) > rank(y); });
  return changes;
}

}  // namespace keelson
