// The types of elements that files of other programs hold in place of TensorFlow's own ones.
#ifndef KEELSON_CORE_TENSOR_FILES_STAND_IN_TYPE_H_
#define KEELSON_CORE_TENSOR_FILES_STAND_IN_TYPE_H_

#include "core/checkpoint/bundle_format.h"

namespace keelson {

// An integer type of the same bytes: int8 for qint8, and uint8 for floats of 8 bits and integers of
// less than 8. Any other type stands for itself.
BundleDtype StandInType(BundleDtype dtype);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_STAND_IN_TYPE_H_
