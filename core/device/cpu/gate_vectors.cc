// The probability of a normal number is erfc, which needs no table or branch as an exponential
// times a polynomial: erfc(|x| / sqrt(2)) = exp(-x^2 / 2) P(k) with k = 1 / (1 + 0.35 |x|), the
// form of Abramowitz and Stegun, "Handbook of mathematical functions", 7.1.26. The coefficients of
// P, of degree 9 and without a constant term, were fitted to mpmath's erfc over |x| <= 14.5 for the
// least relative error, 3.2e-8.
#include "core/device/cpu/gate_vectors.h"

#include <cstddef>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/cpu/gate_vectors.cc"
#include "hwy/foreach_target.h"
#include "core/wire/element_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

// c[0] + c[1] x + ...; without fused additions, which not all instruction sets have.
template <class D, size_t kTerms>
HWY_INLINE hn::Vec<D> Polynomial(D d, hn::Vec<D> x, const float (&c)[kTerms]) {
  auto sum = hn::Set(d, c[kTerms - 1]);
  for (size_t k = kTerms - 1; k-- > 0;) sum = hn::Add(hn::Mul(sum, x), hn::Set(d, c[k]));
  return sum;
}

// exp(x) for x <= 0: 2^n exp(r) with |r| <= ln(2) / 2, the Taylor series of which is exact enough
// with eight terms. ln(2) has two parts, so that n ln(2) is exact.
template <class D>
HWY_INLINE hn::Vec<D> ExponentialOf(D d, hn::Vec<D> x) {
  constexpr float kTaylor[] = {1.0f,      1.0f,       1.0f / 2,   1.0f / 6,
                               1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040};
  const hn::Rebind<int32_t, D> di;
  const auto least = hn::Set(d, -87.3365f);  // of which the exponential is normal
  const auto tiny = hn::Lt(x, least);
  const auto bounded = hn::IfThenElse(tiny, least, x);
  const auto n = hn::Round(hn::Mul(bounded, hn::Set(d, 1.44269504f)));
  const auto r = hn::Sub(hn::Sub(bounded, hn::Mul(n, hn::Set(d, 0.693359375f))),
                         hn::Mul(n, hn::Set(d, -2.12194440e-4f)));
  const auto exponent = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(tiny, hn::Mul(Polynomial(d, r, kTaylor), power));
}

template <class D>
HWY_INLINE hn::Vec<D> Square(D /*d*/, hn::Vec<D> x) {
  return hn::Mul(x, x);
}

// The probability of a number below x, and the density at x times sqrt(2 pi).
template <class D>
struct Normal {
  hn::Vec<D> probability;
  hn::Vec<D> density;
};

template <class D>
HWY_INLINE Normal<D> NormalOf(D d, hn::Vec<D> x) {
  constexpr float kTerms[] = {0.2792426133819955f,  0.27972703645690333f,  0.23964253265900787f,
                              0.21110518166014083f, -0.04642514317629588f, 0.31864004651204836f,
                              -0.5116785982635781f, 0.2880621315692777f,   -0.058315832771557816f};
  const auto one = hn::Set(d, 1.0f);
  const auto k = hn::Div(one, hn::Add(one, hn::Mul(hn::Set(d, 0.35f), hn::Abs(x))));
  const auto density = ExponentialOf(d, hn::Mul(hn::Set(d, -0.5f), Square(d, x)));
  const auto tail =
      hn::Mul(hn::Set(d, 0.5f), hn::Mul(density, hn::Mul(k, Polynomial(d, k, kTerms))));
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), density};
}

// 1 / (1 + exp(-x)), from the exponential that cannot overflow.
template <class D>
HWY_INLINE hn::Vec<D> SigmoidOf(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto e = ExponentialOf(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

void ExponentialOnTarget(size_t n, float highest, const float* x, float* y) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(ExponentialOf(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, highest))), d, y + i);
  });
}

void GeluOnTarget(size_t n, const float* x, float* y) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    hn::StoreU(hn::Mul(value, NormalOf(d, value).probability), d, y + i);
  });
}

void GeluGradientOnTarget(size_t n, const float* x, const float* dy, float* dx) {
  constexpr float kInverseSqrtTwoPi = 0.3989422804f;
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    const auto normal = NormalOf(d, value);
    const auto density = hn::Mul(normal.density, hn::Set(d, kInverseSqrtTwoPi));
    const auto slope = hn::Add(normal.probability, hn::Mul(value, density));
    hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), slope), d, dx + i);
  });
}

void SiluOnTarget(size_t n, const float* x, float* y) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    hn::StoreU(hn::Mul(value, SigmoidOf(d, value)), d, y + i);
  });
}

void SiluGradientOnTarget(size_t n, const float* x, const float* dy, float* dx) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    const auto s = SigmoidOf(d, value);
    const auto rest = hn::Mul(value, hn::Mul(s, hn::Sub(hn::Set(d, 1.0f), s)));
    hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), hn::Add(s, rest)), d, dx + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(ExponentialOnTarget);
HWY_EXPORT(GeluOnTarget);
HWY_EXPORT(GeluGradientOnTarget);
HWY_EXPORT(SiluOnTarget);
HWY_EXPORT(SiluGradientOnTarget);

}  // namespace

void ExponentialVectors(int64_t n, float highest, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(ExponentialOnTarget)(static_cast<size_t>(n), highest, x, y);
}

void GeluVectors(int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(GeluOnTarget)(static_cast<size_t>(n), x, y);
}

void GeluGradientVectors(int64_t n, const float* x, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(GeluGradientOnTarget)(static_cast<size_t>(n), x, dy, dx);
}

void SiluVectors(int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(SiluOnTarget)(static_cast<size_t>(n), x, y);
}

void SiluGradientVectors(int64_t n, const float* x, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(SiluGradientOnTarget)(static_cast<size_t>(n), x, dy, dx);
}

}  // namespace keelson
#endif  // HWY_ONCE
