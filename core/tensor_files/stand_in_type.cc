#include "core/tensor_files/stand_in_type.h"

namespace keelson {

BundleDtype StandInType(BundleDtype dtype) {
  switch (dtype) {
    case BundleDtype::kQint8:
      return BundleDtype::kInt8;
    case BundleDtype::kQint16:
      return BundleDtype::kInt16;
    case BundleDtype::kQuint16:
      return BundleDtype::kUint16;
    case BundleDtype::kQint32:
      return BundleDtype::kInt32;
    case BundleDtype::kQuint8:
    case BundleDtype::kFloat8E5m2:
    case BundleDtype::kFloat8E4m3fn:
    case BundleDtype::kFloat8E4m3fnuz:
    case BundleDtype::kFloat8E4m3b11fnuz:
    case BundleDtype::kFloat8E5m2fnuz:
    case BundleDtype::kInt4:
    case BundleDtype::kUint4:
    case BundleDtype::kInt2:
    case BundleDtype::kUint2:
      return BundleDtype::kUint8;
    default:
      return dtype;
  }
}

}  // namespace keelson
