// Makes what a model takes of a record from what the record has in the columns of its file.
#ifndef KEELSON_CORE_DATA_COLUMNS_RECORD_MAKER_H_
#define KEELSON_CORE_DATA_COLUMNS_RECORD_MAKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/data/columns/column_value.h"
#include "core/data/columns/file_columns.h"
#include "core/data/columns/id_column.h"
#include "core/data/columns/label_column.h"
#include "core/data/columns/number_column.h"
#include "core/data/columns/record_plan.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Immutable; any number of threads may use it together.
class RecordMaker {
 public:
  // Reads the vocabularies that are files. Errors: PlanRecords'; those of reading a file;
  // INVALID_ARGUMENT: a vocabulary is empty, has a value twice, or is larger than an embedding.
  static absl::StatusOr<std::unique_ptr<const RecordMaker>> Create(const v1::DataConfig& data,
                                                                   const RecordSchema& schema,
                                                                   FileSystem* file_system);

  const RecordSchema& schema() const { return schema_; }
  // The columns that a source gives, each of them once.
  const std::vector<std::string>& columns() const { return needed_.names; }
  // What needs a column, for messages: "data.features[2].columns[0]".
  const std::string& needed_by(size_t column) const { return needed_.needed_by[column]; }
  const NeededColumns& needed() const { return needed_; }
  // Of all on which it depends which values make a record.
  uint64_t fingerprint() const { return fingerprint_; }

  // Fills row `row` of a batch that has room for more (Resize); the rows are filled in their order.
  // `values` are those of columns(). False: they make no record; `batch` is then as if it had not
  // been tried, but for the row's numbers, ids and labels.
  bool Fill(absl::Span<const ColumnValue> values, int64_t row, Batch* batch,
            ColumnError* error) const;

 private:
  // A feature's position in the schema, and its columns: of the one vector or of the other.
  struct Feature {
    size_t position = 0;
    FeatureKind kind = FeatureKind::kNumbers;
    int64_t numbers = 0;  // of a record
    std::vector<NumberColumn> number_columns = {};
    std::vector<IdColumn> id_columns = {};
  };

  explicit RecordMaker(RecordSchema schema) : schema_(std::move(schema)) {}

  void Add(const RecordPlan& plan);
  size_t ColumnOf(const std::string& name, const std::string& field);
  std::vector<size_t> ColumnsOf(const PlannedColumn& column);
  static bool FillNumbers(const Feature& feature, absl::Span<const ColumnValue> values, int64_t row,
                          FeatureValues* filled, ColumnError* error);
  bool FillBags(absl::Span<const ColumnValue> values, int64_t row, Batch* batch,
                ColumnError* error) const;

  const RecordSchema schema_;
  NeededColumns needed_;
  std::vector<Feature> features_;  // those that are no bags
  std::vector<Feature> bags_;
  std::vector<LabelColumn> labels_;
  uint64_t fingerprint_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_RECORD_MAKER_H_
