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

// Owns `size` floats, 64-byte aligned, zero at first. Movable; copies only when asked (Clone).
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) : size_(size) {
    if (size == 0) return;
    const size_t bytes = static_cast<size_t>(size) * sizeof(float);
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, rounded)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_.get(), 0, rounded);
  }

  AlignedBuffer Clone() const {
    AlignedBuffer copy(size_);
    if (size_ > 0) std::memcpy(copy.data(), data(), static_cast<size_t>(size_) * sizeof(float));
    return copy;
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  absl::Span<float> span() { return {data(), static_cast<size_t>(size_)}; }
  absl::Span<const float> span() const { return {data(), static_cast<size_t>(size_)}; }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> data_;
  int64_t size_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_ALIGNED_BUFFER_H_
