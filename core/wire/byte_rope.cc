#include "core/wire/byte_rope.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace keelson {
namespace {

void DeleteString(void* user) { delete static_cast<std::string*>(user); }

}  // namespace

void ByteRope::Append(Fragment fragment) {
  if (fragment.size == 0) return;
  size_ += fragment.size;
  fragments_.push_back(std::move(fragment));
}

void ByteRope::Append(ByteRope&& other) {
  size_ += other.size_;
  std::vector<Fragment> fragments = other.TakeFragments();
  std::move(fragments.begin(), fragments.end(), std::back_inserter(fragments_));
}

void ByteRope::AppendCopy(absl::string_view bytes) { AppendOwned(std::string(bytes)); }

void ByteRope::AppendOwned(std::string bytes) {
  auto* owned = new std::string(std::move(bytes));
  Append(
      {reinterpret_cast<const uint8_t*>(owned->data()), owned->size(), Pin(DeleteString, owned)});
}

void ByteRope::AppendBorrowed(const void* data, size_t size) {
  Append({static_cast<const uint8_t*>(data), size, Pin()});
}

std::vector<Fragment> ByteRope::TakeFragments() {
  size_ = 0;
  return std::exchange(fragments_, {});
}

std::string ByteRope::ToString() const {
  std::string out;
  out.reserve(size_);
  for (const Fragment& fragment : fragments_) {
    out.append(reinterpret_cast<const char*>(fragment.data), fragment.size);
  }
  return out;
}

absl::Span<const uint8_t> ByteCursor::Next(size_t max) {
  if (left_ == 0 || max == 0) return {};
  const Fragment& fragment = fragments_[fragment_];
  const size_t size = std::min(max, fragment.size - offset_);
  const absl::Span<const uint8_t> piece(fragment.data + offset_, size);
  offset_ += size;
  left_ -= size;
  if (offset_ == fragment.size) {
    ++fragment_;
    offset_ = 0;
  }
  return piece;
}

bool ByteCursor::Read(void* to, size_t size) {
  if (size > left_) return false;
  auto* out = static_cast<uint8_t*>(to);
  while (size > 0) {
    const absl::Span<const uint8_t> piece = Next(size);
    std::memcpy(out, piece.data(), piece.size());
    out += piece.size();
    size -= piece.size();
  }
  return true;
}

bool ByteCursor::Skip(size_t size) {
  if (size > left_) return false;
  while (size > 0) size -= Next(size).size();
  return true;
}

}  // namespace keelson
