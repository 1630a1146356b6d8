// The values of a model's variables in a snapshot.
#ifndef KEELSON_EVALUATOR_SNAPSHOT_VALUES_H_
#define KEELSON_EVALUATOR_SNAPSHOT_VALUES_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/tensor/variable.h"

namespace keelson {

// INVALID_ARGUMENT: the snapshot has not these variables, each float32 of its shape.
absl::Status CheckVariables(const BundleReader& bundle, absl::Span<const VariableSpec> variables);

// Calls `take` with the position and the values of each variable. `lease` (may be null) is renewed
// meanwhile; where that fails, a warning is logged. Errors of the bundle and of `take`.
absl::Status ReadVariables(
    const BundleReader& bundle, absl::Span<const VariableSpec> variables, SnapshotLease* lease,
    const Clock* clock,
    absl::FunctionRef<absl::Status(size_t variable, absl::Span<const float> values)> take);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SNAPSHOT_VALUES_H_
