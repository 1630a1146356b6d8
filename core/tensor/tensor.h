// A float32 tensor in host memory, row-major.
#ifndef KEELSON_CORE_TENSOR_TENSOR_H_
#define KEELSON_CORE_TENSOR_TENSOR_H_

#include <utility>

#include "core/tensor/aligned_buffer.h"
#include "core/tensor/shape.h"

namespace keelson {

// Owns its elements. Movable, not copyable. Threads may read it together.
class Tensor {
 public:
  Tensor() : Tensor(Shape({0})) {}
  // Zeros.
  explicit Tensor(Shape shape) : shape_(std::move(shape)), buffer_(shape_.num_elements()) {}

  const Shape& shape() const { return shape_; }
  int64_t size() const { return buffer_.size(); }
  float* data() { return buffer_.data(); }
  const float* data() const { return buffer_.data(); }
  absl::Span<float> span() { return buffer_.span(); }
  absl::Span<const float> span() const { return static_cast<const AlignedBuffer&>(buffer_).span(); }

 private:
  Shape shape_;
  AlignedBuffer buffer_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_TENSOR_H_
