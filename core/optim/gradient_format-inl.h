// The format of an encoded gradient as a constant, for SIMD code that is compiled once per
// instruction set (Highway's foreach_target.h).

// Highway's include guard: once per instruction set.
#if defined(KEELSON_CORE_OPTIM_GRADIENT_FORMAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEELSON_CORE_OPTIM_GRADIENT_FORMAT_INL_H_
#undef KEELSON_CORE_OPTIM_GRADIENT_FORMAT_INL_H_
#else
#define KEELSON_CORE_OPTIM_GRADIENT_FORMAT_INL_H_
#endif

#include "core/wire/element_vectors-inl.h"
#include "core/wire/wire_format.h"

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {

// Calls body.operator()<format>(), for the formats that an EncodedGradient has.
template <class Body>
HWY_INLINE void ForFormat(WireFormat format, Body body) {
  switch (format) {
    case WireFormat::kFloat32:
      return body.template operator()<WireFormat::kFloat32>();
    case WireFormat::kFloat16:
      return body.template operator()<WireFormat::kFloat16>();
    case WireFormat::kBfloat16:
      return body.template operator()<WireFormat::kBfloat16>();
    case WireFormat::kInt8:
      return body.template operator()<WireFormat::kInt8>();
    case WireFormat::kTopK:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#endif  // KEELSON_CORE_OPTIM_GRADIENT_FORMAT_INL_H_
