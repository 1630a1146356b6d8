// The wire formats of each variable: TransferConfig of train_config.proto, resolved.
#ifndef KEELSON_CORE_CLUSTER_TRANSFER_FORMATS_H_
#define KEELSON_CORE_CLUSTER_TRANSFER_FORMATS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "core/wire/wire_format.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct VariableFormats {
  WireFormat push = WireFormat::kFloat32;  // gradients: any
  WireFormat pull = WireFormat::kFloat32;  // values: an elementwise one
  // Part of a block's elements that a kTopK push sends, in (0, 1].
  float top_k_fraction = 0.01f;

  friend bool operator==(const VariableFormats&, const VariableFormats&) = default;
};

// The number of a block's `elements` that a kTopK push sends: the fraction, rounded up, at least
// one.
int64_t TopKCount(float fraction, int64_t elements);

// Checks the configuration by itself. INVALID_ARGUMENT, with the field ("transfer.groups[1].pull"):
// no pattern, a format that does not exist or that values cannot have, a fraction outside of (0,
// 1], a negative count, a depth that is neither 1 nor 2. Numbers that are 0 are defaults and pass.
absl::Status ValidateTransferConfig(const v1::TransferConfig& config);

// Checks a configuration that is valid by itself against a model. INVALID_ARGUMENT: a group with
// another format than float32 matches only variables that are not trained (VariableSpec); one whose
// gradients travel as top-k decides for a table; two steps under way with tables.
absl::Status CheckTransferGroups(const v1::TransferConfig& config,
                                 absl::Span<const VariableSpec> variables,
                                 absl::Span<const TableSpec> tables = {});

// One entry per variable, in their order, of a valid configuration. Variables that are not trained
// always travel as float32.
std::vector<VariableFormats> ResolveTransferFormats(const v1::TransferConfig& config,
                                                    absl::Span<const VariableSpec> variables);

// The formats in which the rows of each table travel, of a configuration that CheckTransferGroups
// accepts: int8 has a scale for each row, so min_elements does not count.
std::vector<VariableFormats> ResolveTableFormats(const v1::TransferConfig& config,
                                                 absl::Span<const TableSpec> tables);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_TRANSFER_FORMATS_H_
