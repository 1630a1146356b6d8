#include "core/optim/accumulate.h"

#include <cstddef>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optim/accumulate.cc"
#include "hwy/foreach_target.h"
#include "core/optim/gradient_format-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

// Adds to what `before(d, i)` returns. A sum that begins is added to zero, which leaves no negative
// zero.
template <typename Before>
void AddElementsTo(Before before, const EncodedGradient& gradient, float weight, size_t n,
                   float* sum) {
  const uint8_t* const data = gradient.data;
  const float scale = gradient.scale;
  ForFormat(gradient.format, [=]<WireFormat kFormat>() HWY_ATTR {
    ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
      const auto g = LoadElements<kFormat>(d, data, i, scale);
      hn::StoreU(hn::Add(before(d, i), hn::Mul(hn::Set(d, weight), g)), d, sum + i);
    });
  });
}

void AddWeightedElements(const EncodedGradient& gradient, float weight, size_t n, float* sum) {
  AddElementsTo([sum](auto d, size_t i) HWY_ATTR { return hn::LoadU(d, sum + i); }, gradient,
                weight, n, sum);
}

void BeginWeightedElements(const EncodedGradient& gradient, float weight, size_t n, float* sum) {
  AddElementsTo([](auto d, size_t) HWY_ATTR { return hn::Zero(d); }, gradient, weight, n, sum);
}

void DivideElements(float divisor, size_t n, float* x) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Div(hn::LoadU(d, x + i), hn::Set(d, divisor)), d, x + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(AddWeightedElements);
HWY_EXPORT(BeginWeightedElements);
HWY_EXPORT(DivideElements);

}  // namespace

void AddWeighted(const EncodedGradient& gradient, float weight, absl::Span<float> sum) {
  HWY_DYNAMIC_DISPATCH(AddWeightedElements)(gradient, weight, sum.size(), sum.data());
}

void BeginWeighted(const EncodedGradient& gradient, float weight, absl::Span<float> sum) {
  HWY_DYNAMIC_DISPATCH(BeginWeightedElements)(gradient, weight, sum.size(), sum.data());
}

void DivideBy(float divisor, absl::Span<float> elements) {
  HWY_DYNAMIC_DISPATCH(DivideElements)(divisor, elements.size(), elements.data());
}

}  // namespace keelson
#endif  // HWY_ONCE
