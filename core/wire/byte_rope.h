// Bytes in several pieces, each kept alive by its owner. The data path passes ropes from the socket
// to the optimizer and back, so that no layer in between copies.
#ifndef KEELSON_CORE_WIRE_BYTE_ROPE_H_
#define KEELSON_CORE_WIRE_BYTE_ROPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace keelson {

// Keeps an object alive: calls `release(user)` once, when the pin is destroyed. Movable. A rope
// that was given to a transport is released on any of the transport's threads, so `release` only
// drops a reference or counts.
class Pin {
 public:
  using Release = void (*)(void* user);

  Pin() = default;
  Pin(Release release, void* user) : release_(release), user_(user) {}
  Pin(Pin&& other) noexcept
      : release_(std::exchange(other.release_, nullptr)), user_(other.user_) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(release_, other.release_);
    std::swap(user_, other.user_);
    return *this;
  }
  ~Pin() {
    if (release_ != nullptr) release_(user_);
  }

 private:
  Release release_ = nullptr;
  void* user_ = nullptr;
};

struct Fragment {
  const uint8_t* data = nullptr;
  size_t size = 0;
  // Empty: the bytes outlive the rope and all of its receivers.
  Pin pin;
};

// Movable. Not thread-safe; the bytes do not change while it lives.
class ByteRope {
 public:
  ByteRope() = default;
  ByteRope(ByteRope&&) = default;
  ByteRope& operator=(ByteRope&&) = default;

  void Append(Fragment fragment);
  void Append(ByteRope&& other);
  // The rope owns the bytes.
  void AppendCopy(absl::string_view bytes);
  void AppendOwned(std::string bytes);
  // The caller keeps the bytes alive.
  void AppendBorrowed(const void* data, size_t size);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::vector<Fragment>& fragments() const { return fragments_; }
  // Leaves the rope empty.
  std::vector<Fragment> TakeFragments();

  // For tests and small messages.
  std::string ToString() const;

 private:
  std::vector<Fragment> fragments_;
  size_t size_ = 0;
};

// Reads through a rope, which outlives it and its copies and stays as it is.
class ByteCursor {
 public:
  explicit ByteCursor(const ByteRope& rope) : fragments_(rope.fragments()), left_(rope.size()) {}

  size_t remaining() const { return left_; }

  // The next contiguous bytes, at most `max`; empty at the end.
  absl::Span<const uint8_t> Next(size_t max);

  // False, and nothing consumed, when fewer than `size` bytes remain.
  bool Read(void* to, size_t size);
  bool Skip(size_t size);

 private:
  absl::Span<const Fragment> fragments_;
  size_t fragment_ = 0;
  size_t offset_ = 0;  // within the fragment
  size_t left_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_BYTE_ROPE_H_
