#include "core/tensor_files/npy_header.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/element_count.h"

namespace keelson {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

struct NpyType {
  absl::string_view descr;
  BundleDtype dtype;
};
constexpr std::array<NpyType, 14> kNpyTypes = {{{"<f4", BundleDtype::kFloat32},
                                                {"<f8", BundleDtype::kFloat64},
                                                {"<f2", BundleDtype::kFloat16},
                                                {"|b1", BundleDtype::kBool},
                                                {"|i1", BundleDtype::kInt8},
                                                {"<i2", BundleDtype::kInt16},
                                                {"<i4", BundleDtype::kInt32},
                                                {"<i8", BundleDtype::kInt64},
                                                {"|u1", BundleDtype::kUint8},
                                                {"<u2", BundleDtype::kUint16},
                                                {"<u4", BundleDtype::kUint32},
                                                {"<u8", BundleDtype::kUint64},
                                                {"<c8", BundleDtype::kComplex64},
                                                {"<c16", BundleDtype::kComplex128}}};

const NpyType* FindType(BundleDtype dtype) {
  for (const NpyType& type : kNpyTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a .npy header: ", what));
}

// Little-endian.
std::string LengthBytes(size_t value, int bytes) {
  std::string encoded;
  for (int i = 0; i < bytes; ++i) encoded.push_back(static_cast<char>(value >> (8 * i)));
  return encoded;
}

// "(3, 4)", "(3,)", "()"
std::string ShapeTuple(const Shape& shape) {
  return absl::StrCat("(", absl::StrJoin(shape.dims(), ", "), shape.rank() == 1 ? ",)" : ")");
}

// Reads the literal of a Python dictionary as numpy's header is one.
class DictReader {
 public:
  explicit DictReader(absl::string_view text) : rest_(text) {}

  absl::StatusOr<NpyHeader> Read() {
    if (!Take("{")) return Bad("no dictionary");
    while (!Take("}")) {
      ASSIGN_OR_RETURN(const std::string key, String());
      if (!Take(":")) return Bad(absl::StrCat("no value of '", absl::CHexEscape(key), "'"));
      RETURN_IF_ERROR(Value(key));
      if (!Take(",") && !Peek("}")) return Bad("no end of the dictionary");
    }
    if (!absl::StripAsciiWhitespace(rest_).empty()) return Bad("text after the dictionary");
    if (!has_dtype_ || !has_order_ || !has_shape_) {
      return Bad("expected descr, fortran_order and shape");
    }
    return header_;
  }

 private:
  bool Peek(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::StartsWith(rest_, token);
  }
  bool Take(absl::string_view token) {
    if (!Peek(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  absl::StatusOr<std::string> String() {
    for (const absl::string_view quote : {"'", "\""}) {
      if (!Take(quote)) continue;
      const size_t end = rest_.find(quote);
      if (end == absl::string_view::npos) return Bad("a string without its end");
      std::string text(rest_.substr(0, end));
      rest_.remove_prefix(end + 1);
      return text;
    }
    return Bad("expected a string");
  }

  absl::Status Value(const std::string& key) {
    if (key == "descr") return Dtype();
    if (key == "fortran_order") return Order();
    if (key == "shape") return Dims();
    return Bad(absl::StrCat("unknown key '", absl::CHexEscape(key), "'"));
  }

  absl::Status Dtype() {
    if (Peek("[")) return absl::UnimplementedError("elements that are structures");
    ASSIGN_OR_RETURN(const std::string descr, String());
    for (const NpyType& type : kNpyTypes) {
      if (type.descr != descr) continue;
      header_.dtype = type.dtype;
      has_dtype_ = true;
      return absl::OkStatus();
    }
    return absl::UnimplementedError(
        absl::StrCat("elements of numpy's type '", absl::CHexEscape(descr), "'"));
  }

  absl::Status Order() {
    header_.fortran_order = Take("True");
    if (!header_.fortran_order && !Take("False")) return Bad("fortran_order is not a bool");
    has_order_ = true;
    return absl::OkStatus();
  }

  absl::Status Dims() {
    if (!Take("(")) return Bad("shape is not a tuple");
    std::vector<int64_t> dims;
    while (!Take(")")) {
      const size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      int64_t dim;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &dim)) return Bad("a shape that is none");
      rest_.remove_prefix(digits);
      dims.push_back(dim);
      if (!Take(",") && !Peek(")")) return Bad("a shape that is none");
      rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    }
    if (!ElementCount(dims).has_value()) return Bad("too large a shape");
    header_.shape = Shape(std::move(dims));
    has_shape_ = true;
    return absl::OkStatus();
  }

  absl::string_view rest_;
  NpyHeader header_;
  bool has_dtype_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

std::string EncodeNpyHeader(const NpyHeader& header) {
  std::string dict = absl::StrCat("{'descr': '", FindType(header.dtype)->descr,
                                  "', 'fortran_order': ", header.fortran_order ? "True" : "False",
                                  ", 'shape': ", ShapeTuple(header.shape), ", }");
  const bool is_long = dict.size() + kAlignment > UINT16_MAX;
  const size_t length_bytes = is_long ? 4 : 2;
  const size_t before = kMagic.size() + 2 + length_bytes;
  const size_t end = (before + dict.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.resize(end - before - 1, ' ');
  dict.push_back('\n');
  return absl::StrCat(kMagic, LengthBytes(is_long ? 2 : 1, 1), LengthBytes(0, 1),
                      LengthBytes(dict.size(), length_bytes), dict);
}

absl::StatusOr<size_t> NpyHeaderSize(absl::string_view prefix) {
  absl::string_view rest = prefix;
  if (!absl::ConsumePrefix(&rest, kMagic) || prefix.size() < kNpyPrefixBytes) {
    return Bad("it does not begin with \\x93NUMPY");
  }
  const int major = static_cast<uint8_t>(rest[0]);
  if (major < 1 || major > 3) return Bad(absl::StrCat("expected version 1 to 3, found ", major));
  const size_t length_bytes = major == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(static_cast<uint8_t>(rest[2 + i])) << (8 * i);
  }
  return kMagic.size() + 2 + length_bytes + length;
}

absl::StatusOr<NpyHeader> DecodeNpyHeader(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const size_t size, NpyHeaderSize(bytes.substr(0, kNpyPrefixBytes)));
  if (bytes.size() != size) return Bad("truncated");
  const bool is_long = bytes[kMagic.size()] != 1;
  return DictReader(bytes.substr(kMagic.size() + (is_long ? 6 : 4))).Read();
}

}  // namespace keelson
