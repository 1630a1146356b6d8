#include "core/data/parquet/parquet_blocks.h"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// Arrow's words of an error, of which the first line says it.
std::string ErrorText(const arrow::Status& status) {
  const std::string text = status.message();
  return absl::Utf8SafeCHexEscape(absl::string_view(text).substr(0, text.find('\n')));
}

absl::Status Damaged(const std::string& path, const arrow::Status& status) {
  return absl::DataLossError(absl::StrCat(
      path, ": expected a Parquet file, found another or a damaged one: ", ErrorText(status)));
}

// Of a type that is no list. Nullopt: it is none that a column can have.
std::optional<ColumnValue::Kind> KindOfValues(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
      return ColumnValue::Kind::kIntegers;
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
      return ColumnValue::Kind::kNumbers;
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
      return ColumnValue::Kind::kTexts;
    case arrow::Type::DICTIONARY: {
      const auto& values = *static_cast<const arrow::DictionaryType&>(type).value_type();
      return values.id() == arrow::Type::DICTIONARY ? std::nullopt : KindOfValues(values);
    }
    default:
      return std::nullopt;
  }
}

std::optional<ColumnValue::Kind> KindOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
      return KindOfValues(*static_cast<const arrow::BaseListType&>(type).value_type());
    default:
      return KindOfValues(type);
  }
}

// Adds one value of an array, or none where it is null.
using AddValue = absl::FunctionRef<void(int64_t)>;
// Calls it for values of the array.
using AddValues = absl::FunctionRef<void(AddValue)>;

template <typename Array, typename Value>
void WithValues(const arrow::Array& array, BlockColumn* column, AddValues loop) {
  const auto& values = static_cast<const Array&>(array);
  loop([&](int64_t i) {
    if (values.IsValid(i)) column->Add(static_cast<Value>(values.Value(i)));
  });
}

template <typename Array>
void WithTexts(const arrow::Array& array, BlockColumn* column, AddValues loop) {
  const auto& values = static_cast<const Array&>(array);
  loop([&](int64_t i) {
    if (values.IsNull(i)) return;
    const auto text = values.GetView(i);
    column->Add(absl::string_view(text.data(), text.size()));
  });
}

// Calls `loop` with what adds values of this array to the column.
void WithAdder(const arrow::Array& array, BlockColumn* column, AddValues loop) {
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return WithValues<arrow::BooleanArray, int64_t>(array, column, loop);
    case arrow::Type::INT8:
      return WithValues<arrow::Int8Array, int64_t>(array, column, loop);
    case arrow::Type::INT16:
      return WithValues<arrow::Int16Array, int64_t>(array, column, loop);
    case arrow::Type::INT32:
      return WithValues<arrow::Int32Array, int64_t>(array, column, loop);
    case arrow::Type::INT64:
      return WithValues<arrow::Int64Array, int64_t>(array, column, loop);
    case arrow::Type::UINT8:
      return WithValues<arrow::UInt8Array, int64_t>(array, column, loop);
    case arrow::Type::UINT16:
      return WithValues<arrow::UInt16Array, int64_t>(array, column, loop);
    case arrow::Type::UINT32:
      return WithValues<arrow::UInt32Array, int64_t>(array, column, loop);
    case arrow::Type::UINT64:
      return WithValues<arrow::UInt64Array, int64_t>(array, column, loop);
    case arrow::Type::FLOAT:
      return WithValues<arrow::FloatArray, float>(array, column, loop);
    case arrow::Type::DOUBLE:
      return WithValues<arrow::DoubleArray, float>(array, column, loop);
    case arrow::Type::STRING:
      return WithTexts<arrow::StringArray>(array, column, loop);
    case arrow::Type::LARGE_STRING:
      return WithTexts<arrow::LargeStringArray>(array, column, loop);
    case arrow::Type::BINARY:
      return WithTexts<arrow::BinaryArray>(array, column, loop);
    case arrow::Type::LARGE_BINARY:
      return WithTexts<arrow::LargeBinaryArray>(array, column, loop);
    case arrow::Type::DICTIONARY: {
      const auto& indices = static_cast<const arrow::DictionaryArray&>(array);
      return WithAdder(*indices.dictionary(), column, [&](AddValue add) {
        loop([&](int64_t i) {
          if (indices.IsValid(i)) add(indices.GetValueIndex(i));
        });
      });
    }
    default:
      return;  // KindOf has refused it
  }
}

template <typename List>
void AppendLists(const arrow::Array& array, BlockColumn* column) {
  const auto& lists = static_cast<const List&>(array);
  WithAdder(*lists.values(), column, [&](AddValue add) {
    for (int64_t i = 0; i < lists.length(); ++i) {
      const int64_t begin = lists.value_offset(i);
      const int64_t end = lists.IsNull(i) ? begin : begin + lists.value_length(i);
      for (int64_t k = begin; k < end; ++k) add(k);
      column->EndRecord();
    }
  });
}

void AppendArray(const arrow::Array& array, BlockColumn* column) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return AppendLists<arrow::ListArray>(array, column);
    case arrow::Type::LARGE_LIST:
      return AppendLists<arrow::LargeListArray>(array, column);
    case arrow::Type::FIXED_SIZE_LIST:
      return AppendLists<arrow::FixedSizeListArray>(array, column);
    default:
      return WithAdder(array, column, [&](AddValue add) {
        for (int64_t i = 0; i < array.length(); ++i) {
          add(i);
          column->EndRecord();
        }
      });
  }
}

