#include "core/data/readable_records.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

class FileDataset : public Dataset {
 public:
  FileDataset(std::shared_ptr<const ReadableRecords> records, int64_t begin, int64_t end)
      : records_(std::move(records)), begin_(begin), num_records_(end - begin) {}

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    std::vector<int64_t> all(records.begin(), records.end());
    for (int64_t& record : all) {
      if (record < 0 || record >= num_records_) return NoRecord(record, num_records_);
      record += begin_;
    }
    return records_->Read(all, batch);
  }

  absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const override {
    if (record < 0 || record >= num_records_) return NoRecord(record, num_records_);
    return records_->ReadColumns(begin_ + record);
  }

 private:
  const std::shared_ptr<const ReadableRecords> records_;
  const int64_t begin_;
  const int64_t num_records_;
};

}  // namespace

std::string FilesText(const std::string& first, size_t files) {
  return files == 1 ? first : absl::StrCat(first, " and ", files - 1, " more");
}

int64_t PositionOf(int64_t record, absl::Span<const int64_t> left_out) {
  int64_t low = 0, high = static_cast<int64_t>(left_out.size());
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    // That many are before this one.
    if (left_out[middle] - middle <= record) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return record + low;
}

std::unique_ptr<Dataset> NewFileDataset(std::shared_ptr<const ReadableRecords> records,
                                        int64_t begin, int64_t end) {
  return std::make_unique<FileDataset>(std::move(records), begin, end);
}

}  // namespace keelson
