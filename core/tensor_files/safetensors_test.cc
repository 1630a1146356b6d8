#include "core/tensor_files/safetensors.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

std::string LengthBytes(uint64_t length) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length));
}

// A file with this header and `data_bytes` zeros.
std::string File(const std::string& header, size_t data_bytes) {
  return absl::StrCat(LengthBytes(header.size()), header, std::string(data_bytes, '\0'));
}

class SafetensorsTest : public testing::Test {
 protected:
  absl::Status OpenStatus(const std::string& content) {
    ReplaceRawFile(path_, content);
    return SafetensorsFile::Open(path_).status();
  }

  const std::string directory_ = FreshDirectory();
  const std::string path_ = directory_ + "/model.safetensors";
};

TEST_F(SafetensorsTest, EveryTypeComesBack) {
  MemoryTensors tensors = OneOfEachType();
  ASSERT_TRUE(WriteSafetensors(path_, tensors.List(), {}, &tensors).ok());
  auto file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<TensorInfo> expected = tensors.List();
  const std::vector<TensorInfo> found = (*file)->List();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_EQ(found[i].dtype, expected[i].dtype) << found[i].name;
    EXPECT_EQ(found[i].shape, expected[i].shape) << found[i].name;
    EXPECT_EQ(*(*file)->Read(found[i].name), *tensors.Read(found[i].name)) << found[i].name;
  }
}

TEST_F(SafetensorsTest, PartsAreReadAsFloats) {
  MemoryTensors tensors;
  tensors.AddValues<double>("w", BundleDtype::kFloat64, Shape({2, 3}), {0, 1, 2, 3, 4, 0.1});
  tensors.AddValues<float>("z", BundleDtype::kComplex64, Shape({1}), {1, 2});
  ASSERT_TRUE(WriteSafetensors(path_, tensors.List(), {}, &tensors).ok());
  auto file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->reads_parts());
  std::vector<float> part(3);
  ASSERT_EQ((*file)->ReadFloats("w", 3, absl::MakeSpan(part)), absl::OkStatus());
  EXPECT_EQ(part, (std::vector<float>{3, 4, 0.1f}));
  EXPECT_EQ((*file)->ReadFloats("none", 0, absl::MakeSpan(part)).code(),
            absl::StatusCode::kNotFound);
  for (const int64_t first : {-1, 4}) {
    EXPECT_EQ((*file)->ReadFloats("w", first, absl::MakeSpan(part)).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ((*file)->ReadFloats("z", 0, absl::MakeSpan(part).first(1)).message(),
            absl::StrCat(path_, ": tensor 'z': expected numbers 0 to 1, found complex64 [1]"));
}

// The bytes that safetensors' own writer gives for these two tensors.
TEST_F(SafetensorsTest, WritesTheFormat) {
  MemoryTensors tensors;
  tensors.AddValues<float>("w", BundleDtype::kFloat32, Shape({1, 2}), {1.0f, 2.0f});
  tensors.AddValues<uint8_t>("a", BundleDtype::kUint8, Shape({1}), {7});
  ASSERT_TRUE(WriteSafetensors(path_, tensors.List(), {{"step", "3"}}, &tensors).ok());
  const std::string content = ReadRawFile(path_);
  uint64_t length;
  ASSERT_GE(content.size(), sizeof(length));
  std::memcpy(&length, content.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0u);
  std::string header = content.substr(8, length);
  header.erase(header.find_last_not_of(' ') + 1);
  EXPECT_EQ(header,
            R"({"__metadata__":{"step":"3"},"a":{"data_offsets":[8,9],"dtype":"U8","shape":[1]},)"
            R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[1,2]}})");
  EXPECT_EQ(content.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\x40\x07", 9));
}

