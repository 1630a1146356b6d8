// A restore asks for elements in the new sharding, while checksums cover whole slices in the old
// one. So a slice is verified once, in pieces that need little memory, before any part of it is
// returned, and verified slices are remembered: many small reads of one slice cost one checksum.
// All files stay open, so that a snapshot that is deleted meanwhile stays readable.
#include "core/checkpoint/bundle_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/slice_runs.h"
#include "core/checkpoint/string_tensor.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie in memory");

constexpr uint64_t kChunkBytes = 1 << 20;
constexpr size_t kConvertedElements = 1 << 18;

absl::Status NotOneElement(const std::string& path, const StoredTensor& tensor) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", tensor.name, "' has shape ",
                                                 tensor.shape.ToString(),
                                                 ", expected one element"));
}

absl::Status BadRange(const std::string& path, const StoredTensor& tensor, int64_t begin,
                      int64_t end) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", tensor.name, "' of shape ",
                                                 tensor.shape.ToString(), ": elements [", begin,
                                                 ", ", end, ") asked for"));
}

// Whether the slice has no row of the elements [first, first + count): a table has hundreds of
// slices, of which a reader wants one.
bool OutsideRows(const StoredTensor& tensor, const StoredSlice& slice, int64_t first,
                 int64_t count) {
  if (slice.position.extents.empty()) return false;
  const TensorSliceSpec::Extent& rows = slice.position.extents.front();
  const int64_t row = tensor.shape.row_elements();
  return rows.end() * row <= first || rows.start * row >= first + count;
}

// For a reader, a contradiction in an index is damage.
absl::Status IndexError(const std::string& path, const absl::Status& status) {
  const bool damage = status.code() == absl::StatusCode::kInvalidArgument;
  return absl::Status(damage ? absl::StatusCode::kDataLoss : status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(const std::string& prefix,
                                                                 FileSystem* file_system) {
  const std::string path = IndexPath(prefix);
  ASSIGN_OR_RETURN(const IndexTable index, ReadIndexTable(file_system, path));
  absl::StatusOr<BundleContents> contents = ParseBundleContents(index);
  if (!contents.ok()) return IndexError(path, contents.status());
  std::unique_ptr<BundleReader> reader(new BundleReader(prefix, *std::move(contents), file_system));
  RETURN_IF_ERROR(reader->OpenDataFiles());
  return reader;
}

absl::Status BundleReader::OpenDataFiles() {
  files_.resize(contents_.data_sizes.size());
  for (size_t i = 0; i < files_.size(); ++i) {
    const uint64_t expected = contents_.data_sizes[i];
    if (expected == 0) continue;
    const std::string path = DataPath(prefix_, i, files_.size());
    ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, file_system_->OpenForRead(path));
    if (file->size() != expected) {
      return absl::DataLossError(
          absl::StrCat(path, ": has ", file->size(), " bytes, expected ", expected));
    }
    files_[i] = std::move(file);
  }
  return absl::OkStatus();
}

std::vector<TensorInfo> BundleReader::List() const {
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : contents_.tensors) {
    infos.push_back({name, tensor.dtype, tensor.shape});
  }
  return infos;
}

bool BundleReader::Contains(absl::string_view name) const {
  return contents_.tensors.find(name) != contents_.tensors.end();
}

absl::StatusOr<TensorInfo> BundleReader::Info(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  return TensorInfo{tensor->name, tensor->dtype, tensor->shape};
}

absl::Status BundleReader::ReadElements(absl::string_view name, int64_t first,
                                        absl::Span<float> out) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindNumeric(name));
  RETURN_IF_ERROR(CheckRange(*tensor, first, static_cast<int64_t>(out.size())));
  return ReadAsFloat(*tensor, first, out);
}

absl::Status BundleReader::ReadInt64s(absl::string_view name, int64_t first,
                                      absl::Span<int64_t> out) const {
  return ReadExactly(name, BundleDtype::kInt64, first, static_cast<int64_t>(out.size()),
                     out.data());
}

absl::Status BundleReader::ReadInt32s(absl::string_view name, int64_t first,
                                      absl::Span<int32_t> out) const {
  return ReadExactly(name, BundleDtype::kInt32, first, static_cast<int64_t>(out.size()),
                     out.data());
}

