// The command of keelson_ckpt that compares two files of tensors.
#ifndef KEELSON_CLI_CKPT_DIFF_H_
#define KEELSON_CLI_CKPT_DIFF_H_

#include <ostream>

#include "absl/status/statusor.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

// Prints a line for each table that only one of them has, or that differs (DiffTables), and for
// each tensor that only one of them has, or whose type, shape or elements differ, with the largest
// difference, and a last line that counts. Numbers a and b are equal when |a - b|
// <= tolerance * max(1, |a|, |b|), computed exactly, or when both are NaN; elements of other types
// when all of their bytes are. False: something differs, or is of a type that cannot be read.
// Records (IsRecord) that differ are counted apart: they change nothing of this. Holds one tensor
// of each in memory, or one partition of a table. Errors of TensorSource::Read.
absl::StatusOr<bool> DiffTensors(TensorSource* a, TensorSource* b, double tolerance,
                                 std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_DIFF_H_