TEST_F(SafetensorsTest, ReadsAHandMadeFile) {
  const std::string header =
      R"({"b":{"dtype":"F32","shape":[],"data_offsets":[2,6]},"a":{"dtype":"BF16","shape":[1],)"
      R"("data_offsets":[0,2]},"__metadata__":{"format":"pt"}}   )";
  ASSERT_TRUE(OpenStatus(LengthBytes(header.size()) + header + "\x80\x3f\x01\x02\x03\x04").ok());
  auto file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->List().size(), 2u);
  EXPECT_EQ(*(*file)->Read("a"), "\x80\x3f");
  EXPECT_EQ(*(*file)->Read("b"), "\x01\x02\x03\x04");
  EXPECT_EQ((*file)->Read("c").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SafetensorsTest, DamagedHeadersAreRefused) {
  const std::string tensor = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string deep = absl::StrCat(std::string(1000000, '['), std::string(1000000, ']'));
  const struct {
    std::string content;
    const char* text;
  } cases[] = {
      {File(R"({"a":1e999})", 0), "a number beyond those of 64 bits"},
      {File(absl::StrCat(R"({"a":{"dtype":)", deep, "}}"), 0), "tensor 'a': has no dtype"},
      {File(absl::StrCat(R"({"a":{"dtype":"F32","shape":)", deep, "}}"), 0),
       "tensor 'a': has no shape"},
      {File(absl::StrCat(R"({"a":)", deep, "}"), 0), "tensor 'a': is not described by an object"},
      {"", "it has 0 bytes"},
      {"1234567", "it has 7 bytes"},
      {LengthBytes(100) + "{}", "expected a header of 100 bytes, found 2 until the end"},
      {LengthBytes(100'000'001) + "{}", "at most 100000000 bytes, found 100000001"},
      {LengthBytes(UINT64_MAX) + "{}", "at most 100000000 bytes"},
      {File("", 0), "not JSON"},
      {File("{", 0), "not JSON, at its byte"},
      {File("[]", 0), "not a JSON object"},
      {File("{\"\xff\":1}", 0), "not JSON"},
      {File(R"({"a":1})", 0), "tensor 'a': is not described by an object"},
      {File(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "tensor 'a': has no dtype"},
      {File(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})", 8), "has no dtype"},
      {File(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "has no shape"},
      {File(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "has no shape"},
      {File(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8), "has no shape"},
      {File(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8),
       "has no shape"},
      {File(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
       "too large a shape"},
      {File(R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0),
       "too large a shape"},
      {File(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "has no data_offsets"},
      {File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8), "has no data_offsets"},
      {File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "has no data_offsets"},
      {File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
       "expected 8 bytes for float32 [2], found 4"},
      {File(absl::StrCat("{", tensor, "}"), 7), "expected 8 bytes of data, found 7"},
      {File(absl::StrCat("{", tensor, "}"), 9), "expected 8 bytes of data, found 9"},
      {File(absl::StrCat("{", tensor, ",", tensor, "}"), 8), "tensor 'a': is listed twice"},
      {File(absl::StrCat("{", tensor, R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[7,11]}})"),
            11),
       "tensor 'b': expected to begin at byte 8 of the data, found 7, an overlap"},
      {File(absl::StrCat("{", tensor, R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[9,13]}})"),
            13),
       "tensor 'b': expected to begin at byte 8 of the data, found 9, a gap"},
  };
  for (const auto& c : cases) {
    const absl::Status status = OpenStatus(c.content);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

TEST_F(SafetensorsTest, UnknownTypesAreNamed) {
  const absl::Status status =
      OpenStatus(File(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,2]}})", 2));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 'a': elements of type F4"));
}

// Whatever is cut off or changed, the file is refused or read without harm.
TEST_F(SafetensorsTest, SurvivesDamageAnywhere) {
  MemoryTensors tensors;
  tensors.AddValues<float>("w", BundleDtype::kFloat32, Shape({2, 2}), {1, 2, 3, 4});
  tensors.AddValues<int64_t>("n", BundleDtype::kInt64, Shape(), {5});
  ASSERT_TRUE(WriteSafetensors(path_, tensors.List(), {}, &tensors).ok());
  const std::string content = ReadRawFile(path_);
  for (size_t size = 0; size < content.size(); ++size) {
    EXPECT_FALSE(OpenStatus(content.substr(0, size)).ok()) << size;
  }
  for (size_t i = 0; i < content.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      ReplaceRawFile(path_, Flipped(content, i, bit));
      auto file = SafetensorsFile::Open(path_);
      if (!file.ok()) continue;
      for (const TensorInfo& tensor : (*file)->List()) {
        const auto bytes = (*file)->Read(tensor.name);
        ASSERT_TRUE(bytes.ok());
        EXPECT_EQ(static_cast<int64_t>(bytes->size()),
                  tensor.shape.num_elements() * DtypeSize(tensor.dtype));
      }
    }
  }
}

TEST_F(SafetensorsTest, WhatTheFormatLacksIsRefused) {
  MemoryTensors complex;
  complex.Add("c", BundleDtype::kComplex128, Shape({1}), std::string(16, '\0'));
  absl::Status status = WriteSafetensors(path_, complex.List(), {}, &complex);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("tensor 'c': safetensors has no complex128"));
  for (const char* name : {"__metadata__", "\xff"}) {
    MemoryTensors tensors;
    tensors.AddValues<float>(name, BundleDtype::kFloat32, Shape(), {1});
    status = WriteSafetensors(path_, tensors.List(), {}, &tensors);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_TRUE(ListDirectory(directory_)->empty());
}

TEST_F(SafetensorsTest, NothingIsLeftOfAFileThatCannotBeFinished) {
  MemoryTensors tensors;
  tensors.AddValues<float>("a", BundleDtype::kFloat32, Shape(), {1});
  tensors.AddValues<float>("b", BundleDtype::kFloat32, Shape(), {1});
  tensors.Break("b", absl::DataLossError("b is damaged"));
  WriteRawFile(path_, "old");
  EXPECT_EQ(WriteSafetensors(path_, tensors.List(), {}, &tensors).message(), "b is damaged");
  EXPECT_EQ(ReadRawFile(path_), "old");
  EXPECT_EQ(ListDirectory(directory_)->size(), 1u);
}

TEST_F(SafetensorsTest, MissingDirectoryIsAnError) {
  MemoryTensors tensors;
  tensors.AddValues<float>("a", BundleDtype::kFloat32, Shape(), {1});
  const std::string path = directory_ + "/none/model.safetensors";
  EXPECT_EQ(WriteSafetensors(path, tensors.List(), {}, &tensors).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(SafetensorsFile::Open(path).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace keelson