absl::StatusOr<const StoredTensor*> BundleReader::FindExactly(absl::string_view name,
                                                              BundleDtype dtype, int64_t first,
                                                              int64_t count) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  if (tensor->dtype != dtype) return WrongType(*tensor, DtypeName(dtype));
  RETURN_IF_ERROR(CheckRange(*tensor, first, count));
  return tensor;
}

absl::Status BundleReader::ReadExactly(absl::string_view name, BundleDtype dtype, int64_t first,
                                       int64_t count, void* out) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindExactly(name, dtype, first, count));
  return ReadStored(*tensor, first, count, static_cast<char*>(out));
}

absl::StatusOr<const char*> BundleReader::MapElements(absl::string_view name, BundleDtype dtype,
                                                      int64_t first, int64_t count) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindExactly(name, dtype, first, count));
  for (const StoredSlice& slice : tensor->slices) {
    if (count == 0 || OutsideRows(*tensor, slice, first, count)) continue;
    const SliceRuns runs(slice.position, tensor->shape);
    const SliceRuns::Range part = runs.Within(first, first + count);
    if (part.end - part.begin != count || !runs.IsOneRun(part)) return nullptr;
    const char* const file = files_[slice.data_shard]->Map();
    if (file == nullptr) return nullptr;
    RETURN_IF_ERROR(EnsureVerified(*tensor, slice));
    return file + slice.offset + part.begin * DtypeSize(dtype);
  }
  return nullptr;
}

absl::Status BundleReader::CheckRange(const StoredTensor& tensor, int64_t first,
                                      int64_t count) const {
  const int64_t total = tensor.shape.num_elements();
  if (first >= 0 && first <= total && count <= total - first) return absl::OkStatus();
  return BadRange(IndexPath(prefix_), tensor, first, first + count);
}

absl::StatusOr<Tensor> BundleReader::ReadTensor(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* stored, FindNumeric(name));
  Tensor tensor(stored->shape);
  RETURN_IF_ERROR(ReadAsFloat(*stored, 0, tensor.span()));
  return tensor;
}

absl::StatusOr<std::string> BundleReader::ReadBytes(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  const int64_t element_size = DtypeSize(tensor->dtype);
  if (element_size == 0) return ReadOpaqueBytes(*tensor);
  const int64_t count = tensor->shape.num_elements();
  std::string bytes(count * element_size, '\0');
  RETURN_IF_ERROR(ReadStored(*tensor, 0, count, bytes.data()));
  return bytes;
}

absl::StatusOr<std::string> BundleReader::ReadOpaqueBytes(const StoredTensor& tensor) const {
  if (!ChecksumIsOfStoredBytes(tensor.dtype) || tensor.slices.size() != 1) {
    return WrongType(tensor, "one of fixed size");
  }
  std::string bytes(tensor.slices[0].size, '\0');
  RETURN_IF_ERROR(ReadWhole(tensor, tensor.slices[0], bytes.data()));
  return bytes;
}

absl::StatusOr<std::vector<std::string>> BundleReader::ReadStrings(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  if (tensor->dtype != BundleDtype::kString) return WrongType(*tensor, "string");
  std::vector<std::vector<std::string>> parts;
  for (const StoredSlice& slice : tensor->slices) {
    ASSIGN_OR_RETURN(parts.emplace_back(), ReadSliceStrings(*tensor, slice));
  }
  const int64_t count = tensor->shape.num_elements();
  std::vector<std::string> strings(count);
  for (size_t i = 0; i < parts.size(); ++i) {
    const SliceRuns runs(tensor->slices[i].position, tensor->shape);
    runs.ForEach(0, count, [&](const SliceRuns::Run& run) {
      std::move(parts[i].begin() + run.in_slice, parts[i].begin() + run.in_slice + run.length,
                strings.begin() + run.in_tensor);
    });
  }
  return strings;
}

