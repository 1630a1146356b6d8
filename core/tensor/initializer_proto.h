// Initializers as messages.
#ifndef KEELSON_CORE_TENSOR_INITIALIZER_PROTO_H_
#define KEELSON_CORE_TENSOR_INITIALIZER_PROTO_H_

#include "core/tensor/variable.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

v1::Initializer InitializerToProto(const Initializer& initializer);
// Of a message without a kind: the constant 0.
Initializer InitializerFromProto(const v1::Initializer& proto);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_INITIALIZER_PROTO_H_
