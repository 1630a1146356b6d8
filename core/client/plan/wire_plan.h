// The wire layout of a model's variables for a placement: what a device needs to encode gradients
// and decode values by itself.
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

// The position of each of the placement's variables in `variables`, the model's. INVALID_ARGUMENT:
// the two are not the same variables.
absl::StatusOr<std::vector<size_t>> MatchVariables(absl::Span<const VariableSpec> variables,
                                                   const Placement& placement);

// The layouts in the order of `variables`, the model's; each has the blocks of all shards.
// `formats` are in the same order; empty: float32. INVALID_ARGUMENT: the placement has other
// variables, or the number of formats differs.
absl::StatusOr<std::vector<VariableWire>> WireOf(const Placement& placement,
                                                 absl::Span<const VariableSpec> variables,
                                                 absl::Span<const VariableFormats> formats);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_PLAN_WIRE_PLAN_H_
