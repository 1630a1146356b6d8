// The update rules on vectors of elements: Apply(d, step, g, value, first, second), where g is the
// transformed gradient, `first` and `second` are the slots that the rule has. Compiled once per
// instruction set (Highway's foreach_target.h).
//
// Multiplications and additions are never fused, square roots and quotients are IEEE's: so every
// instruction set gives the same bits.

// Highway's include guard: once per instruction set.
#if defined(KEELSON_CORE_OPTIM_RULES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEELSON_CORE_OPTIM_RULES_INL_H_
#undef KEELSON_CORE_OPTIM_RULES_INL_H_
#else
#define KEELSON_CORE_OPTIM_RULES_INL_H_
#endif

#include "core/optim/rules.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using hn::Add;
using hn::Div;
using hn::Mul;
using hn::Set;
using hn::Sqrt;
using hn::Sub;

// a * x + b * y, in float32 after each operation.
template <class D, class V>
HWY_INLINE V Blend(D d, float a, V x, float b, V y) {
  return Add(Mul(Set(d, a), x), Mul(Set(d, b), y));
}

template <class D, class V>
HWY_INLINE V Transform(D d, ElementTransform transform, V gradient, V value) {
  const V low = Set(d, -transform.limit), high = Set(d, transform.limit);
  V g = hn::IfThenElse(hn::Lt(gradient, low), low, gradient);
  g = hn::IfThenElse(hn::Lt(high, g), high, g);
  return Add(g, Mul(Set(d, transform.l2), value));
}

template <class D, class V>
HWY_INLINE void Apply(D d, const SgdRule::Step& step, V g, V& value, V&, V&) {
  value = Sub(value, Mul(Set(d, step.rate), g));
}

template <class D, class V>
HWY_INLINE void Apply(D d, const MomentumRule::Step& step, V g, V& value, V& accumulator, V&) {
  accumulator = Add(Mul(Set(d, step.momentum), accumulator), g);
  value = Sub(value, Mul(Set(d, step.rate), accumulator));
}

template <class D, class V>
HWY_INLINE void Apply(D d, const NesterovRule::Step& step, V g, V& value, V& accumulator, V&) {
  accumulator = Add(Mul(Set(d, step.momentum), accumulator), g);
  const V ahead = Add(g, Mul(Set(d, step.momentum), accumulator));
  value = Sub(value, Mul(Set(d, step.rate), ahead));
}

template <class D, class V>
HWY_INLINE void Apply(D d, const AdagradRule::Step& step, V g, V& value, V& accumulator, V&) {
  accumulator = Add(accumulator, Mul(g, g));
  const V divisor = Add(Sqrt(accumulator), Set(d, step.epsilon));
  value = Sub(value, Div(Mul(Set(d, step.rate), g), divisor));
}

template <class D, class V>
HWY_INLINE void Apply(D d, const RmsPropRule::Step& step, V g, V& value, V& mean_square, V& mom) {
  mean_square = Blend(d, step.decay, mean_square, step.rest, Mul(g, g));
  const V divisor = Sqrt(Add(mean_square, Set(d, step.epsilon)));
  mom = Add(Mul(Set(d, step.momentum), mom), Div(Mul(Set(d, step.rate), g), divisor));
  value = Sub(value, mom);
}

template <class D, class V>
HWY_INLINE void Apply(D d, const AdamRule::Step& step, V g, V& value, V& m, V& v) {
  m = Blend(d, step.beta1, m, step.rest1, g);
  v = Blend(d, step.beta2, v, step.rest2, Mul(g, g));
  const V divisor = Add(Sqrt(v), Set(d, step.epsilon));
  value = Sub(value, Div(Mul(Set(d, step.rate), m), divisor));
}

// A z that is not a number is not within l1, so that the value is not one either.
template <class D, class V>
HWY_INLINE void Apply(D d, const FtrlRule::Step& step, V g, V& value, V& n, V& z) {
  const V rate = Set(d, step.rate), l1 = Set(d, step.l1), before = Sqrt(n);
  n = Add(n, Mul(g, g));
  const V root = Sqrt(n);
  const V shrunk = Add(g, Mul(Set(d, step.shrinkage), value));
  z = Add(z, Sub(shrunk, Mul(Div(Sub(root, before), rate), value)));
  const V proximal = Sub(hn::CopySign(l1, z), z);
  const V moved = Div(proximal, Add(Div(root, rate), Set(d, step.divisor)));
  value = hn::IfThenElse(hn::Le(hn::Abs(z), l1), hn::Zero(d), moved);
}

template <class D, class V>
HWY_INLINE void Apply(D d, const MovingAverageRule::Step& step, V sample, V& value, V&, V&) {
  value = Blend(d, step.decay, value, step.rest, sample);
}

}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#endif  // KEELSON_CORE_OPTIM_RULES_INL_H_
