#include "core/data/packed_stream.h"

#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<size_t> PackedStream::Read(size_t size, char* buffer) {
  ASSIGN_OR_RETURN(const size_t count, Unpack(size, buffer));
  content_bytes_ += count;
  return count;
}

absl::Status PackedStream::Finish() {
  const uint64_t expected = content_bytes_;
  char extra;
  ASSIGN_OR_RETURN(const size_t count, Read(1, &extra));
  if (count > 0) return file_.TrailingBytes(expected);
  if (!at_end()) return file_.DataLoss(cut_off_);
  return absl::OkStatus();
}

}  // namespace keelson
