// Joins the parts of a TensorBundle that several servers wrote, by writing its index.
// Format: tensorflow/core/util/tensor_bundle/tensor_bundle.h (MergeBundles).
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_INDEX_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_INDEX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// One record of the index. The key is a tensor's name, or a slice's (EncodeSliceKey). A tensor
// with slices has one record for each slice's data, and one that lists the slices in every data
// file that has some of them.
struct BundleIndexEntry {
  std::string key;
  v1::BundleEntry entry;
};

// Writes the file `index_path`: the index over the data files 0 … num_data_shards-1 of a bundle,
// whose entries are given in any order. Slices of one tensor, from whichever data files, are
// joined. The index appears under its name complete and durable, or not at all. INVALID_ARGUMENT,
// naming the tensor: in two data files; slices that overlap, leave a gap or disagree about the
// tensor; no data for a slice; a data file outside 0 … num_data_shards-1. Otherwise as
// file_system.h.
absl::Status WriteBundleIndexTo(FileSystem* file_system, const std::string& index_path,
                                size_t num_data_shards, std::vector<BundleIndexEntry> entries);
// The same for IndexPath(prefix).
absl::Status WriteBundleIndex(FileSystem* file_system, const std::string& prefix,
                              size_t num_data_shards, std::vector<BundleIndexEntry> entries);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_INDEX_H_
