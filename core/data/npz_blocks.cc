#include "core/data/npz_blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/element_conversion.h"
#include "core/tensor_files/npz.h"

namespace keelson {
namespace {

constexpr char kOffsetsSuffix[] = "_offsets";

// An archive's content, which the file need not have any more.
class NpzBlocks : public BlockFile {
 public:
  NpzBlocks(std::string path, std::shared_ptr<const ColumnBlock> block)
      : path_(std::move(path)), block_(std::move(block)) {}

  const std::string& path() const override { return path_; }
  std::vector<int64_t> block_records() const override { return {block_->records}; }
  absl::StatusOr<std::shared_ptr<const ColumnBlock>> Read(size_t) const override { return block_; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }

 private:
  const std::string path_;
  const std::shared_ptr<const ColumnBlock> block_;
};

template <typename Element>
std::vector<int64_t> IntegersOf(const std::string& bytes) {
  std::vector<Element> elements(bytes.size() / sizeof(Element));
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return std::vector<int64_t>(elements.begin(), elements.end());
}

// Nullopt: the type is none of whole numbers.
std::optional<std::vector<int64_t>> Integers(BundleDtype dtype, const std::string& bytes) {
  switch (dtype) {
    case BundleDtype::kBool:
    case BundleDtype::kUint8:
      return IntegersOf<uint8_t>(bytes);
    case BundleDtype::kInt8:
      return IntegersOf<int8_t>(bytes);
    case BundleDtype::kInt16:
      return IntegersOf<int16_t>(bytes);
    case BundleDtype::kUint16:
      return IntegersOf<uint16_t>(bytes);
    case BundleDtype::kInt32:
      return IntegersOf<int32_t>(bytes);
    case BundleDtype::kUint32:
      return IntegersOf<uint32_t>(bytes);
    case BundleDtype::kInt64:
    case BundleDtype::kUint64:
      return IntegersOf<int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

// What an array is of which no model takes a column. Nullopt: one can.
std::optional<std::string> NoColumn(const TensorInfo& array) {
  if (array.shape.rank() == 0) return "a single number";
  const bool numbers = IsNumeric(array.dtype) || Integers(array.dtype, "").has_value();
  return numbers ? std::nullopt : std::optional<std::string>(DtypeName(array.dtype));
}

class NpzReader {
 public:
  NpzReader(const std::string& path, const NeededColumns& needed) : path_(path), needed_(needed) {}

  absl::StatusOr<std::unique_ptr<BlockFile>> Read() {
    const auto wanted = [this](absl::string_view name) {
      names_.emplace_back(name);
      return IsColumn(name) || (absl::ConsumeSuffix(&name, kOffsetsSuffix) && IsColumn(name));
    };
    ASSIGN_OR_RETURN(file_, NpzFile::Open(path_, wanted));
    arrays_ = file_->List();
    RETURN_IF_ERROR(FindRecords());
    auto block = std::make_shared<ColumnBlock>();
    block->records = records_.value_or(0);
    for (const std::string& name : needed_.names) {
      RETURN_IF_ERROR(ReadColumn(name, block.get()));
    }
    return std::make_unique<NpzBlocks>(path_, std::move(block));
  }

 private:
  bool IsColumn(absl::string_view name) const {
    const std::vector<std::string>& columns = needed_.names;
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  }

  // Null: there is none.
  const TensorInfo* Find(absl::string_view name) const {
    for (const TensorInfo& array : arrays_) {
      if (array.name == name) return &array;
    }
    return nullptr;
  }
  const TensorInfo* OffsetsOf(absl::string_view name) const {
    return Find(absl::StrCat(name, kOffsetsSuffix));
  }

  absl::Status WrongArray(absl::string_view name, absl::string_view expected,
                          absl::string_view found) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": array \"",
                                                   absl::Utf8SafeCHexEscape(name), "\": expected ",
                                                   expected, ", found ", found));
  }

  // Sets records_ by the columns that are one array, which say it clearly.
  absl::Status FindRecords() {
    std::string first;
    for (size_t i = 0; i < needed_.names.size(); ++i) {
      const std::string& name = needed_.names[i];
      const TensorInfo* const array = Find(name);
      if (array == nullptr) return NoSuchColumn(path_, needed_, i, names_);
      if (array->shape.rank() == 0) {
        return WrongArray(name, "numbers of each record, [n] or [n, k]", "a single number");
      }
      if (OffsetsOf(name) != nullptr) continue;
      if (array->shape.num_elements() == 0 && array->shape.rows() > 0) {
        return WrongArray(name, "numbers of each record", array->shape.ToString());
      }
      if (!records_.has_value()) first = name;
      if (records_.value_or(array->shape.rows()) != array->shape.rows()) {
        return WrongArray(name, absl::StrCat(*records_, " records, as \"", first, "\" has"),
                          absl::StrCat(array->shape.rows()));
      }
      records_ = array->shape.rows();
    }
    return absl::OkStatus();
  }

