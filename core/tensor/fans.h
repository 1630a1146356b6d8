// Initial values whose spread follows from the number of a layer's inputs and outputs.
#ifndef KEELSON_CORE_TENSOR_FANS_H_
#define KEELSON_CORE_TENSOR_FANS_H_

#include <cstdint>
#include <optional>

#include "core/tensor/shape.h"
#include "core/tensor/variable.h"

namespace keelson {

// How many inputs an output of the layer adds up, and how many outputs an input goes to.
struct Fans {
  int64_t in = 0;
  int64_t out = 0;
};

// Of a kernel [inputs, outputs], or [..., inputs, outputs] of a convolution, whose window counts in
// both. Nothing for a vector or a scalar, which has no fans.
std::optional<Fans> FansOf(const Shape& kernel);

// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// AISTATS 2010: within +- sqrt(6 / (in + out)), or of the variance 2 / (in + out).
Initializer GlorotUniform(const Fans& fans);
Initializer GlorotNormal(const Fans& fans);

// He et al., "Delving deep into rectifiers", ICCV 2015: within +- sqrt(6 / in), or of the variance
// 2 / in.
Initializer HeUniform(const Fans& fans);
Initializer HeNormal(const Fans& fans);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FANS_H_
