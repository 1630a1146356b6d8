#include "core/data/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/data/packed_stream.h"
#include "core/data/zstd_stream.h"

namespace keelson {
namespace {

constexpr absl::string_view kGzip = ".gz", kZstd = ".zst";

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(size_t size, char* buffer) override {
    size = std::min<uint64_t>(size, file_->size() - position_);
    RETURN_IF_ERROR(file_->Read(position_, size, buffer));
    position_ += size;
    return size;
  }

  uint64_t max_content_bytes() const override { return std::numeric_limits<uint64_t>::max(); }

  absl::Status Finish() override {
    if (position_ == file_->size()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(file_->path(), ": trailing bytes: expected ", position_,
                                            " bytes, found ", file_->size()));
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  uint64_t position_ = 0;
};

class GzipStream : public PackedStream {
 public:
  explicit GzipStream(std::unique_ptr<RandomAccessFile> file)
      : PackedStream(std::move(file), "gzip stream is cut off before its checksum") {
    // 16: a gzip header and trailer, not zlib's.
    initialized_ = inflateInit2(&zlib_, 15 + 16) == Z_OK;
  }
  ~GzipStream() override {
    if (initialized_) inflateEnd(&zlib_);
  }

 private:
  absl::StatusOr<size_t> Unpack(size_t size, char* buffer) override {
    if (!initialized_) return file().NoMemory("gzip");
    size_t done = 0;
    while (done < size) {
      ASSIGN_OR_RETURN(const size_t n, Inflate(size - done, buffer + done));
      if (n == 0) break;
      done += n;
    }
    return done;
  }

  bool at_end() const override { return at_end_; }

  // Up to `size` bytes; 0 where the content ends or is cut off.
  absl::StatusOr<size_t> Inflate(size_t size, char* buffer) {
    zlib_.next_out = reinterpret_cast<Bytef*>(buffer);
    const uInt want = static_cast<uInt>(std::min<size_t>(size, 1 << 30));
    zlib_.avail_out = want;
    while (zlib_.avail_out == want) {
      RETURN_IF_ERROR(FillInput());
      if (zlib_.avail_in == 0) return 0;
      if (at_end_) RETURN_IF_ERROR(NextMember());
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        at_end_ = true;
      } else if (result != Z_OK) {
        return Damaged();
      }
    }
    return want - zlib_.avail_out;
  }

  absl::Status FillInput() {
    if (zlib_.avail_in > 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::string_view piece, file().Next());
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    zlib_.avail_in = static_cast<uInt>(piece.size());
    return absl::OkStatus();
  }

  // A gzip file may be several streams, one after the other.
  absl::Status NextMember() {
    constexpr Bytef kFirstOfMagic = 0x1f;
    if (*zlib_.next_in != kFirstOfMagic) return file().TrailingBytes(content_bytes());
    inflateReset(&zlib_);
    at_end_ = false;
    return absl::OkStatus();
  }

  absl::Status Damaged() const {
    return file().DataLoss(
        absl::StrCat("not a valid gzip stream: ", zlib_.msg ? zlib_.msg : "no reason"));
  }

  z_stream zlib_ = {};
  bool initialized_ = false;
  bool at_end_ = false;  // of a gzip member
};

}  // namespace

absl::string_view WithoutPackedSuffix(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kGzip)) absl::ConsumeSuffix(&name, kZstd);
  return name;
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(const std::string& path,
                                                           FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, file_system->OpenForRead(path));
  if (absl::EndsWith(path, kGzip)) return std::make_unique<GzipStream>(std::move(file));
  if (absl::EndsWith(path, kZstd)) return NewZstdStream(std::move(file));
  return std::make_unique<PlainStream>(std::move(file));
}

}  // namespace keelson