  absl::Status ReadColumn(const std::string& name, ColumnBlock* block) {
    const TensorInfo& array = *Find(name);
    ASSIGN_OR_RETURN(const std::string bytes, file_->Read(name));
    std::optional<std::vector<int64_t>> integers = Integers(array.dtype, bytes);
    if (!integers.has_value() && !IsNumeric(array.dtype)) {
      return WrongArray(name, "numbers", DtypeName(array.dtype));
    }
    const TensorInfo* const offsets = OffsetsOf(name);
    BlockColumn column(
        integers.has_value() ? ColumnValue::Kind::kIntegers : ColumnValue::Kind::kNumbers,
        offsets == nullptr ? static_cast<size_t>(std::max<int64_t>(1, array.shape.row_elements()))
                           : 0);
    if (integers.has_value()) {
      column.Set(*std::move(integers));
    } else {
      std::vector<float> numbers(static_cast<size_t>(array.shape.num_elements()));
      ConvertToFloat(array.dtype, bytes.data(), absl::MakeSpan(numbers));
      column.Set(std::move(numbers));
    }
    if (offsets != nullptr) {
      ASSIGN_OR_RETURN(std::vector<uint64_t> ends, ReadEnds(array, *offsets));
      block->records = static_cast<int64_t>(ends.size());
      column.SetEnds(std::move(ends));
    }
    column.Finish();
    block->columns.push_back(std::move(column));
    return absl::OkStatus();
  }

  // Of each record where its values end.
  absl::StatusOr<std::vector<uint64_t>> ReadEnds(const TensorInfo& values,
                                                 const TensorInfo& offsets) {
    if (values.shape.rank() != 1) {
      return WrongArray(
          values.name,
          absl::StrCat("all values one after the other, [m], as \"", offsets.name, "\" is there"),
          values.shape.ToString());
    }
    ASSIGN_OR_RETURN(const std::string bytes, file_->Read(offsets.name));
    const std::optional<std::vector<int64_t>> found = Integers(offsets.dtype, bytes);
    if (!found.has_value() || offsets.shape.rank() != 1 || found->empty()) {
      return WrongArray(offsets.name, "one whole number or more, [n]", TypeAndShape(offsets));
    }
    std::vector<uint64_t> ends(found->begin() + 1, found->end());
    const auto size = static_cast<int64_t>(found->size());
    const int64_t elements = values.shape.num_elements();
    // With the end, unless the number of records says otherwise.
    if (!records_.has_value()) records_ = found->back() == elements ? size - 1 : size;
    if (*records_ == size) {
      ends.push_back(static_cast<uint64_t>(elements));
    } else if (*records_ != size - 1) {
      return WrongArray(offsets.name,
                        absl::StrCat(*records_, " or ", *records_ + 1, ", of so many records"),
                        absl::StrCat(size));
    }
    RETURN_IF_ERROR(CheckOffsets(offsets.name, *found, elements));
    if (!ends.empty() && ends.back() != static_cast<uint64_t>(elements)) {
      return WrongArray(offsets.name, absl::StrCat(elements, ", the number of values, as the last"),
                        absl::StrCat(ends.back()));
    }
    return ends;
  }

  absl::Status CheckOffsets(const std::string& name, absl::Span<const int64_t> offsets,
                            int64_t elements) const {
    int64_t least = 0;
    for (size_t i = 0; i < offsets.size(); ++i) {
      const int64_t most = i == 0 ? 0 : elements;
      if (offsets[i] < least || offsets[i] > most) {
        return WrongArray(
            name,
            absl::StrCat(least, most == least ? "" : absl::StrCat(" to ", most), " as number ", i),
            absl::StrCat(offsets[i]));
      }
      least = offsets[i];
    }
    return absl::OkStatus();
  }

  const std::string& path_;
  const NeededColumns& needed_;
  std::unique_ptr<NpzFile> file_;
  std::vector<std::string> names_;  // of all arrays
  std::vector<TensorInfo> arrays_;
  std::optional<int64_t> records_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockFile>> OpenNpzBlocks(const std::string& path,
                                                         const NeededColumns& needed) {
  return NpzReader(path, needed).Read();
}

absl::StatusOr<std::vector<FileColumn>> ListNpzColumns(const std::string& path) {
  std::vector<std::string> names;
  const auto add = [&names](absl::string_view name) {
    names.emplace_back(name);
    return false;
  };
  RETURN_IF_ERROR(NpzFile::Open(path, add).status());
  const std::set<std::string, std::less<>> all(names.begin(), names.end());
  std::vector<FileColumn> columns;
  for (const std::string& name : names) {
    absl::string_view values = name;
    if (absl::ConsumeSuffix(&values, kOffsetsSuffix) && all.contains(values)) continue;
    // Each by itself, since an archive with an array of texts is read without it alone.
    const auto file = NpzFile::Open(path, [&](absl::string_view one) { return one == name; });
    if (absl::IsUnimplemented(file.status())) {
      columns.push_back({name, "no numbers"});
      continue;
    }
    RETURN_IF_ERROR(file.status());
    columns.push_back({name, NoColumn((*file)->List().front()).value_or("")});
  }
  return columns;
}

}  // namespace keelson