absl::StatusOr<int64_t> BundleReader::ReadInt64(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  const bool narrow = tensor->dtype == BundleDtype::kInt32;
  if (!narrow && tensor->dtype != BundleDtype::kInt64) return WrongType(*tensor, "int64");
  if (tensor->shape.num_elements() != 1) return NotOneElement(IndexPath(prefix_), *tensor);
  int64_t wide = 0;
  int32_t value = 0;
  char* bytes = narrow ? reinterpret_cast<char*>(&value) : reinterpret_cast<char*>(&wide);
  RETURN_IF_ERROR(ReadStored(*tensor, 0, 1, bytes));
  return narrow ? value : wide;
}

absl::StatusOr<std::string> BundleReader::ReadString(absl::string_view name) const {
  ASSIGN_OR_RETURN(std::vector<std::string> strings, ReadStrings(name));
  if (strings.size() != 1) return NotOneElement(IndexPath(prefix_), **Find(name));
  return std::move(strings.front());
}

absl::Status BundleReader::VerifyAll() const {
  for (const auto& [name, tensor] : contents_.tensors) {
    for (const StoredSlice& slice : tensor.slices) RETURN_IF_ERROR(Verify(tensor, slice));
  }
  return absl::OkStatus();
}

std::string BundleReader::DataPathOf(const StoredSlice& slice) const {
  return DataPath(prefix_, slice.data_shard, files_.size());
}

absl::StatusOr<const StoredTensor*> BundleReader::Find(absl::string_view name) const {
  const auto it = contents_.tensors.find(name);
  if (it != contents_.tensors.end()) return &it->second;
  return absl::NotFoundError(absl::StrCat(IndexPath(prefix_), ": no tensor '", name, "'"));
}

absl::StatusOr<const StoredTensor*> BundleReader::FindNumeric(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  if (!IsNumeric(tensor->dtype)) return WrongType(*tensor, "a number");
  return tensor;
}

absl::Status BundleReader::WrongType(const StoredTensor& tensor, absl::string_view expected) const {
  const std::string text =
      absl::StrCat(IndexPath(prefix_), ": tensor '", tensor.name, "' has type ",
                   DtypeName(tensor.dtype), ", expected ", expected);
  const bool known = tensor.dtype == BundleDtype::kString || DtypeSize(tensor.dtype) != 0;
  return known ? absl::InvalidArgumentError(text) : absl::UnimplementedError(text);
}

absl::Status BundleReader::DamagedTensor(const StoredTensor& tensor, const StoredSlice& slice,
                                         absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(DataPathOf(slice), ": tensor '", tensor.name,
                                          "' in bytes [", slice.offset, ", ",
                                          slice.offset + slice.size, "): ", what));
}

absl::Status BundleReader::CheckCrc(const StoredTensor& tensor, const StoredSlice& slice,
                                    uint32_t crc) const {
  if (MaskCrc32c(crc) != slice.masked_crc) return DamagedTensor(tensor, slice, "checksum mismatch");
  MutexLock lock(&mu_);
  verified_.insert(&slice);
  return absl::OkStatus();
}

absl::Status BundleReader::ReadUnverified(const StoredTensor& tensor, const StoredSlice& slice,
                                          uint64_t begin, uint64_t size, char* out) const {
  if (size == 0) return absl::OkStatus();
  const RandomAccessFile& file = *files_[slice.data_shard];
  const absl::Status status = file.Read(slice.offset + begin, size, out);
  if (status.code() == absl::StatusCode::kDataLoss) {
    return DamagedTensor(tensor, slice, status.message());
  }
  return status;
}

absl::Status BundleReader::ReadWhole(const StoredTensor& tensor, const StoredSlice& slice,
                                     char* out) const {
  std::string buffer(out == nullptr ? std::min(slice.size, kChunkBytes) : 0, '\0');
  uint32_t crc = 0;
  for (uint64_t begin = 0; begin < slice.size; begin += kChunkBytes) {
    const uint64_t size = std::min(kChunkBytes, slice.size - begin);
    char* chunk = out == nullptr ? buffer.data() : out + begin;
    RETURN_IF_ERROR(ReadUnverified(tensor, slice, begin, size, chunk));
    crc = Crc32cExtend(crc, {chunk, size});
  }
  return CheckCrc(tensor, slice, crc);
}

