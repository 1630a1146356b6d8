// The rows of tables that a batch needs: the distinct ids of each table, and where each id of a
// feature is among them.
#ifndef KEELSON_CORE_MODEL_SPEC_ROW_INDEXER_H_
#define KEELSON_CORE_MODEL_SPEC_ROW_INDEXER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// The features whose ids are looked up in a table.
struct TableFeatures {
  uint64_t salt = 0;  // TableSalt of its name
  // Positions in RecordSchema::features, ascending.
  std::vector<size_t> features;
};

// By table of the model.
std::vector<TableFeatures> TableFeaturesOf(const ModelSpec& spec);

// Sets Batch::rows. Keeps the memory that it needs. Not thread-safe.
//
// The ids are divided by their partitions first, so that what follows, a hash table of the distinct
// ones and a sort by radix, stays within the first caches.
class RowIndexer {
 public:
  explicit RowIndexer(std::vector<TableFeatures> tables) : tables_(std::move(tables)) {}

  // `batch` has the features of the model's RecordSchema. Memory of Batch::rows is used again.
  void Index(Batch* batch);

 private:
  struct Entry {
    uint64_t id = 0;
    // Its place among the ids of all features of the table: in `flat_`.
    size_t at = 0;
  };
  struct Distinct {
    uint64_t id = 0;
    uint32_t number = 0;  // among those of its partition, in the order in which they came
  };

  void IndexTable(const TableFeatures& table, Batch* batch, BatchRows* rows);
  // Puts the ids into entries_, those of partition p at [begins_[p], begins_[p + 1]).
  void Divide(const TableFeatures& table, const Batch& batch);
  // Appends a partition's distinct ids in ascending order, and sets flat_ of its entries.
  void IndexPartition(uint64_t salt, absl::Span<const Entry> entries, std::vector<uint64_t>* ids);
  // Finds the distinct ids of the entries: distinct_, and of each entry the number, numbers_.
  void FindDistinct(uint64_t salt, absl::Span<const Entry> entries);
  // Sorts distinct_ by id.
  void SortDistinct();

  const std::vector<TableFeatures> tables_;
  std::vector<uint8_t> partitions_;
  std::vector<size_t> begins_;
  std::vector<Entry> entries_;
  std::vector<int32_t> flat_;
  // Of one partition. A place of the hash table has 1 + the number of an id, or 0.
  std::vector<uint32_t> places_;
  std::vector<uint32_t> numbers_;
  std::vector<Distinct> distinct_;
  std::vector<Distinct> sorted_;
  std::vector<uint32_t> ends_;
  std::vector<int32_t> ranks_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_ROW_INDEXER_H_
