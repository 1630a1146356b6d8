#include "core/tensor_files/npy_header.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

// A header of version 1.0 with this dictionary.
std::string Header(const std::string& dict) {
  return absl::StrCat(absl::string_view("\x93NUMPY\x01\x00", 8),
                      std::string(1, static_cast<char>(dict.size() & 0xff)),
                      std::string(1, static_cast<char>(dict.size() >> 8)), dict);
}

TEST(NpyHeaderTest, WritesWhatNumpyWrites) {
  const std::string bytes =
      EncodeNpyHeader({BundleDtype::kFloat32, Shape({2, 3}), /*fortran_order=*/false});
  // As numpy.lib.format.write_array_header_1_0 does, up to the number of spaces.
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.size(), 128u);
  EXPECT_EQ(bytes.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  EXPECT_EQ(bytes.substr(69), std::string(58, ' ') + "\n");
}

TEST(NpyHeaderTest, EveryTypeAndShapeComesBack) {
  const BundleDtype dtypes[] = {
      BundleDtype::kFloat32,   BundleDtype::kFloat64,   BundleDtype::kFloat16, BundleDtype::kBool,
      BundleDtype::kInt8,      BundleDtype::kInt16,     BundleDtype::kInt32,   BundleDtype::kInt64,
      BundleDtype::kUint8,     BundleDtype::kUint16,    BundleDtype::kUint32,  BundleDtype::kUint64,
      BundleDtype::kComplex64, BundleDtype::kComplex128};
  const Shape shapes[] = {Shape(), Shape({7}), Shape({0, 3}), Shape({2, 3, 4, 5}),
                          Shape(std::vector<int64_t>(40'000, 1))};
  for (const BundleDtype dtype : dtypes) {
    for (const Shape& shape : shapes) {
      const std::string bytes = EncodeNpyHeader({dtype, shape, /*fortran_order=*/true});
      EXPECT_EQ(bytes.size() % 64, 0u);
      const auto size = NpyHeaderSize(bytes.substr(0, kNpyPrefixBytes));
      ASSERT_TRUE(size.ok()) << size.status();
      EXPECT_EQ(*size, bytes.size());
      const auto header = DecodeNpyHeader(bytes);
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(header->dtype, dtype);
      EXPECT_EQ(header->shape, shape);
      EXPECT_TRUE(header->fortran_order);
    }
  }
}

TEST(NpyHeaderTest, ReadsOtherWritersSpelling) {
  for (const char* dict :
       {R"({"shape":(2,),"fortran_order":False,"descr":"<f8"})",
        "{ 'descr' : '<f8' , 'fortran_order' : False , 'shape' : ( 2 , ) , }  \n"}) {
    const auto header = DecodeNpyHeader(Header(dict));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->dtype, BundleDtype::kFloat64);
    EXPECT_EQ(header->shape, Shape({2}));
  }
}

TEST(NpyHeaderTest, WhatIsNoHeaderIsRefused) {
  const struct {
    std::string bytes;
    const char* text;
  } cases[] = {
      {"", "does not begin with"},
      {std::string("\x93NUMPY\x01\x00", 8), "does not begin with"},
      {"\x93NUMPX\x01\x01\x01\x01\x01\x01", "does not begin with"},
      {std::string("\x93NUMPY\x04\x00\x00\x00\x00\x00", 12), "expected version 1 to 3, found 4"},
      {Header("{'descr': '<f4'") + "x", "truncated"},
      {Header("[]          "), "no dictionary"},
      {Header("{'descr' '<f4'}"), "no value of 'descr'"},
      {Header("{'descr': <f4}"), "expected a string"},
      {Header("{'descr': '<f4}"), "a string without its end"},
      {Header("{'what': '<f4'}"), "unknown key 'what'"},
      {Header("{'descr': '<f4'  'shape': (2,)}"), "no end of the dictionary"},
      {Header("{'descr': '<f4', 'fortran_order': 1}"), "fortran_order is not a bool"},
      {Header("{'descr': '<f4', 'shape': [2]}"), "shape is not a tuple"},
      {Header("{'descr': '<f4', 'shape': (-2,)}"), "a shape that is none"},
      {Header("{'descr': '<f4', 'shape': (2 3)}"), "a shape that is none"},
      {Header("{'descr': '<f4', 'shape': (2,"), "a shape that is none"},
      {Header("{'descr': '<f4', 'shape': (99999999999999999999,)}"), "a shape that is none"},
      {Header("{'descr': '<f4', 'shape': (4294967296, 4294967296)}"), "too large a shape"},
      {Header("{'descr': '<f4', 'shape': (2,)}"), "expected descr, fortran_order and shape"},
      {Header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x"),
       "text after the dictionary"},
  };
  for (const auto& c : cases) {
    const absl::Status status = DecodeNpyHeader(c.bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

TEST(NpyHeaderTest, WhatCannotBeReadIsNamed) {
  for (const char* descr : {"'>f4'", "'|O'", "'<U7'", "'|S3'", "'<f16'"}) {
    const auto header = DecodeNpyHeader(
        Header(absl::StrCat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (2,), }")));
    EXPECT_EQ(header.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(header.status().message()), HasSubstr("elements of numpy's type '"));
  }
  const auto structures =
      DecodeNpyHeader(Header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}"));
  EXPECT_EQ(structures.status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace keelson
