// A job's consistency mode (how its workers wait for each other) as a value.
#ifndef KEELSON_CORE_CLUSTER_CONSISTENCY_H_
#define KEELSON_CORE_CLUSTER_CONSISTENCY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// v1::ConsistencyMode with its defaults filled in; train_config.proto says what the modes do. Made
// by the functions below, so it is always valid. As text:
// async no worker waits
//   ssp:4      stale synchronous parallel: at most 4 steps ahead of the slowest
//   sync:3     a step is the mean of 3 gradients
//   sync:3/5   5 are computed, the first 3 count
struct ConsistencyMode {
  enum Kind { kAsync, kBoundedStaleness, kSynchronous };

  Kind kind = kAsync;
  int64_t staleness = 0;              // kBoundedStaleness: 0..2^30
  int64_t replicas_to_aggregate = 0;  // kSynchronous: 1..2^20
  int64_t total_replicas = 0;         // kSynchronous: at least replicas_to_aggregate, at most 2^20

  bool synchronous() const { return kind == kSynchronous; }
  // Some gradients of a step are dropped.
  bool contested() const { return total_replicas > replicas_to_aggregate; }
  // How many batches count in a step.
  int64_t batches_per_step() const { return synchronous() ? replicas_to_aggregate : 1; }

  // INVALID_ARGUMENT: none of the texts above, or a number out of range.
  static absl::StatusOr<ConsistencyMode> Parse(absl::string_view text);
  std::string ToString() const;

  // No mode is async; no total_replicas means as many as replicas_to_aggregate. INVALID_ARGUMENT: a
  // number out of range; the text begins with `path`, the place of the message, and the field.
  static absl::StatusOr<ConsistencyMode> FromProto(const v1::ConsistencyMode& proto,
                                                   absl::string_view path = "mode");
  v1::ConsistencyMode ToProto() const;

  friend bool operator==(const ConsistencyMode&, const ConsistencyMode&) = default;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_CONSISTENCY_H_
