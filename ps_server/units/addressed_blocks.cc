#include "ps_server/units/addressed_blocks.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

bool Before(const BlockRange& a, const BlockRange& b) {
  return a.partition != b.partition ? a.partition < b.partition : a.first_block < b.first_block;
}

// Whether `b`, which is not Before `a`, has blocks of it.
bool Overlap(const BlockRange& a, const BlockRange& b) {
  return a.partition == b.partition && b.first_block < uint64_t{a.first_block} + a.num_blocks;
}

AddressedBlock FirstOf(const BlockRange& range) {
  AddressedBlock block;
  block.partition = range.partition;
  block.index = range.first_block;
  return block;
}

absl::Status CheckListedOnce(const ShardStore& store, absl::Span<const BlockRange> ranges) {
  if (ranges.size() < 2) return absl::OkStatus();
  std::vector<BlockRange> sorted;
  sorted.reserve(ranges.size());
  std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(sorted),
               [](const BlockRange& range) { return range.num_blocks > 0; });
  if (!std::is_sorted(sorted.begin(), sorted.end(), Before)) {
    std::sort(sorted.begin(), sorted.end(), Before);
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), Overlap);
  if (twice == sorted.end()) return absl::OkStatus();
  RETURN_IF_ERROR(store.Find(twice[1].partition, twice[1].first_block).status());
  return ErrorAt(store, FirstOf(twice[1]), "expected once, found listed twice");
}

}  // namespace

absl::StatusOr<std::vector<AddressedBlock>> ResolveBlocks(const ShardStore& store,
                                                          absl::Span<const BlockRange> ranges) {
  // This check comes first, so that a message cannot request more than the shard has.
  RETURN_IF_ERROR(CheckListedOnce(store, ranges));
  std::vector<AddressedBlock> blocks;
  blocks.reserve(ranges.size());
  for (const BlockRange& range : ranges) {
    for (uint32_t i = 0; i < range.num_blocks; ++i) {
      const int64_t index = int64_t{range.first_block} + i;
      ASSIGN_OR_RETURN(Block * block, store.Find(range.partition, index));
      blocks.push_back({block, range.partition, static_cast<uint32_t>(index),
                        store.BlockElements(range.partition, index), range.format,
                        range.pull_format, range.absent});
    }
  }
  return blocks;
}

absl::Status ErrorAt(const ShardStore& store, const AddressedBlock& block,
                     absl::string_view problem) {
  const VariableSpec& variable = store.placement().VariableOf(block.partition);
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", variable.name, ", block ", block.index, ": ", problem));
}

}  // namespace keelson
