#include "core/data/block_records.h"

#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using Block = std::shared_ptr<const ColumnBlock>;

// Thread-safe.
class BlockCache {
 public:
  explicit BlockCache(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null: it is not there.
  Block Find(size_t block) {
    MutexLock lock(&mu_);
    const auto found = places_.find(block);
    if (found == places_.end()) return nullptr;
    blocks_.splice(blocks_.begin(), blocks_, found->second);
    return found->second->second;
  }

  // Lets go of the blocks that were not used for the longest time, but not of this one.
  void Add(size_t number, Block block) {
    MutexLock lock(&mu_);
    if (places_.count(number) > 0) return;
    bytes_ += block->bytes();
    blocks_.emplace_front(number, std::move(block));
    places_[number] = blocks_.begin();
    while (bytes_ > most_bytes_ && blocks_.size() > 1) {
      bytes_ -= blocks_.back().second->bytes();
      places_.erase(blocks_.back().first);
      blocks_.pop_back();
    }
  }

 private:
  using Blocks = std::list<std::pair<size_t, Block>>;

  const uint64_t most_bytes_;
  Mutex mu_;
  Blocks blocks_ ABSL_GUARDED_BY(mu_);  // those that were used last first
  std::map<size_t, Blocks::iterator> places_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

class BlockRecords : public ReadableRecords {
 public:
  BlockRecords(std::vector<std::unique_ptr<BlockFile>> files,
               std::shared_ptr<const RecordMaker> maker, uint64_t cache_bytes)
      : files_(std::move(files)), maker_(std::move(maker)), cache_(cache_bytes) {
    for (size_t file = 0; file < files_.size(); ++file) {
      first_blocks_.push_back(blocks_.size());
      const std::vector<int64_t> records = files_[file]->block_records();
      for (size_t k = 0; k < records.size(); ++k) {
        blocks_.push_back({file, k});
        begins_.push_back(begins_.back() + records[k]);
      }
    }
    first_blocks_.push_back(blocks_.size());
  }

  absl::Status Check(int64_t max_bad_records) {
    for (size_t file = 0; file < files_.size(); ++file) {
      if (EndOf(file) == BeginOf(file)) {
        return absl::InvalidArgumentError(
            absl::StrCat(files_[file]->path(), ": expected one record or more, found none"));
      }
      RETURN_IF_ERROR(max_bad_records == 0 ? CheckFirst(file)
                                           : FindBadRecords(file, max_bad_records));
    }
    return absl::OkStatus();
  }

  int64_t size() const override { return begins_.back() - static_cast<int64_t>(left_out_.size()); }
  std::string where() const override { return FilesText(files_.front()->path(), files_.size()); }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    std::vector<int64_t> all(records.begin(), records.end());
    for (int64_t& record : all) {
      if (record < 0 || record >= size()) return NoRecord(record, size());
      record = PositionOf(record, left_out_);
    }
    const absl::Status status = ReadAll(all, batch);
    // A change says more than what it led to.
    std::vector<bool> used(files_.size());
    for (const int64_t record : all) used[blocks_[BlockOf(record)].file] = true;
    for (size_t i = 0; i < files_.size(); ++i) {
      if (used[i]) RETURN_IF_ERROR(files_[i]->CheckUnchanged());
    }
    return status;
  }

  absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const override {
    if (record < 0 || record >= size()) return NoRecord(record, size());
    const int64_t position = PositionOf(record, left_out_);
    const size_t number = BlockOf(position);
    const absl::StatusOr<Block> block = ReadBlock(number);
    RETURN_IF_ERROR(files_[blocks_[number].file]->CheckUnchanged());
    RETURN_IF_ERROR(block.status());
    return ColumnTexts(maker_->columns(), ValuesOf(**block, position - begins_[number]));
  }

 private:
  struct Place {
    size_t file = 0;
    size_t block = 0;  // of the file
  };
  using Values = absl::InlinedVector<ColumnValue, 64>;

  int64_t BeginOf(size_t file) const { return begins_[first_blocks_[file]]; }
  int64_t EndOf(size_t file) const { return begins_[first_blocks_[file + 1]]; }
  size_t BlockOf(int64_t record) const {
    return std::upper_bound(begins_.begin(), begins_.end(), record) - begins_.begin() - 1;
  }

  absl::StatusOr<Block> ReadBlock(size_t number) const {
    Block block = cache_.Find(number);
    if (block != nullptr) return block;
    const Place& place = blocks_[number];
    ASSIGN_OR_RETURN(block, files_[place.file]->Read(place.block));
    cache_.Add(number, block);
    return block;
  }

  static Values ValuesOf(const ColumnBlock& block, size_t record) {
    Values values;
    for (const BlockColumn& column : block.columns) values.push_back(column.Value(record));
    return values;
  }

  bool Fill(const ColumnBlock& block, size_t record, int64_t row, Batch* batch,
            ColumnError* error) const {
    return maker_->Fill(ValuesOf(block, record), row, batch, error);
  }

  absl::Status NotARecord(int64_t record, const ColumnError& error,
                          absl::string_view more = "") const {
    const size_t file = blocks_[BlockOf(record)].file;
    return absl::InvalidArgumentError(
        absl::StrCat(files_[file]->path(), ": record ", record - BeginOf(file) + 1, ": expected ",
                     error.expected, " in the column \"", maker_->columns()[error.column],
                     "\", found ", error.found, more));
  }

  // Where a record's values are.
  struct Row {
    const ColumnBlock* block = nullptr;
    size_t position = 0;
  };

  absl::Status ReadAll(absl::Span<const int64_t> records, Batch* batch) const {
    Resize(static_cast<int64_t>(records.size()), maker_->schema(), batch);
    if (records.empty()) return absl::OkStatus();
    std::vector<Row> rows(records.size());
    const auto [least, greatest] = std::minmax_element(records.begin(), records.end());
    const size_t first = BlockOf(*least);
    if (first == BlockOf(*greatest)) {
      ASSIGN_OR_RETURN(const Block block, ReadBlock(first));
      for (size_t i = 0; i < records.size(); ++i) {
        rows[i] = {block.get(), static_cast<size_t>(records[i] - begins_[first])};
      }
      return FillRows(records, rows, batch);
    }
    // One for each file, whose columns have the same kinds in all blocks.
    std::vector<ColumnBlock> gathered(files_.size());
    RETURN_IF_ERROR(Gather(records, &gathered, &rows));
    return FillRows(records, rows, batch);
  }

  // Copies the records out of their blocks, each of which is read once, and let go of.
  absl::Status Gather(absl::Span<const int64_t> records, std::vector<ColumnBlock>* gathered,
                      std::vector<Row>* rows) const {
    std::vector<size_t> order(records.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return records[a] < records[b]; });
    Block block;
    size_t current = 0;
    for (const size_t i : order) {
      if (block == nullptr || records[i] >= begins_[current + 1]) {
        current = BlockOf(records[i]);
        ASSIGN_OR_RETURN(block, ReadBlock(current));
      }
      ColumnBlock& to = (*gathered)[blocks_[current].file];
      for (size_t k = 0; k < block->columns.size(); ++k) {
        if (to.columns.size() == k) to.columns.emplace_back(block->columns[k].kind());
        to.columns[k].Append(block->columns[k], records[i] - begins_[current]);
      }
      (*rows)[i] = {&to, static_cast<size_t>(to.records++)};
    }
    for (ColumnBlock& of_file : *gathered) {
      for (BlockColumn& column : of_file.columns) column.Finish();
    }
    return absl::OkStatus();
  }

