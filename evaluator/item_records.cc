#include "evaluator/item_records.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/data/columnar_writer.h"
#include "core/model/spec/batch.h"

namespace keelson {
namespace {

// Some records of another dataset.
class ChosenRecords : public Dataset {
 public:
  ChosenRecords(const Dataset* all, std::vector<int64_t> chosen)
      : all_(all), chosen_(std::move(chosen)) {}

  int64_t num_records() const override { return static_cast<int64_t>(chosen_.size()); }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    std::vector<int64_t> of_all;
    of_all.reserve(records.size());
    for (const int64_t record : records) {
      if (record < 0 || record >= num_records()) return NoRecord(record, num_records());
      of_all.push_back(chosen_[record]);
    }
    return all_->Read(of_all, batch);
  }

 private:
  const Dataset* const all_;
  const std::vector<int64_t> chosen_;
};

absl::StatusOr<std::vector<int64_t>> FirstOfEachItem(const Dataset& records, int64_t count,
                                                     size_t item_feature) {
  constexpr int64_t kAtATime = 4096;
  absl::flat_hash_set<uint64_t> items;
  std::vector<int64_t> first, numbers;
  Batch batch;
  for (int64_t begin = 0; begin < count && items.size() < kMostItems; begin += kAtATime) {
    numbers.resize(std::min(kAtATime, count - begin));
    std::iota(numbers.begin(), numbers.end(), begin);
    RETURN_IF_ERROR(records.Read(numbers, &batch));
    const std::vector<uint64_t>& ids = batch.features[item_feature].ids;
    for (size_t row = 0; row < ids.size() && items.size() < kMostItems; ++row) {
      if (items.insert(ids[row]).second) first.push_back(numbers[row]);
    }
  }
  return first;
}

}  // namespace

absl::Status WriteItemRecords(absl::string_view model_dir, const Dataset& records, int64_t count,
                              const RecordSchema& schema, size_t item_feature,
                              FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::vector<int64_t> first,
                   FirstOfEachItem(records, std::min(count, kMostItemRecords), item_feature));
  const std::string path = JoinPath(model_dir, "eval/items.columnar");
  const absl::Status removed = file_system->Remove(path);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  return WriteColumnarFile(ChosenRecords(&records, std::move(first)), schema, path, file_system);
}

}  // namespace keelson
