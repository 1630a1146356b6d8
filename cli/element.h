// Single elements of tensors, as they lie in files.
#ifndef KEELSON_CLI_ELEMENT_H_
#define KEELSON_CLI_ELEMENT_H_

#include <string>

#include "core/checkpoint/bundle_format.h"

namespace keelson {

// A numeric element (core/checkpoint/element_conversion.h), little-endian at `from`. Exact: a long
// double has 64 bits of mantissa or more.
long double ElementValue(BundleDtype dtype, const char* from);

// An element of a fixed size, in as many digits as its type has: "0.100000001", "-3", "true",
// "(1, -2)" for a complex number, "0x7f" for what is no number here.
std::string ElementText(BundleDtype dtype, const char* from);

}  // namespace keelson

#endif  // KEELSON_CLI_ELEMENT_H_
