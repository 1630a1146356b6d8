// The header of a .npy file: its elements' type, their order, and the shape.
// Format: numpy/lib/format.py, versions 1.0, 2.0 and 3.0.
#ifndef KEELSON_CORE_TENSOR_FILES_NPY_HEADER_H_
#define KEELSON_CORE_TENSOR_FILES_NPY_HEADER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/bundle_format.h"
#include "core/tensor/shape.h"

namespace keelson {

struct NpyHeader {
  BundleDtype dtype = BundleDtype::kFloat32;
  Shape shape;
  // The first dimension varies fastest.
  bool fortran_order = false;
};

// As numpy writes version 1.0 (2.0 when the shape is long): the elements begin at a multiple of 64
// bytes. The header's dtype is one that numpy has (NpzDtype).
std::string EncodeNpyHeader(const NpyHeader& header);

// Enough bytes for NpyHeaderSize.
inline constexpr size_t kNpyPrefixBytes = 12;
// The number of bytes before the elements of a file. INVALID_ARGUMENT: `prefix`, the first
// kNpyPrefixBytes bytes, is not the beginning of such a file.
absl::StatusOr<size_t> NpyHeaderSize(absl::string_view prefix);

// `bytes`: as many as NpyHeaderSize says. INVALID_ARGUMENT: not such a header. UNIMPLEMENTED:
// elements that are big-endian, strings, objects or structures.
absl::StatusOr<NpyHeader> DecodeNpyHeader(absl::string_view bytes);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_NPY_HEADER_H_
