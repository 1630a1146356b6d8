#include "core/data/packed_input.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<absl::string_view> PackedInput::Next() {
  constexpr uint64_t kPieceBytes = 64 << 10;
  piece_.resize(std::min(kPieceBytes, file_->size() - position_));
  RETURN_IF_ERROR(file_->Read(position_, piece_.size(), piece_.data()));
  position_ += piece_.size();
  return absl::string_view(piece_.data(), piece_.size());
}

absl::Status PackedInput::DataLoss(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(file_->path(), ": ", what));
}

absl::Status PackedInput::TrailingBytes(uint64_t content_bytes) const {
  return DataLoss(absl::StrCat("trailing bytes: expected the end after ", content_bytes, " bytes"));
}

absl::Status PackedInput::NoMemory(absl::string_view format) const {
  return absl::ResourceExhaustedError(
      absl::StrCat(file_->path(), ": no memory to decode ", format));
}

}  // namespace keelson
