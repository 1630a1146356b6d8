#include "core/device/cpu/element_vectors.h"

#include <cstddef>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/cpu/element_vectors.cc"
#include "hwy/foreach_target.h"
#include "core/wire/element_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

void AddOnTarget(size_t n, const float* a, const float* b, float* y) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
}

void MultiplyOnTarget(size_t n, const float* a, const float* b, float* y) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
}

void ScaleOnTarget(float alpha, size_t n, float* x) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, alpha)), d, x + i);
  });
}

void ReluOnTarget(size_t n, const float* x, float* y) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value), d, y + i);
  });
}

void ReluGradientOnTarget(size_t n, const float* y, const float* dy, float* dx) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    const auto positive = hn::Gt(hn::LoadU(d, y + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, dy + i)), d, dx + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(AddOnTarget);
HWY_EXPORT(MultiplyOnTarget);
HWY_EXPORT(ScaleOnTarget);
HWY_EXPORT(ReluOnTarget);
HWY_EXPORT(ReluGradientOnTarget);

}  // namespace

void AddVectors(int64_t n, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(AddOnTarget)(static_cast<size_t>(n), a, b, y);
}

void MultiplyVectors(int64_t n, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(MultiplyOnTarget)(static_cast<size_t>(n), a, b, y);
}

void ScaleVectors(float alpha, int64_t n, float* x) {
  HWY_DYNAMIC_DISPATCH(ScaleOnTarget)(alpha, static_cast<size_t>(n), x);
}

void ReluVectors(int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(ReluOnTarget)(static_cast<size_t>(n), x, y);
}

void ReluGradientVectors(int64_t n, const float* y, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(ReluGradientOnTarget)(static_cast<size_t>(n), y, dy, dx);
}

}  // namespace keelson
#endif  // HWY_ONCE