  absl::Status FillRows(absl::Span<const int64_t> records, const std::vector<Row>& rows,
                        Batch* batch) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      ColumnError error;
      const auto row = static_cast<int64_t>(i);
      if (!Fill(*rows[i].block, rows[i].position, row, batch, &error)) {
        return NotARecord(records[i], error);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckFirst(size_t file) const {
    Batch batch;
    return ReadAll({BeginOf(file)}, &batch);
  }

  absl::Status FindBadRecords(size_t file, int64_t max_bad_records) {
    constexpr int64_t kRows = 64;
    const size_t before = left_out_.size();
    std::string first;
    Batch batch;
    for (int64_t record = BeginOf(file); record < EndOf(file); ++record) {
      const size_t number = BlockOf(record);
      ASSIGN_OR_RETURN(const Block block, ReadBlock(number));
      const int64_t row = (record - BeginOf(file)) % kRows;
      if (row == 0) Resize(kRows, maker_->schema(), &batch);
      ColumnError error;
      if (Fill(*block, record - begins_[number], row, &batch, &error)) continue;
      if (static_cast<int64_t>(left_out_.size()) == max_bad_records) {
        return NotARecord(record, error,
                          absl::StrCat("; it is one bad record more than data.max_bad_records (",
                                       max_bad_records, ")"));
      }
      if (first.empty()) first = std::string(NotARecord(record, error).message());
      left_out_.push_back(record);
    }
    if (left_out_.size() > before) {
      LogWarning(files_[file]->path(), ": ", left_out_.size() - before, " of ",
                 EndOf(file) - BeginOf(file),
                 " records are left out, as they are no records; the first: ", first);
    }
    return files_[file]->CheckUnchanged();
  }

  const std::vector<std::unique_ptr<BlockFile>> files_;
  const std::shared_ptr<const RecordMaker> maker_;
  mutable BlockCache cache_;
  std::vector<Place> blocks_;          // of all files
  std::vector<size_t> first_blocks_;   // of each file, and their number
  std::vector<int64_t> begins_ = {0};  // the first record of each block, and the end
  std::vector<int64_t> left_out_;      // those that are no records, ascending
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ReadableRecords>> OpenBlockRecords(
    std::vector<std::unique_ptr<BlockFile>> files, std::shared_ptr<const RecordMaker> maker,
    int64_t max_bad_records, uint64_t cache_bytes) {
  const auto records =
      std::make_shared<BlockRecords>(std::move(files), std::move(maker), cache_bytes);
  RETURN_IF_ERROR(records->Check(max_bad_records));
  return records;
}

}  // namespace keelson
