// The arrays of NumPy's .npz files as columns.
#ifndef KEELSON_CORE_DATA_NPZ_BLOCKS_H_
#define KEELSON_CORE_DATA_NPZ_BLOCKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/columns/block_file.h"
#include "core/data/columns/file_columns.h"

namespace keelson {

// Reads those arrays that are needed, into memory, as one block. A column is
//   - the array of its name, [n, …]: the numbers of a record are those of its row;
//   - or two: NAME with the values of all records, [m], and NAME_offsets with where each record's
//     begin, [n], or [n + 1] with the end, as PyTorch's EmbeddingBag takes them.
// All have the same n. Booleans and whole numbers are integers, those of uint64 from 2^63 on
// negative ones of the same bits; others are numbers.
// INVALID_ARGUMENT, "FILE: array "x": expected …, found …": arrays of which that is not true.
// INVALID_ARGUMENT: no such column. Others: NpzFile's.
absl::StatusOr<std::unique_ptr<BlockFile>> OpenNpzBlocks(const std::string& path,
                                                         const NeededColumns& needed);
// Those that there are, in the archive's order. DATA_LOSS and others: NpzFile's.
absl::StatusOr<std::vector<FileColumn>> ListNpzColumns(const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_NPZ_BLOCKS_H_
