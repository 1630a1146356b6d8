#include "core/checkpoint/bundle_index.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_contents.h"
#include "core/checkpoint/index_table.h"

namespace keelson {
namespace {

constexpr int kProducerVersion = 1;

absl::Status ConflictError(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", absl::CHexEscape(key), "': ", what));
}

bool SameTensor(const v1::BundleEntry& a, const v1::BundleEntry& b) {
  return a.dtype() == b.dtype() && a.shape().SerializeAsString() == b.shape().SerializeAsString();
}

absl::Status Join(const BundleIndexEntry& from, v1::BundleEntry* to) {
  if (from.entry.slices().empty() || to->slices().empty()) {
    return ConflictError(from.key, "is in two data files");
  }
  if (!SameTensor(from.entry, *to)) {
    return ConflictError(from.key, "its slices disagree about its type or shape");
  }
  to->mutable_slices()->MergeFrom(from.entry.slices());
  return absl::OkStatus();
}

// Sorting makes the file independent of the order in which servers answered.
void SortSlices(v1::BundleEntry* entry) {
  std::stable_sort(entry->mutable_slices()->begin(), entry->mutable_slices()->end(),
                   [](const v1::TensorSlice& a, const v1::TensorSlice& b) {
                     for (int i = 0; i < std::min(a.extent_size(), b.extent_size()); ++i) {
                       if (a.extent(i).start() != b.extent(i).start()) {
                         return a.extent(i).start() < b.extent(i).start();
                       }
                     }
                     return false;
                   });
}

std::string SerializedHeader(size_t num_data_shards) {
  v1::BundleHeader header;
  header.set_num_shards(static_cast<int32_t>(num_data_shards));
  header.mutable_version()->set_producer(kProducerVersion);
  return header.SerializeAsString();
}

absl::StatusOr<IndexTable> MergeEntries(size_t num_data_shards,
                                        std::vector<BundleIndexEntry> entries) {
  std::map<std::string, v1::BundleEntry> merged;
  for (BundleIndexEntry& entry : entries) {
    if (entry.key.empty()) return ConflictError(entry.key, "is not a name for a tensor");
    auto [it, first] = merged.try_emplace(entry.key);
    if (first) {
      it->second = std::move(entry.entry);
    } else {
      RETURN_IF_ERROR(Join(entry, &it->second));
    }
  }
  IndexTable table = {{kHeaderKey, SerializedHeader(num_data_shards)}};
  for (auto& [key, entry] : merged) {
    SortSlices(&entry);
    table.emplace(key, entry.SerializeAsString());
  }
  return table;
}

}  // namespace

absl::Status WriteBundleIndex(FileSystem* file_system, const std::string& prefix,
                              size_t num_data_shards, std::vector<BundleIndexEntry> entries) {
  return WriteBundleIndexTo(file_system, IndexPath(prefix), num_data_shards, std::move(entries));
}

absl::Status WriteBundleIndexTo(FileSystem* file_system, const std::string& path,
                                size_t num_data_shards, std::vector<BundleIndexEntry> entries) {
  absl::StatusOr<IndexTable> table = MergeEntries(num_data_shards, std::move(entries));
  absl::Status status = table.status();
  if (status.ok()) status = ParseBundleContents(*table).status();
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  return WriteIndexTable(file_system, path, *table);
}

}  // namespace keelson
