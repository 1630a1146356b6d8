#include "core/tensor_files/npz.h"

#include <zip.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/zip_status.h"

namespace keelson {
namespace {

constexpr absl::string_view kSuffix = ".npy";
// Reading begins with this many bytes, and doubles them.
constexpr size_t kFirstPiece = 1 << 20;

std::string Where(absl::string_view path, absl::string_view name) {
  return absl::StrCat(path, ": array '", name, "'");
}

absl::Status At(absl::string_view where, const absl::Status& status) {
  const bool damage = absl::IsInvalidArgument(status);
  return absl::Status(damage ? absl::StatusCode::kDataLoss : status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

// The next `size` bytes. Memory grows with what is read, whatever the archive claims.
absl::StatusOr<std::string> ReadExactly(zip_file_t* file, const std::string& where, size_t size) {
  std::string bytes;
  size_t done = 0;
  while (done < size) {
    if (done == bytes.size()) bytes.resize(std::min(size, std::max(kFirstPiece, 2 * done)));
    const zip_int64_t count = zip_fread(file, bytes.data() + done, bytes.size() - done);
    if (count < 0) return ZipStatus(where, zip_file_get_error(file));
    if (count == 0) {
      return absl::DataLossError(
          absl::StrCat(where, ": expected ", size, " bytes more, found ", done));
    }
    done += count;
  }
  return bytes;
}

// libzip compares the checksum when the end is read.
absl::Status ExpectEnd(zip_file_t* file, const std::string& where) {
  char more;
  const zip_int64_t count = zip_fread(file, &more, 1);
  if (count < 0) return ZipStatus(where, zip_file_get_error(file));
  if (count > 0) return absl::DataLossError(absl::StrCat(where, ": it goes on after its end"));
  return absl::OkStatus();
}

struct FileCloser {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using MemberFile = std::unique_ptr<zip_file_t, FileCloser>;

absl::StatusOr<MemberFile> OpenMember(zip_t* archive, uint64_t index, const std::string& where) {
  MemberFile file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) return ZipStatus(where, zip_get_error(archive));
  return file;
}

// The elements of an array in Fortran order, row-major.
std::string InRowOrder(const std::string& bytes, const Shape& shape, size_t element_bytes) {
  std::vector<size_t> strides;  // of each dimension in `bytes`
  std::vector<int64_t> dims;
  size_t stride = element_bytes;
  for (const int64_t dim : shape.dims()) {
    if (dim == 1) continue;  // There may be any number of them.
    strides.push_back(stride);
    dims.push_back(dim);
    stride *= dim;
  }
  std::string ordered(bytes.size(), '\0');
  std::vector<int64_t> position(strides.size(), 0);
  size_t from = 0;
  for (size_t to = 0; to < ordered.size(); to += element_bytes) {
    std::memcpy(&ordered[to], &bytes[from], element_bytes);
    for (size_t d = strides.size(); d-- > 0;) {
      from += strides[d];
      if (++position[d] < dims[d]) break;
      from -= strides[d] * position[d];
      position[d] = 0;
    }
  }
  return ordered;
}

}  // namespace

void NpzFile::Closer::operator()(zip_t* archive) const { zip_discard(archive); }

absl::StatusOr<std::unique_ptr<NpzFile>> NpzFile::Open(const std::string& path) {
  return Open(path, [](absl::string_view) { return true; });
}

absl::StatusOr<std::unique_ptr<NpzFile>> NpzFile::Open(
    const std::string& path, absl::FunctionRef<bool(absl::string_view)> wanted) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                   FileSystem::Real()->OpenForRead(path));
  int code = file->size() == 0 ? ZIP_ER_NOZIP : ZIP_ER_OK;
  zip_t* archive = code == ZIP_ER_OK ? zip_open(path.c_str(), ZIP_RDONLY, &code) : nullptr;
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    return ZipStatus(path, &error);
  }
  std::unique_ptr<NpzFile> npz(
      new NpzFile(path, file->size(), std::unique_ptr<zip_t, Closer>(archive)));
  RETURN_IF_ERROR(npz->ReadDirectory(wanted));
  return npz;
}

