#include "core/data/zstd_stream.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/packed_stream.h"

namespace keelson {
namespace {

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdStream : public PackedStream {
 public:
  explicit ZstdStream(std::unique_ptr<RandomAccessFile> file)
      : PackedStream(std::move(file), "zstd stream is cut off before its end"),
        context_(ZSTD_createDCtx()) {}

 private:
  absl::StatusOr<size_t> Unpack(size_t size, char* buffer) override {
    if (context_ == nullptr) return file().NoMemory("zstd");
    ZSTD_outBuffer out = {buffer, size, 0};
    for (size_t before = 0; out.pos < size; before = out.pos) {
      RETURN_IF_ERROR(FillInput());
      const bool no_input = in_.pos == in_.size;
      if (no_input && at_end_) break;
      RETURN_IF_ERROR(Decode(&out));
      if (no_input && out.pos == before) break;  // it is cut off
    }
    return out.pos;
  }

  bool at_end() const override { return at_end_; }

  absl::Status FillInput() {
    if (in_.pos < in_.size) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::string_view piece, file().Next());
    in_ = {piece.data(), piece.size(), 0};
    return absl::OkStatus();
  }

  absl::Status Decode(ZSTD_outBuffer* out) {
    const size_t result = ZSTD_decompressStream(context_.get(), out, &in_);
    if (ZSTD_isError(result) == 0) {
      at_end_ = result == 0;
      any_frame_ = any_frame_ || at_end_;
      return absl::OkStatus();
    }
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_memory_allocation:
        return file().NoMemory("zstd");
      case ZSTD_error_prefix_unknown:
        if (any_frame_) return file().TrailingBytes(content_bytes() + out->pos);
        break;
      default:
        break;
    }
    return file().DataLoss(absl::StrCat("not a valid zstd stream: ", ZSTD_getErrorName(result)));
  }

  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool any_frame_ = false;  // has ended
  bool at_end_ = false;     // of a frame
};

}  // namespace

std::unique_ptr<ByteStream> NewZstdStream(std::unique_ptr<RandomAccessFile> file) {
  return std::make_unique<ZstdStream>(std::move(file));
}

}  // namespace keelson