absl::Status BundleReader::ReadPart(const StoredTensor& tensor, const StoredSlice& slice,
                                    uint64_t begin, uint64_t size, char* out) const {
  if (size == slice.size) return ReadWhole(tensor, slice, out);
  RETURN_IF_ERROR(EnsureVerified(tensor, slice));
  return ReadUnverified(tensor, slice, begin, size, out);
}

absl::Status BundleReader::EnsureVerified(const StoredTensor& tensor,
                                          const StoredSlice& slice) const {
  {
    MutexLock lock(&mu_);
    if (verified_.count(&slice) > 0) return absl::OkStatus();
  }
  return ReadWhole(tensor, slice, nullptr);
}

absl::Status BundleReader::ReadStored(const StoredTensor& tensor, int64_t first, int64_t count,
                                      char* out) const {
  for (const StoredSlice& slice : tensor.slices) {
    if (OutsideRows(tensor, slice, first, count)) continue;
    RETURN_IF_ERROR(ReadFromSlice(tensor, slice, first, count, out));
  }
  return absl::OkStatus();
}

absl::Status BundleReader::ReadFromSlice(const StoredTensor& tensor, const StoredSlice& slice,
                                         int64_t first, int64_t count, char* out) const {
  const SliceRuns runs(slice.position, tensor.shape);
  const SliceRuns::Range part = runs.Within(first, first + count);
  if (part.empty()) return absl::OkStatus();
  const int64_t element_size = DtypeSize(tensor.dtype);
  const auto offset = static_cast<uint64_t>(part.begin * element_size);
  const auto size = static_cast<uint64_t>((part.end - part.begin) * element_size);
  if (runs.IsOneRun(part)) {
    char* place = out + (runs.InTensor(part.begin) - first) * element_size;
    return ReadPart(tensor, slice, offset, size, place);
  }
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(ReadPart(tensor, slice, offset, size, bytes.data()));
  runs.ForEach(first, first + count, [&](const SliceRuns::Run& run) {
    std::memcpy(out + (run.in_tensor - first) * element_size,
                bytes.data() + (run.in_slice - part.begin) * element_size,
                run.length * element_size);
  });
  return absl::OkStatus();
}

absl::Status BundleReader::ReadAsFloat(const StoredTensor& tensor, int64_t first,
                                       absl::Span<float> out) const {
  if (tensor.dtype == BundleDtype::kFloat32) {
    return ReadStored(tensor, first, static_cast<int64_t>(out.size()),
                      reinterpret_cast<char*>(out.data()));
  }
  std::string buffer;
  for (size_t done = 0; done < out.size(); done += kConvertedElements) {
    const absl::Span<float> part = out.subspan(done, kConvertedElements);
    buffer.resize(part.size() * DtypeSize(tensor.dtype));
    RETURN_IF_ERROR(ReadStored(tensor, first + static_cast<int64_t>(done),
                               static_cast<int64_t>(part.size()), buffer.data()));
    ConvertToFloat(tensor.dtype, buffer.data(), part);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> BundleReader::ReadSliceStrings(
    const StoredTensor& tensor, const StoredSlice& slice) const {
  std::string bytes(slice.size, '\0');
  RETURN_IF_ERROR(ReadUnverified(tensor, slice, 0, slice.size, bytes.data()));
  absl::StatusOr<DecodedStrings> decoded =
      DecodeStringTensor(bytes, SliceShape(slice.position).num_elements());
  if (!decoded.ok()) return DamagedTensor(tensor, slice, decoded.status().message());
  RETURN_IF_ERROR(CheckCrc(tensor, slice, decoded->crc));
  return std::move(decoded->strings);
}

absl::Status BundleReader::Verify(const StoredTensor& tensor, const StoredSlice& slice) const {
  if (tensor.dtype == BundleDtype::kString) return ReadSliceStrings(tensor, slice).status();
  if (!ChecksumIsOfStoredBytes(tensor.dtype)) {
    return absl::UnimplementedError(absl::StrCat(DataPathOf(slice), ": tensor '", tensor.name,
                                                 "': checksum of ", DtypeName(tensor.dtype)));
  }
  return ReadWhole(tensor, slice, nullptr);
}

}  // namespace keelson
