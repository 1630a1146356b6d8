#include "core/checkpoint/bundle_writer.h"

#include <bit>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/ordered_code.h"
#include "core/checkpoint/string_tensor.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

absl::Status BadTensor(absl::string_view path, absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": tensor '", absl::CHexEscape(name), "': ", what));
}

template <typename T>
absl::string_view AsBytes(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

bool MayBeSliced(BundleDtype dtype) {
  return dtype == BundleDtype::kFloat32 || dtype == BundleDtype::kInt64 ||
         dtype == BundleDtype::kInt32;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleDataWriter>> BundleDataWriter::Create(FileSystem* file_system,
                                                                           std::string final_path,
                                                                           size_t data_shard) {
  std::string temporary = absl::StrCat(final_path, ".tempstate", RandomId());
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, file_system->CreateExclusive(temporary));
  return std::unique_ptr<BundleDataWriter>(new BundleDataWriter(
      file_system, std::move(final_path), std::move(temporary), data_shard, std::move(file)));
}

std::unique_ptr<BundleDataWriter> BundleDataWriter::CreateOn(std::unique_ptr<AppendFile> sink,
                                                             size_t data_shard) {
  return std::unique_ptr<BundleDataWriter>(new BundleDataWriter(
      nullptr, absl::StrCat("data file ", data_shard), "", data_shard, std::move(sink)));
}

BundleDataWriter::BundleDataWriter(FileSystem* file_system, std::string final_path,
                                   std::string temporary_path, size_t data_shard,
                                   std::unique_ptr<AppendFile> file)
    : file_system_(file_system),
      final_path_(std::move(final_path)),
      temporary_path_(std::move(temporary_path)),
      data_shard_(data_shard),
      file_(std::move(file)) {}

BundleDataWriter::~BundleDataWriter() {
  if (file_ != nullptr && file_system_ != nullptr) {
    file_system_->Remove(temporary_path_).IgnoreError();
  }
}

absl::Status BundleDataWriter::AddTensor(absl::string_view name, const Shape& shape,
                                         absl::Span<const float> values) {
  RETURN_IF_ERROR(CheckReady());
  if (shape.num_elements() != static_cast<int64_t>(values.size())) {
    return Record(BadTensor(final_path_, name,
                            absl::StrCat(values.size(), " values for shape ", shape.ToString())));
  }
  const absl::string_view bytes = AsBytes(values);
  return Record(AddWhole(name, BundleDtype::kFloat32, shape, bytes, Crc32c(bytes)));
}

absl::Status BundleDataWriter::AddInt64(absl::string_view name, int64_t value) {
  RETURN_IF_ERROR(CheckReady());
  const absl::string_view bytes = AsBytes(absl::MakeConstSpan(&value, 1));
  return Record(AddWhole(name, BundleDtype::kInt64, Shape(), bytes, Crc32c(bytes)));
}

absl::Status BundleDataWriter::AddFloatScalar(absl::string_view name, float value) {
  return AddTensor(name, Shape(), absl::MakeConstSpan(&value, 1));
}

absl::Status BundleDataWriter::AddString(absl::string_view name, absl::string_view bytes) {
  RETURN_IF_ERROR(CheckReady());
  const StringTensorPrefix prefix = EncodeStringTensorPrefix(bytes.size());
  const int64_t start_offset = offset_;
  RETURN_IF_ERROR(Record(Append(prefix.bytes)));
  RETURN_IF_ERROR(Record(Append(bytes)));
  return Record(AddEntry(
      std::string(name), name,
      MakeEntry(BundleDtype::kString, Shape(), start_offset, Crc32cExtend(prefix.crc, bytes))));
}

absl::Status BundleDataWriter::BeginSlice(absl::string_view name, const Shape& full_shape,
                                          int64_t row_begin, int64_t row_end, BundleDtype dtype) {
  RETURN_IF_ERROR(CheckReady());
  return Record(DoBeginSlice(name, full_shape, row_begin, row_end, dtype));
}

absl::Status BundleDataWriter::AppendValues(absl::Span<const float> values) {
  RETURN_IF_ERROR(status_);
  return Record(AppendToSlice(BundleDtype::kFloat32, AsBytes(values)));
}

absl::Status BundleDataWriter::AppendValues(absl::Span<const int64_t> values) {
  RETURN_IF_ERROR(status_);
  return Record(AppendToSlice(BundleDtype::kInt64, AsBytes(values)));
}

absl::Status BundleDataWriter::AppendValues(absl::Span<const int32_t> values) {
  RETURN_IF_ERROR(status_);
  return Record(AppendToSlice(BundleDtype::kInt32, AsBytes(values)));
}

absl::Status BundleDataWriter::EndSlice() {
  RETURN_IF_ERROR(status_);
  return Record(DoEndSlice());
}

absl::StatusOr<std::vector<BundleIndexEntry>> BundleDataWriter::Finish() {
  RETURN_IF_ERROR(CheckReady());
  RETURN_IF_ERROR(Record(DoFinish()));
  std::vector<BundleIndexEntry> entries;
  for (auto& [key, entry] : entries_) entries.push_back({key, std::move(entry)});
  return entries;
}

absl::Status BundleDataWriter::Record(absl::Status status) {
  if (status_.ok()) status_ = status;
  return status;
}

absl::Status BundleDataWriter::CheckReady() const {
  RETURN_IF_ERROR(status_);
  if (file_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(final_path_, ": is finished already"));
  }
  if (slice_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(final_path_, ": tensor '", slice_->name, "': its slice was not ended"));
  }
  return absl::OkStatus();
}