absl::Status NpzFile::ReadDirectory(absl::FunctionRef<bool(absl::string_view)> wanted) {
  const zip_int64_t members = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < members; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t stat;
    if (zip_stat_index(archive_.get(), index, 0, &stat) != 0) {
      return ZipStatus(path_, zip_get_error(archive_.get()));
    }
    absl::string_view name = stat.name;
    if (!absl::ConsumeSuffix(&name, kSuffix) || !wanted(name)) continue;
    RETURN_IF_ERROR(CheckMemberBytes(name, stat.size, stat.comp_method != ZIP_CM_STORE));
    ASSIGN_OR_RETURN(Array array, ReadArrayHeader(index, name, stat.size));
    if (!arrays_.emplace(name, std::move(array)).second) {
      return absl::DataLossError(absl::StrCat(Where(path_, name), " is listed twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status NpzFile::CheckMemberBytes(absl::string_view name, uint64_t member_bytes,
                                       bool compressed) const {
  const uint64_t limit = compressed ? kMaxCompressedArrayBytes : file_bytes_;
  if (member_bytes <= limit) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(Where(path_, name), ": expected at most ", limit,
                   compressed ? " bytes in compressed form" : " bytes, all of the file", ", found ",
                   member_bytes));
}

absl::StatusOr<NpzFile::Array> NpzFile::ReadArrayHeader(uint64_t index, absl::string_view name,
                                                        uint64_t member_bytes) {
  const std::string where = Where(path_, name);
  ASSIGN_OR_RETURN(const MemberFile file, OpenMember(archive_.get(), index, where));
  ASSIGN_OR_RETURN(std::string bytes, ReadExactly(file.get(), where, kNpyPrefixBytes));
  const absl::StatusOr<size_t> header_bytes = NpyHeaderSize(bytes);
  if (!header_bytes.ok()) return At(where, header_bytes.status());
  if (*header_bytes < bytes.size() || *header_bytes > member_bytes) {
    return absl::DataLossError(absl::StrCat(where, ": a .npy header of ", *header_bytes,
                                            " bytes in a member of ", member_bytes));
  }
  ASSIGN_OR_RETURN(const std::string rest,
                   ReadExactly(file.get(), where, *header_bytes - kNpyPrefixBytes));
  bytes += rest;
  absl::StatusOr<NpyHeader> header = DecodeNpyHeader(bytes);
  if (!header.ok()) return At(where, header.status());
  const auto expected =
      static_cast<uint64_t>(header->shape.num_elements() * DtypeSize(header->dtype));
  if (member_bytes - *header_bytes != expected) {
    return absl::DataLossError(absl::StrCat(where, ": expected ", expected, " bytes for ",
                                            DtypeName(header->dtype), " ", header->shape.ToString(),
                                            ", found ", member_bytes - *header_bytes));
  }
  return Array{index, *header_bytes, *std::move(header)};
}

std::vector<TensorInfo> NpzFile::List() const {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, array] : arrays_) {
    tensors.push_back({name, array.header.dtype, array.header.shape});
  }
  return tensors;
}

absl::StatusOr<std::string> NpzFile::Read(absl::string_view name) {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) {
    return absl::NotFoundError(absl::StrCat(path_, ": no array '", name, "'"));
  }
  const Array& array = found->second;
  const std::string where = Where(path_, name);
  ASSIGN_OR_RETURN(const MemberFile file, OpenMember(archive_.get(), array.index, where));
  RETURN_IF_ERROR(ReadExactly(file.get(), where, array.header_bytes).status());
  const size_t element_bytes = DtypeSize(array.header.dtype);
  ASSIGN_OR_RETURN(
      std::string elements,
      ReadExactly(file.get(), where, array.header.shape.num_elements() * element_bytes));
  RETURN_IF_ERROR(ExpectEnd(file.get(), where));
  if (!array.header.fortran_order) return elements;
  return InRowOrder(elements, array.header.shape, element_bytes);
}

}  // namespace keelson
