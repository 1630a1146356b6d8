#include "core/checkpoint/bundle_format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson {
namespace {

struct DtypeTraits {
  BundleDtype dtype;
  const char* name;
  int64_t size;
};

constexpr DtypeTraits kDtypes[] = {
    {BundleDtype::kFloat32, "float32", 4},
    {BundleDtype::kFloat64, "float64", 8},
    {BundleDtype::kInt32, "int32", 4},
    {BundleDtype::kUint8, "uint8", 1},
    {BundleDtype::kInt16, "int16", 2},
    {BundleDtype::kInt8, "int8", 1},
    {BundleDtype::kString, "string", 0},
    {BundleDtype::kComplex64, "complex64", 8},
    {BundleDtype::kInt64, "int64", 8},
    {BundleDtype::kBool, "bool", 1},
    {BundleDtype::kQint8, "qint8", 1},
    {BundleDtype::kQuint8, "quint8", 1},
    {BundleDtype::kQint32, "qint32", 4},
    {BundleDtype::kBfloat16, "bfloat16", 2},
    {BundleDtype::kQint16, "qint16", 2},
    {BundleDtype::kQuint16, "quint16", 2},
    {BundleDtype::kUint16, "uint16", 2},
    {BundleDtype::kComplex128, "complex128", 16},
    {BundleDtype::kFloat16, "float16", 2},
    {BundleDtype::kVariant, "variant", 0},
    {BundleDtype::kUint32, "uint32", 4},
    {BundleDtype::kUint64, "uint64", 8},
    {BundleDtype::kFloat8E5m2, "float8_e5m2", 1},
    {BundleDtype::kFloat8E4m3fn, "float8_e4m3fn", 1},
    {BundleDtype::kFloat8E4m3fnuz, "float8_e4m3fnuz", 1},
    {BundleDtype::kFloat8E4m3b11fnuz, "float8_e4m3b11fnuz", 1},
    {BundleDtype::kFloat8E5m2fnuz, "float8_e5m2fnuz", 1},
    {BundleDtype::kInt4, "int4", 1},
    {BundleDtype::kUint4, "uint4", 1},
    {BundleDtype::kInt2, "int2", 1},
    {BundleDtype::kUint2, "uint2", 1},
};

const DtypeTraits* FindDtype(BundleDtype dtype) {
  for (const DtypeTraits& traits : kDtypes) {
    if (traits.dtype == dtype) return &traits;
  }
  return nullptr;
}

}  // namespace

std::string DtypeName(BundleDtype dtype) {
  const DtypeTraits* traits = FindDtype(dtype);
  if (traits == nullptr) return absl::StrCat("dtype ", static_cast<int32_t>(dtype));
  return traits->name;
}

int64_t DtypeSize(BundleDtype dtype) {
  const DtypeTraits* traits = FindDtype(dtype);
  return traits == nullptr ? 0 : traits->size;
}

bool ChecksumIsOfStoredBytes(BundleDtype dtype) {
  return dtype != BundleDtype::kString && dtype != BundleDtype::kVariant;
}

std::string DataPath(absl::string_view prefix, size_t data_shard, size_t num_data_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, data_shard, num_data_shards);
}

std::string IndexPath(absl::string_view prefix) { return absl::StrCat(prefix, ".index"); }

std::string PendingPath(absl::string_view path, uint64_t term, uint64_t cut) {
  return absl::StrCat(path, ".tempstate", term, "-", absl::Hex(cut));
}

}  // namespace keelson
