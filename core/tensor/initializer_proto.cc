#include "core/tensor/initializer_proto.h"

namespace keelson {

v1::Initializer InitializerToProto(const Initializer& initializer) {
  v1::Initializer proto;
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      proto.mutable_constant()->set_value(initializer.a);
      break;
    case Initializer::Kind::kUniform:
      proto.mutable_uniform()->set_low(initializer.a);
      proto.mutable_uniform()->set_high(initializer.b);
      break;
    case Initializer::Kind::kNormal:
      proto.mutable_normal()->set_mean(initializer.a);
      proto.mutable_normal()->set_stddev(initializer.b);
      break;
    case Initializer::Kind::kTruncatedNormal:
      proto.mutable_truncated_normal()->set_mean(initializer.a);
      proto.mutable_truncated_normal()->set_stddev(initializer.b);
      break;
  }
  return proto;
}

Initializer InitializerFromProto(const v1::Initializer& proto) {
  switch (proto.kind_case()) {
    case v1::Initializer::kUniform:
      return {Initializer::Kind::kUniform, proto.uniform().low(), proto.uniform().high()};
    case v1::Initializer::kNormal:
      return {Initializer::Kind::kNormal, proto.normal().mean(), proto.normal().stddev()};
    case v1::Initializer::kTruncatedNormal:
      return {Initializer::Kind::kTruncatedNormal, proto.truncated_normal().mean(),
              proto.truncated_normal().stddev()};
    default:
      return {Initializer::Kind::kConstant, proto.constant().value(), 0};
  }
}

}  // namespace keelson
