#include "core/checkpoint/bundle_reader.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/string_tensor.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie in memory");

constexpr uint64_t kChunkBytes = 1 << 20;

bool IsReadable(BundleDtype dtype) {
  return dtype == BundleDtype::kFloat32 || dtype == BundleDtype::kInt64 ||
         dtype == BundleDtype::kString;
}

absl::Status WrongType(const std::string& path, const StoredTensor& tensor, BundleDtype asked) {
  const std::string text = absl::StrCat(path, ": tensor '", tensor.name, "' has type ",
                                        DtypeName(tensor.dtype), ", expected ", DtypeName(asked));
  return IsReadable(tensor.dtype) ? absl::InvalidArgumentError(text)
                                  : absl::UnimplementedError(text);
}

absl::Status NotOneElement(const std::string& path, const StoredTensor& tensor) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", tensor.name, "' has shape ",
                                                 tensor.shape.ToString(),
                                                 ", expected one element"));
}

absl::Status BadRows(const std::string& path, const StoredTensor& tensor, int64_t row_begin,
                     int64_t row_end, size_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": tensor '", tensor.name, "' of shape ", tensor.shape.ToString(),
                   ": rows [", row_begin, ", ", row_end, ") asked for, into ", size, " values"));
}

// Contradictions in an index are damage to whoever reads it.
absl::Status IndexError(const std::string& path, const absl::Status& status) {
  const bool damage = status.code() == absl::StatusCode::kInvalidArgument;
  return absl::Status(damage ? absl::StatusCode::kDataLoss : status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

// Whether the rows of the slice are the tensor's, in full width.
bool SpansRows(const StoredSlice& slice, const Shape& shape) {
  for (int i = 1; i < shape.rank(); ++i) {
    if (slice.position.extents[static_cast<size_t>(i)].length != shape.dim(i)) return false;
  }
  return true;
}

// Copies a dense box to its place in `out`, which holds the rows of `shape` from `first_row` on.
void CopyBox(const std::vector<float>& values, const TensorSliceSpec& box, const Shape& shape,
             int64_t first_row, absl::Span<float> out) {
  const int last = shape.rank() - 1;
  const int64_t line_size = box.extents[static_cast<size_t>(last)].length;
  const int64_t lines = line_size == 0 ? 0 : static_cast<int64_t>(values.size()) / line_size;
  for (int64_t line = 0; line < lines; ++line) {
    int64_t position = box.extents[static_cast<size_t>(last)].start;
    int64_t stride = shape.dim(last);
    int64_t rest = line;
    for (int d = last - 1; d >= 0; --d) {
      const TensorSliceSpec::Extent& extent = box.extents[static_cast<size_t>(d)];
      const int64_t base = d == 0 ? extent.start - first_row : extent.start;
      position += (base + rest % extent.length) * stride;
      rest /= extent.length;
      stride *= shape.dim(d);
    }
    std::copy_n(values.begin() + line * line_size, line_size, out.begin() + position);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(const std::string& prefix) {
  const std::string path = IndexPath(prefix);
  ASSIGN_OR_RETURN(const IndexTable index, ReadIndexTable(path));
  absl::StatusOr<BundleContents> contents = ParseBundleContents(index);
  if (!contents.ok()) return IndexError(path, contents.status());
  std::unique_ptr<BundleReader> reader(new BundleReader(prefix, *std::move(contents)));
  RETURN_IF_ERROR(reader->OpenDataFiles());
  return reader;
}

absl::Status BundleReader::OpenDataFiles() {
  const int count = static_cast<int>(contents_.data_sizes.size());
  files_.resize(contents_.data_sizes.size());
  for (int i = 0; i < count; ++i) {
    const uint64_t expected = contents_.data_sizes[static_cast<size_t>(i)];
    if (expected == 0) continue;
    const std::string path = DataPath(prefix_, i, count);
    ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, RandomAccessFile::Open(path));
    if (file->size() != expected) {
      return absl::DataLossError(
          absl::StrCat(path, ": has ", file->size(), " bytes, expected ", expected));
    }
    files_[static_cast<size_t>(i)] = std::move(file);
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

absl::Status BundleReader::ReadRows(absl::string_view name, int64_t row_begin, int64_t row_end,
                                    absl::Span<float> out) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindTyped(name, BundleDtype::kFloat32));
  const Shape& shape = tensor->shape;
  if (row_begin < 0 || row_end < row_begin || row_end > shape.rows() ||
      (row_end - row_begin) * shape.row_elements() != static_cast<int64_t>(out.size())) {
    return BadRows(IndexPath(prefix_), *tensor, row_begin, row_end, out.size());
  }
  if (out.empty()) return absl::OkStatus();
  for (const StoredSlice& slice : tensor->slices) {
    RETURN_IF_ERROR(ReadSliceRows(*tensor, slice, row_begin, row_end, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> BundleReader::ReadTensor(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* stored, FindTyped(name, BundleDtype::kFloat32));
  Tensor tensor(stored->shape);
  RETURN_IF_ERROR(ReadRows(name, 0, stored->shape.rows(), tensor.span()));
  return tensor;
}

absl::StatusOr<int64_t> BundleReader::ReadInt64(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindSingle(name, BundleDtype::kInt64));
  int64_t value = 0;
  RETURN_IF_ERROR(ReadWhole(*tensor, tensor->slices.front(), reinterpret_cast<char*>(&value)));
  return value;
}

absl::StatusOr<std::string> BundleReader::ReadString(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindSingle(name, BundleDtype::kString));
  ASSIGN_OR_RETURN(std::vector<std::string> strings, ReadStrings(*tensor, tensor->slices.front()));
  return std::move(strings.front());
}

absl::Status BundleReader::VerifyAll() const {
  for (const auto& [name, tensor] : contents_.tensors) {
    for (const StoredSlice& slice : tensor.slices) RETURN_IF_ERROR(Verify(tensor, slice));
  }
  return absl::OkStatus();
}

std::string BundleReader::DataPathOf(const StoredSlice& slice) const {
  return DataPath(prefix_, slice.data_shard, static_cast<int>(files_.size()));
}

absl::StatusOr<const StoredTensor*> BundleReader::Find(absl::string_view name) const {
  const auto it = contents_.tensors.find(name);
  if (it != contents_.tensors.end()) return &it->second;
  return absl::NotFoundError(absl::StrCat(IndexPath(prefix_), ": no tensor '", name, "'"));
}

absl::StatusOr<const StoredTensor*> BundleReader::FindTyped(absl::string_view name,
                                                            BundleDtype dtype) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, Find(name));
  if (tensor->dtype != dtype) return WrongType(IndexPath(prefix_), *tensor, dtype);
  return tensor;
}

absl::StatusOr<const StoredTensor*> BundleReader::FindSingle(absl::string_view name,
                                                             BundleDtype dtype) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindTyped(name, dtype));
  if (tensor->shape.num_elements() != 1 || tensor->slices.size() != 1) {
    return NotOneElement(IndexPath(prefix_), *tensor);
  }
  return tensor;
}

