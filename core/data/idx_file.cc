#include "core/data/idx_file.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"

namespace keelson {
namespace {

constexpr uint32_t kUnsignedBytes = 0x08;

absl::Status WrongMagic(const std::string& path, uint32_t expected, uint32_t found) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: not an IDX file of this kind: expected magic number 0x%08x, found 0x%08x", path,
      expected, found));
}

absl::Status Truncated(const std::string& path, uint64_t expected, uint64_t found) {
  return absl::DataLossError(
      absl::StrCat(path, ": truncated IDX file: expected ", expected, " bytes, found ", found));
}

absl::Status ImpossibleExtents(const std::string& path, const std::vector<int64_t>& dims) {
  return absl::DataLossError(absl::StrCat(path, ": header claims ", absl::StrJoin(dims, " x "),
                                          " bytes, more than any file holds"));
}

absl::Status TooLarge(const std::string& path, uint64_t expected, uint64_t found) {
  return absl::DataLossError(absl::StrCat(path, ": expected at most ", expected,
                                          " bytes of values in a packed file, header claims ",
                                          found));
}

uint32_t BigEndian32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// False when the product is out of bounds, or that of the extents that are not 0.
bool Multiply(const std::vector<int64_t>& dims, uint64_t* product) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
  *product = 1;
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(*product, std::max<uint64_t>(dim, 1), product)) return false;
  }
  if (*product > kMaxBytes) return false;
  if (std::count(dims.begin(), dims.end(), 0) > 0) *product = 0;
  return true;
}

class IdxReader {
 public:
  IdxReader(const std::string& path, ByteStream* stream) : path_(path), stream_(stream) {}

  absl::StatusOr<IdxArray> Read(int rank) {
    IdxArray array;
    RETURN_IF_ERROR(ReadMagic(rank));
    RETURN_IF_ERROR(ReadDims(rank, &array.dims));
    RETURN_IF_ERROR(ReadValues(&array));
    RETURN_IF_ERROR(stream_->Finish());
    return array;
  }

 private:
  absl::Status ReadMagic(int rank) {
    const uint32_t expected = kUnsignedBytes << 8 | static_cast<uint32_t>(rank);
    char bytes[4];
    ASSIGN_OR_RETURN(const size_t n, stream_->Read(sizeof(bytes), bytes));
    header_bytes_ = sizeof(bytes) * (rank + 1);
    if (n < sizeof(bytes)) return Truncated(path_, header_bytes_, n);
    const uint32_t magic = BigEndian32(bytes);
    if (magic != expected) return WrongMagic(path_, expected, magic);
    return absl::OkStatus();
  }

  absl::Status ReadDims(int rank, std::vector<int64_t>* dims) {
    std::vector<char> bytes(4 * rank);
    ASSIGN_OR_RETURN(const size_t n, stream_->Read(bytes.size(), bytes.data()));
    if (n < bytes.size()) return Truncated(path_, header_bytes_, 4 + n);
    for (size_t i = 0; i < bytes.size(); i += 4) dims->push_back(BigEndian32(&bytes[i]));
    return absl::OkStatus();
  }

  absl::Status ReadValues(IdxArray* array) {
    uint64_t expected;
    if (!Multiply(array->dims, &expected)) return ImpossibleExtents(path_, array->dims);
    if (expected > stream_->max_content_bytes()) {
      return TooLarge(path_, stream_->max_content_bytes(), expected);
    }
    uint64_t done = 0;
    while (done < expected) {
      // The buffer doubles, so that no header, false or true, costs much more memory than the file.
      const uint64_t end = std::min(expected, std::max(kFirstPiece, 2 * done));
      array->values.reserve(end);
      array->values.resize(end);
      char* const to = reinterpret_cast<char*>(array->values.data() + done);
      ASSIGN_OR_RETURN(const size_t n, stream_->Read(end - done, to));
      done += n;
      if (done < end) return Truncated(path_, header_bytes_ + expected, header_bytes_ + done);
    }
    return absl::OkStatus();
  }

  static constexpr uint64_t kFirstPiece = 1 << 20;

  const std::string& path_;
  ByteStream* const stream_;
  uint64_t header_bytes_ = 0;
};

}  // namespace

absl::StatusOr<IdxArray> ReadIdxFile(const std::string& path, int rank) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, OpenByteStream(path));
  return IdxReader(path, stream.get()).Read(rank);
}

}  // namespace keelson
