// Snapshots that build on others: a delta has a job's variables, and of its tables what has changed
// since its base. A chain is a snapshot with its base, that one's base, and so on to a whole one.
#ifndef KEELSON_CORE_CHECKPOINT_SNAPSHOT_CHAIN_H_
#define KEELSON_CORE_CHECKPOINT_SNAPSHOT_CHAIN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_reader.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Longer chains are taken for damage.
inline constexpr size_t kMostLinks = 1000;

// The base that the states of the bundle's shards name; nothing: the bundle is whole, or of another
// program. Errors of BundleReader and ParseShardState.
absl::StatusOr<std::optional<v1::SnapshotBase>> BaseOf(const BundleReader& bundle);

// Where the base of the delta at `prefix` is.
std::string BasePrefix(absl::string_view prefix, const v1::SnapshotBase& base);

// "the snapshot 00c0ffee00c0ffee of step 100".
std::string ToString(const v1::SnapshotBase& base);

// Opens the base of `delta`. NOT_FOUND: it is missing. DATA_LOSS: it is damaged, or another
// snapshot is there. Both say which one is expected where. Other errors of BundleReader.
absl::StatusOr<std::unique_ptr<BundleReader>> OpenBase(const BundleReader& delta,
                                                       const v1::SnapshotBase& base);

// Where a row of a partition is in a chain.
struct ChainedRow {
  uint64_t id = 0;
  uint32_t link = 0;  // of the chain
  int64_t row = 0;    // of the link's rows of the partition
};

// Makes of the rows of a partition, by ascending ids, those with a further link: its rows, by
// ascending ids, and without those of the ids that were erased, ascending, of which some may be
// repeated, and be among its rows.
void AddLink(uint32_t link, absl::Span<const uint64_t> ids, absl::Span<const uint64_t> erased,
             std::vector<ChainedRow>* rows);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_SNAPSHOT_CHAIN_H_