absl::Status BundleDataWriter::Append(absl::string_view bytes) {
  RETURN_IF_ERROR(file_->Append(bytes));
  offset_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status BundleDataWriter::DoBeginSlice(absl::string_view name, const Shape& full_shape,
                                            int64_t row_begin, int64_t row_end, BundleDtype dtype) {
  if (!MayBeSliced(dtype)) {
    return BadTensor(
        final_path_, name,
        absl::StrCat("expected slices of float32, int64 or int32, found ", DtypeName(dtype)));
  }
  const bool whole = row_begin == 0 && row_end == full_shape.rows();
  const bool part = 0 <= row_begin && row_begin < row_end && row_end <= full_shape.rows();
  if (!whole && !part) {
    return BadTensor(final_path_, name,
                     absl::StrCat("rows [", row_begin, ", ", row_end, ") are not a slice of shape ",
                                  full_shape.ToString()));
  }
  OpenSlice slice;
  slice.name = std::string(name);
  slice.dtype = dtype;
  slice.full_shape = full_shape;
  slice.row_begin = row_begin;
  slice.row_end = row_end;
  slice.start_offset = offset_;
  slice.missing = (row_end - row_begin) * full_shape.row_elements();
  slice_ = std::move(slice);
  return absl::OkStatus();
}

absl::Status BundleDataWriter::AppendToSlice(BundleDtype dtype, absl::string_view bytes) {
  if (!slice_.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(final_path_, ": no slice was begun"));
  }
  if (dtype != slice_->dtype) {
    return BadTensor(final_path_, slice_->name,
                     absl::StrCat("expected values of ", DtypeName(slice_->dtype), ", found ",
                                  DtypeName(dtype)));
  }
  const auto count = static_cast<int64_t>(bytes.size()) / DtypeSize(dtype);
  if (count > slice_->missing) {
    return BadTensor(final_path_, slice_->name,
                     absl::StrCat(count - slice_->missing, " values more than its slice has"));
  }
  slice_->crc = Crc32cExtend(slice_->crc, bytes);
  slice_->missing -= count;
  return Append(bytes);
}

