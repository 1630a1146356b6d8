#include "core/optim/update.h"

#include <cstddef>
#include <variant>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optim/update.cc"
#include "hwy/foreach_target.h"
#include "core/optim/gradient_format-inl.h"
#include "core/optim/rules-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

struct SlotArray {
  const float* in = nullptr;
  float* out = nullptr;
};

SlotArray SlotOf(const UpdateArgs& args, size_t slot) {
  return {args.slots_in[slot], args.slots_out[slot]};
}

template <WireFormat kFormat, class Step>
void UpdateInFormat(Step step, ElementTransform transform, const UpdateArgs& args) {
  const float* const values_in = args.values_in.data();
  float* const values_out = args.values_out.data();
  const uint8_t* const gradient = args.gradient.data;
  const float scale = args.gradient.scale;
  const SlotArray first = Step::kSlots > 0 ? SlotOf(args, 0) : SlotArray();
  const SlotArray second = Step::kSlots > 1 ? SlotOf(args, 1) : SlotArray();
  ForEachVector(args.values_in.size(), [=](auto d, size_t i) HWY_ATTR {
    auto value = hn::LoadU(d, values_in + i);
    auto a = hn::Zero(d), b = hn::Zero(d);
    if constexpr (Step::kSlots > 0) a = hn::LoadU(d, first.in + i);
    if constexpr (Step::kSlots > 1) b = hn::LoadU(d, second.in + i);
    const auto g = Transform(d, transform, LoadElements<kFormat>(d, gradient, i, scale), value);
    value = hn::Mul(hn::Set(d, transform.keep), value);
    Apply(d, step, g, value, a, b);
    hn::StoreU(value, d, values_out + i);
    if constexpr (Step::kSlots > 0) hn::StoreU(a, d, first.out + i);
    if constexpr (Step::kSlots > 1) hn::StoreU(b, d, second.out + i);
  });
}

template <class Step>
void UpdateByRule(const Step& step, ElementTransform transform, const UpdateArgs& args) {
  ForFormat(args.gradient.format,
            [&]<WireFormat kFormat>() HWY_ATTR { UpdateInFormat<kFormat>(step, transform, args); });
}

void UpdateBlock(const Step& step, ElementTransform transform, const UpdateArgs& args) {
  std::visit([&](const auto& s) { UpdateByRule(s, transform, args); }, step);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(UpdateBlock);

}  // namespace

void UpdateElements(const Step& step, ElementTransform transform, const UpdateArgs& args) {
  HWY_DYNAMIC_DISPATCH(UpdateBlock)(step, transform, args);
}

}  // namespace keelson
#endif  // HWY_ONCE