absl::Status BundleReader::DamagedTensor(const StoredTensor& tensor, const StoredSlice& slice,
                                         absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(DataPathOf(slice), ": tensor '", tensor.name,
                                          "' in bytes [", slice.offset, ", ",
                                          slice.offset + slice.size, "): ", what));
}

absl::Status BundleReader::CheckCrc(const StoredTensor& tensor, const StoredSlice& slice,
                                    uint32_t crc) const {
  if (MaskCrc32c(crc) != slice.masked_crc) {
    return DamagedTensor(tensor, slice, "checksum mismatch");
  }
  MutexLock lock(&mu_);
  verified_.insert(&slice);
  return absl::OkStatus();
}

absl::Status BundleReader::ReadRaw(const StoredTensor& tensor, const StoredSlice& slice,
                                   uint64_t begin, uint64_t size, char* out) const {
  if (size == 0) return absl::OkStatus();
  const RandomAccessFile& file = *files_[static_cast<size_t>(slice.data_shard)];
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
    RETURN_IF_ERROR(ReadRaw(tensor, slice, begin, size, chunk));
    crc = Crc32cExtend(crc, {chunk, size});
  }
  return CheckCrc(tensor, slice, crc);
}

absl::Status BundleReader::ReadPart(const StoredTensor& tensor, const StoredSlice& slice,
                                    uint64_t begin, uint64_t size, char* out) const {
  if (size == slice.size) return ReadWhole(tensor, slice, out);
  bool verified;
  {
    MutexLock lock(&mu_);
    verified = verified_.count(&slice) > 0;
  }
  if (!verified) RETURN_IF_ERROR(ReadWhole(tensor, slice, nullptr));
  return ReadRaw(tensor, slice, begin, size, out);
}

absl::Status BundleReader::ReadSliceRows(const StoredTensor& tensor, const StoredSlice& slice,
                                         int64_t row_begin, int64_t row_end,
                                         absl::Span<float> out) const {
  if (tensor.shape.rank() == 0) {
    return ReadPart(tensor, slice, 0, out.size() * sizeof(float),
                    reinterpret_cast<char*>(out.data()));
  }
  TensorSliceSpec box = slice.position;
  const TensorSliceSpec::Extent rows = box.extents[0];
  const int64_t first = std::max(rows.start, row_begin);
  const int64_t last = std::min(rows.end(), row_end);
  if (first >= last) return absl::OkStatus();
  const uint64_t row_bytes = slice.size / static_cast<uint64_t>(rows.length);
  const uint64_t begin = static_cast<uint64_t>(first - rows.start) * row_bytes;
  const uint64_t size = static_cast<uint64_t>(last - first) * row_bytes;
  if (SpansRows(slice, tensor.shape)) {
    float* place = out.data() + (first - row_begin) * tensor.shape.row_elements();
    return ReadPart(tensor, slice, begin, size, reinterpret_cast<char*>(place));
  }
  std::vector<float> values(size / sizeof(float));
  RETURN_IF_ERROR(ReadPart(tensor, slice, begin, size, reinterpret_cast<char*>(values.data())));
  box.extents[0] = {first, last - first};
  CopyBox(values, box, tensor.shape, row_begin, out);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> BundleReader::ReadStrings(const StoredTensor& tensor,
                                                                   const StoredSlice& slice) const {
  std::string bytes(slice.size, '\0');
  RETURN_IF_ERROR(ReadRaw(tensor, slice, 0, slice.size, bytes.data()));
  absl::StatusOr<DecodedStrings> decoded =
      DecodeStringTensor(bytes, SliceShape(slice.position).num_elements());
  if (!decoded.ok()) return DamagedTensor(tensor, slice, decoded.status().message());
  RETURN_IF_ERROR(CheckCrc(tensor, slice, decoded->crc));
  return std::move(decoded->strings);
}

absl::Status BundleReader::Verify(const StoredTensor& tensor, const StoredSlice& slice) const {
  if (tensor.dtype == BundleDtype::kString) return ReadStrings(tensor, slice).status();
  if (DtypeSize(tensor.dtype) == 0) {
    return absl::UnimplementedError(absl::StrCat(DataPathOf(slice), ": tensor '", tensor.name,
                                                 "': checksum of ", DtypeName(tensor.dtype)));
  }
  return ReadWhole(tensor, slice, nullptr);
}

}  // namespace keelson
