// Memory for float32 elements, aligned for vector instructions.
#ifndef KEELSON_CORE_TENSOR_ALIGNED_BUFFER_H_
#define KEELSON_CORE_TENSOR_ALIGNED_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "absl/types/span.h"

namespace keelson {

// Owns `size` floats, 64-byte aligned. Movable; copied only by Clone.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  // Zeros.
  explicit AlignedBuffer(int64_t size) : AlignedBuffer(Uninitialized(size)) {
    if (size > 0) std::memset(data(), 0, RoundedBytes(size));
  }

  // For an owner that writes every element before it reads any.
  static AlignedBuffer Uninitialized(int64_t size) {
    AlignedBuffer buffer;
    if (size == 0) return buffer;
    buffer.data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, RoundedBytes(size))));
    if (buffer.data_ == nullptr) throw std::bad_alloc();
    buffer.size_ = size;
    return buffer;
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  absl::Span<float> span() { return absl::MakeSpan(data(), size_); }
  absl::Span<const float> span() const { return absl::MakeConstSpan(data(), size_); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };

  static size_t RoundedBytes(int64_t size) {
    const size_t bytes = size * sizeof(float);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::unique_ptr<float, Free> data_;
  int64_t size_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_ALIGNED_BUFFER_H_
