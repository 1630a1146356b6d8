// The loop that applies a rule to a block, as SIMD code chosen at run time for the processor and
// fused with the decoding of the gradient. Internal to optimizer.cc.
#ifndef KEELSON_CORE_OPTIM_UPDATE_H_
#define KEELSON_CORE_OPTIM_UPDATE_H_

#include "core/optim/optimizer.h"
#include "core/optim/rules.h"

namespace keelson {

// `args` has as many slots as the step.
void UpdateElements(const Step& step, ElementTransform transform, const UpdateArgs& args);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_UPDATE_H_
