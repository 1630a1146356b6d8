// How the variables of a model travel to and from the servers of a placement: what a device has to
// know to encode gradients and decode values by itself.
#ifndef KEELSON_CORE_CLIENT_PLAN_WIRE_PLAN_H_
#define KEELSON_CORE_CLIENT_PLAN_WIRE_PLAN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cluster/placement.h"
#include "core/cluster/transfer_formats.h"
#include "core/tensor/variable.h"
#include "core/wire/wire_layout.h"

namespace keelson {

// Where each of the placement's variables stands in `variables`, the model's. INVALID_ARGUMENT: the
// two are not the same variables.
absl::StatusOr<std::vector<int>> MatchVariables(absl::Span<const VariableSpec> variables,
                                                const Placement& placement);

// By `variables`, the model's, in its order: the blocks of all shards in one layout. `formats` are
// in the same order; empty: float32. INVALID_ARGUMENT: the placement is of other variables, or
// another number of formats.
absl::StatusOr<std::vector<VariableWire>> WireOf(const Placement& placement,
                                                 absl::Span<const VariableSpec> variables,
                                                 absl::Span<const VariableFormats> formats);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_PLAN_WIRE_PLAN_H_