absl::Status BundleDataWriter::DoEndSlice() {
  if (!slice_.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(final_path_, ": no slice was begun"));
  }
  const OpenSlice slice = *std::exchange(slice_, std::nullopt);
  if (slice.missing > 0) {
    return BadTensor(final_path_, slice.name,
                     absl::StrCat(slice.missing, " values fewer than its slice has"));
  }
  if (slice.row_begin == 0 && slice.row_end == slice.full_shape.rows()) {
    return AddEntry(slice.name, slice.name,
                    MakeEntry(slice.dtype, slice.full_shape, slice.start_offset, slice.crc));
  }
  return AddSliceOf(slice, RowSlice(slice.full_shape, slice.row_begin, slice.row_end));
}

// The data is under the slice's key, and the slice is in the list of the tensor's own entry.
absl::Status BundleDataWriter::AddSliceOf(const OpenSlice& slice, const TensorSliceSpec& spec) {
  RETURN_IF_ERROR(
      AddEntry(EncodeSliceKey(slice.name, spec), slice.name,
               MakeEntry(slice.dtype, SliceShape(spec), slice.start_offset, slice.crc)));
  auto [it, first] = entries_.try_emplace(slice.name);
  v1::BundleEntry& full = it->second;
  if (first) {
    full.set_dtype(static_cast<int32_t>(slice.dtype));
    *full.mutable_shape() = ToProto(slice.full_shape);
  } else if (full.slices().empty()) {
    return BadTensor(final_path_, slice.name, "was added before");
  } else if (full.shape().SerializeAsString() != ToProto(slice.full_shape).SerializeAsString()) {
    return BadTensor(final_path_, slice.name, "its slices disagree about its shape");
  } else if (full.dtype() != static_cast<int32_t>(slice.dtype)) {
    return BadTensor(final_path_, slice.name, "its slices disagree about its type");
  }
  *full.add_slices() = ToProto(spec);
  return absl::OkStatus();
}

absl::Status BundleDataWriter::AddWhole(absl::string_view name, BundleDtype dtype,
                                        const Shape& shape, absl::string_view bytes, uint32_t crc) {
  const int64_t start_offset = offset_;
  RETURN_IF_ERROR(Append(bytes));
  return AddEntry(std::string(name), name, MakeEntry(dtype, shape, start_offset, crc));
}

absl::Status BundleDataWriter::AddEntry(std::string key, absl::string_view name,
                                        v1::BundleEntry entry) {
  if (name.empty() || name.front() == '\0') {
    return BadTensor(final_path_, name, "is not a name for a tensor");
  }
  if (!entries_.try_emplace(std::move(key), std::move(entry)).second) {
    return BadTensor(final_path_, name, "was added before");
  }
  return absl::OkStatus();
}

v1::BundleEntry BundleDataWriter::MakeEntry(BundleDtype dtype, const Shape& shape,
                                            int64_t start_offset, uint32_t crc) const {
  v1::BundleEntry entry;
  entry.set_dtype(static_cast<int32_t>(dtype));
  *entry.mutable_shape() = ToProto(shape);
  entry.set_shard_id(static_cast<int32_t>(data_shard_));
  entry.set_offset(start_offset);
  entry.set_size(offset_ - start_offset);
  entry.set_crc32c(MaskCrc32c(crc));
  return entry;
}

absl::Status BundleDataWriter::DoFinish() {
  RETURN_IF_ERROR(file_->Close());
  if (file_system_ != nullptr) {
    const absl::Status renamed = file_system_->Rename(temporary_path_, final_path_);
    // It was written here, so it is out of sight.
    if (absl::IsNotFound(renamed)) return absl::UnavailableError(renamed.message());
    RETURN_IF_ERROR(renamed);
  }
  file_.reset();
  if (file_system_ == nullptr) return absl::OkStatus();
  return file_system_->SyncDirectory(DirectoryOf(final_path_));
}

}  // namespace keelson
