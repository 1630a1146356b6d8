#include "core/optim/compensate.h"

#include <cstddef>
#include <cstdint>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optim/compensate.cc"
#include "hwy/foreach_target.h"
#include "core/optim/gradient_format-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

template <class D, class V>
HWY_INLINE V NextMeanSquare(D d, const DelayCompensationRule& rule, V mean_square, V squared) {
  return hn::Add(hn::Mul(hn::Set(d, rule.decay), mean_square),
                 hn::Mul(hn::Set(d, 1 - rule.decay), squared));
}

void UpdateMeanSquareElements(const DelayCompensationRule& rule, const EncodedGradient& gradient,
                              size_t n, const MeanSquareArrays& mean_square) {
  const uint8_t* const data = gradient.data;
  const float scale = gradient.scale;
  ForFormat(gradient.format, [=]<WireFormat kFormat>() HWY_ATTR {
    ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
      const auto g = LoadElements<kFormat>(d, data, i, scale);
      const auto before = hn::LoadU(d, mean_square.in + i);
      hn::StoreU(NextMeanSquare(d, rule, before, hn::Mul(g, g)), d, mean_square.out + i);
    });
  });
}

void CompensateElements(const DelayCompensationRule& rule, const EncodedGradient& gradient,
                        const MeanSquareArrays& mean_square, const float* values,
                        const float* worker_values, absl::Span<float> compensated) {
  const uint8_t* const data = gradient.data;
  const float scale = gradient.scale;
  float* const out = compensated.data();
  ForFormat(gradient.format, [=, n = compensated.size()]<WireFormat kFormat>() HWY_ATTR {
    ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
      const auto g = LoadElements<kFormat>(d, data, i, scale);
      const auto squared = hn::Mul(g, g);
      const auto mean = NextMeanSquare(d, rule, hn::LoadU(d, mean_square.in + i), squared);
      const auto moved = hn::Sub(hn::LoadU(d, values + i), hn::LoadU(d, worker_values + i));
      const auto factor =
          hn::Div(hn::Set(d, rule.lambda), hn::Sqrt(hn::Add(mean, hn::Set(d, rule.epsilon))));
      hn::StoreU(mean, d, mean_square.out + i);
      hn::StoreU(hn::Add(g, hn::Mul(hn::Mul(factor, squared), moved)), d, out + i);
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(UpdateMeanSquareElements);
HWY_EXPORT(CompensateElements);

}  // namespace

void UpdateMeanSquare(const DelayCompensationRule& rule, const EncodedGradient& gradient, size_t n,
                      const MeanSquareArrays& mean_square) {
  HWY_DYNAMIC_DISPATCH(UpdateMeanSquareElements)(rule, gradient, n, mean_square);
}

void Compensate(const DelayCompensationRule& rule, const EncodedGradient& gradient,
                const MeanSquareArrays& mean_square, const float* values,
                const float* worker_values, absl::Span<float> compensated) {
  HWY_DYNAMIC_DISPATCH(CompensateElements)
  (rule, gradient, mean_square, values, worker_values, compensated);
}

}  // namespace keelson
#endif  // HWY_ONCE
