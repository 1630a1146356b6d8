// Extents of a tensor, outermost first: [rows, columns] for a matrix, [] for a scalar.
#ifndef KEELSON_CORE_TENSOR_SHAPE_H_
#define KEELSON_CORE_TENSOR_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace keelson {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  size_t rank() const { return dims_.size(); }
  int64_t dim(size_t i) const { return dims_[i]; }
  const std::vector<int64_t>& dims() const { return dims_; }

  // Product of the extents; 1 for a scalar.
  int64_t num_elements() const;
  // Axis-0 extent, by which variables are partitioned; 1 for a scalar.
  int64_t rows() const { return dims_.empty() ? 1 : dims_[0]; }
  // Elements in one row.
  int64_t row_elements() const { return rows() == 0 ? 0 : num_elements() / rows(); }

  // "[28, 28, 1]"
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::vector<int64_t> dims_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_SHAPE_H_
