#include "core/data/columnar_writer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {

ColumnarWriter::ColumnarWriter(std::string path, FileSystem* file_system)
    : path_(std::move(path)),
      temporary_path_(JoinPath(DirectoryOf(path_),
                               absl::StrCat(".", BaseName(path_), ".tempstate", RandomId()))),
      file_system_(file_system) {}

absl::StatusOr<std::unique_ptr<ColumnarWriter>> ColumnarWriter::Create(const std::string& path,
                                                                       const RecordSchema& schema,
                                                                       FileSystem* file_system) {
  ASSIGN_OR_RETURN(const bool exists, file_system->Exists(path));
  if (exists) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": expected a file that is not there yet, found one"));
  }
  std::unique_ptr<ColumnarWriter> writer(new ColumnarWriter(path, file_system));
  for (const FeatureSpec& feature : schema.features) {
    writer->layout_.features.push_back({feature});
  }
  for (const LabelSpec& label : schema.labels) writer->layout_.labels.push_back({label.name});
  ASSIGN_OR_RETURN(writer->file_, file_system->CreateExclusive(writer->temporary_path_));
  std::string begin(kColumnarMagic);
  begin.resize(kColumnarAlignment);
  RETURN_IF_ERROR(writer->Write(begin));
  return writer;
}

ColumnarWriter::~ColumnarWriter() {
  file_ = nullptr;
  if (!finished_) file_system_->Remove(temporary_path_).IgnoreError();
}

absl::Status ColumnarWriter::Append(const Batch& batch) {
  for (size_t i = 0; i < layout_.features.size(); ++i) {
    RETURN_IF_ERROR(AppendFeature(batch.features[i], &layout_.features[i]));
  }
  for (size_t i = 0; i < layout_.labels.size(); ++i) {
    RETURN_IF_ERROR(AppendLabel(batch.labels[i], &layout_.labels[i]));
  }
  layout_.num_records += batch.size();
  return absl::OkStatus();
}

absl::Status ColumnarWriter::AppendFeature(const FeatureValues& values, ColumnarFeature* feature) {
  if (feature->spec.kind == FeatureKind::kNumbers) {
    const absl::Span<const float> numbers = values.numbers.span();
    return AppendPart(numbers.data(), numbers.size() * sizeof(float));
  }
  for (const uint64_t id : values.ids) feature->max_id = std::max(feature->max_id, id);
  if (feature->spec.kind == FeatureKind::kBag) {
    RETURN_IF_ERROR(AppendPart(values.offsets.data(), values.offsets.size() * sizeof(int64_t)));
  }
  RETURN_IF_ERROR(AppendPart(values.ids.data(), values.ids.size() * sizeof(uint64_t)));
  if (!feature->spec.weighted) return absl::OkStatus();
  return AppendPart(values.weights.data(), values.weights.size() * sizeof(float));
}

absl::Status ColumnarWriter::AppendLabel(const Tensor& values, ColumnarLabel* label) {
  const absl::Span<const float> labels = values.span();
  for (size_t i = 0; i < labels.size(); ++i) {
    const float value = labels[i];
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "record ", layout_.num_records + static_cast<int64_t>(i),
          ": expected a finite number as the label \"", label->name, "\", found ", value));
    }
    const bool first = layout_.num_records == 0 && i == 0;
    label->min = first ? value : std::min(label->min, value);
    label->max = first ? value : std::max(label->max, value);
    if (value != std::floor(value)) label->whole = false;
  }
  return AppendPart(labels.data(), labels.size() * sizeof(float));
}

absl::Status ColumnarWriter::AppendPart(const void* data, size_t bytes) {
  const absl::string_view content(static_cast<const char*>(data), bytes);
  layout_.parts.push_back({written_, bytes, MaskCrc32c(Crc32c(content))});
  return Write(content);
}

// With zeros up to the next multiple.
absl::Status ColumnarWriter::Write(absl::string_view bytes) {
  static constexpr char kZeros[kColumnarAlignment] = {};
  const size_t padding =
      (kColumnarAlignment - bytes.size() % kColumnarAlignment) % kColumnarAlignment;
  RETURN_IF_ERROR(file_->Append(bytes));
  written_ += bytes.size() + padding;
  return padding == 0 ? absl::OkStatus() : file_->Append({kZeros, padding});
}

absl::Status ColumnarWriter::Finish() {
  const std::string directory = EncodeColumnarDirectory(layout_);
  RETURN_IF_ERROR(
      file_->Append(absl::StrCat(directory, EncodeColumnarTrailer(written_, directory))));
  RETURN_IF_ERROR(file_->Close());
  RETURN_IF_ERROR(file_system_->Rename(temporary_path_, path_));
  finished_ = true;
  return file_system_->SyncDirectory(DirectoryOf(path_));
}

absl::Status WriteColumnarFile(const Dataset& records, const RecordSchema& schema,
                               const std::string& path, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ColumnarWriter> writer,
                   ColumnarWriter::Create(path, schema, file_system));
  Batch batch;
  std::vector<int64_t> numbers;
  for (int64_t begin = 0; begin < records.num_records(); begin += kColumnarGroup) {
    numbers.resize(std::min(kColumnarGroup, records.num_records() - begin));
    std::iota(numbers.begin(), numbers.end(), begin);
    RETURN_IF_ERROR(records.Read(numbers, &batch));
    RETURN_IF_ERROR(writer->Append(batch));
  }
  return writer->Finish();
}

}  // namespace keelson