absl::StatusOr<int64_t> ModificationNanos(const std::string& path) {
  ASSIGN_OR_RETURN(const absl::Time time, FileSystem::Real()->ModificationTime(path));
  return absl::ToUnixNanos(time);
}

class ParquetBlocks : public BlockFile {
 public:
  explicit ParquetBlocks(std::string path) : path_(std::move(path)) {}

  absl::Status Open(const NeededColumns& needed) {
    ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Schema> schema, OpenSchema());
    for (size_t i = 0; i < needed.names.size(); ++i) {
      RETURN_IF_ERROR(AddColumn(needed, i, *schema));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<arrow::Schema>> OpenSchema() {
    // For the errors of the file system.
    ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                     FileSystem::Real()->OpenForRead(path_));
    ASSIGN_OR_RETURN(modified_nanos_, ModificationNanos(path_));
    ASSIGN_OR_RETURN(const std::unique_ptr<parquet::arrow::FileReader> reader, NewReader());
    metadata_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    const arrow::Status status = reader->GetSchema(&schema);
    if (!status.ok()) return Damaged(path_, status);
    return schema;
  }

  const std::string& path() const override { return path_; }

  std::vector<int64_t> block_records() const override {
    std::vector<int64_t> records;
    for (int i = 0; i < metadata_->num_row_groups(); ++i) {
      records.push_back(metadata_->RowGroup(i)->num_rows());
    }
    return records;
  }

  absl::StatusOr<std::shared_ptr<const ColumnBlock>> Read(size_t block) const override {
    ASSIGN_OR_RETURN(const std::unique_ptr<parquet::arrow::FileReader> reader, NewReader());
    const auto table = reader->ReadRowGroup(static_cast<int>(block), leaves_);
    if (!table.ok()) return Damaged(path_, table.status());
    auto read = std::make_shared<ColumnBlock>();
    read->records = (*table)->num_rows();
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::shared_ptr<arrow::ChunkedArray> chunks = (*table)->GetColumnByName(names_[i]);
      BlockColumn& column = read->columns.emplace_back(kinds_[i]);
      for (const std::shared_ptr<arrow::Array>& chunk : chunks->chunks()) {
        AppendArray(*chunk, &column);
      }
      column.Finish();
    }
    return read;
  }

  absl::Status CheckUnchanged() const override {
    const absl::StatusOr<int64_t> modified = ModificationNanos(path_);
    if (!modified.ok() && !absl::IsNotFound(modified.status())) return modified.status();
    if (modified.ok() && *modified == modified_nanos_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": expected the file as it was when it was opened, found ",
                     modified.ok() ? "it changed" : "none"));
  }

 private:
  // A reader is for one thread.
  absl::StatusOr<std::unique_ptr<parquet::arrow::FileReader>> NewReader() const {
    auto file = arrow::io::ReadableFile::Open(path_);
    if (!file.ok()) return Damaged(path_, file.status());
    parquet::ArrowReaderProperties properties;
    properties.set_pre_buffer(false);  // which takes threads of Arrow's own
    properties.set_use_threads(false);
    parquet::arrow::FileReaderBuilder builder;
    arrow::Status status =
        builder.Open(*std::move(file), parquet::default_reader_properties(), metadata_);
    std::unique_ptr<parquet::arrow::FileReader> reader;
    if (status.ok()) status = builder.properties(properties)->Build(&reader);
    if (!status.ok()) return Damaged(path_, status);
    return reader;
  }

  absl::Status AddColumn(const NeededColumns& needed, size_t column, const arrow::Schema& schema) {
    const std::string& name = needed.names[column];
    const std::vector<int> found = schema.GetAllFieldIndices(name);
    if (found.size() != 1) {
      if (found.empty()) return NoSuchColumn(path_, needed, column, schema.field_names());
      return absl::InvalidArgumentError(absl::StrCat(path_, ": expected one column \"", name,
                                                     "\" (", needed.needed_by[column], "), found ",
                                                     found.size()));
    }
    const arrow::DataType& type = *schema.field(found.front())->type();
    const std::optional<ColumnValue::Kind> kind = KindOf(type);
    if (!kind.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": expected numbers, texts or lists of these in the column \"", name, "\" (",
          needed.needed_by[column], "), found ", absl::Utf8SafeCHexEscape(type.ToString())));
    }
    names_.push_back(name);
    kinds_.push_back(*kind);
    for (int leaf = 0; leaf < metadata_->num_columns(); ++leaf) {
      if (metadata_->schema()->GetColumnRoot(leaf)->name() == name) leaves_.push_back(leaf);
    }
    return absl::OkStatus();
  }

  const std::string path_;
  int64_t modified_nanos_ = 0;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<std::string> names_;
  std::vector<ColumnValue::Kind> kinds_;
  std::vector<int> leaves_;  // of the names
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockFile>> OpenParquetBlocks(const std::string& path,
                                                             const NeededColumns& needed) {
  auto blocks = std::make_unique<ParquetBlocks>(path);
  RETURN_IF_ERROR(blocks->Open(needed));
  return blocks;
}

absl::StatusOr<std::vector<FileColumn>> ListParquetColumns(const std::string& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Schema> schema, ParquetBlocks(path).OpenSchema());
  std::vector<FileColumn> columns;
  for (const std::shared_ptr<arrow::Field>& field : schema->fields()) {
    const size_t count = schema->GetAllFieldIndices(field->name()).size();
    columns.push_back({field->name(), count > 1 ? absl::StrCat("one of ", count, " of this name")
                                      : KindOf(*field->type()).has_value()
                                          ? ""
                                          : absl::Utf8SafeCHexEscape(field->type()->ToString())});
  }
  return columns;
}

}  // namespace keelson
