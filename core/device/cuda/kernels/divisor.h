// Division by numbers that a launch knows, without the long sequence of a processor's division.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_DIVISOR_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_DIVISOR_H_

#include <cstdint>

#include "core/device/cuda/kernels/host_device.h"

namespace keelson::cuda {

// Divides numbers from 0 to Index's largest. Made on the host, of a value > 0.
template <typename Index>
class Divisor;

// By a multiplication. Source: Granlund and Montgomery, "Division by invariant integers using
// multiplication", PLDI 1994.
template <>
class Divisor<int32_t> {
 public:
  explicit Divisor(int64_t value) : value_(static_cast<int32_t>(value)) {
    while ((int64_t{1} << (shift_ - 31)) < value) ++shift_;
    multiplier_ = static_cast<uint32_t>((uint64_t{1} << shift_) / static_cast<uint64_t>(value) + 1);
  }

  KEELSON_HOST_DEVICE int32_t value() const { return value_; }
  KEELSON_HOST_DEVICE int32_t Divide(int32_t n) const {
    return static_cast<int32_t>(static_cast<uint64_t>(static_cast<uint32_t>(n)) * multiplier_ >>
                                shift_);
  }

 private:
  int32_t value_;
  uint32_t multiplier_ = 0;
  int shift_ = 31;  // 31 + the logarithm of the value, rounded up
};

template <>
class Divisor<int64_t> {
 public:
  explicit Divisor(int64_t value) : value_(value) {}

  KEELSON_HOST_DEVICE int64_t value() const { return value_; }
  KEELSON_HOST_DEVICE int64_t Divide(int64_t n) const { return n / value_; }

 private:
  int64_t value_;
};

template <typename Index>
struct Division {
  Index quotient;
  Index remainder;
};

template <typename Index>
KEELSON_HOST_DEVICE inline Division<Index> DivideBy(const Divisor<Index>& divisor, Index n) {
  const Index quotient = divisor.Divide(n);
  return {quotient, n - quotient * divisor.value()};
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_DIVISOR_H_
