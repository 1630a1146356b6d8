#include "core/tensor_files/npz.h"

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/npz_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

class NpzTest : public testing::Test {
 protected:
  std::string Written(MemoryTensors* tensors) {
    const absl::Status status = WriteNpz(path_, tensors->List(), tensors);
    EXPECT_TRUE(status.ok()) << status;
    return ReadRawFile(path_);
  }

  const std::string directory_ = FreshDirectory();
  const std::string path_ = directory_ + "/model.npz";
};

TEST_F(NpzTest, EveryTypeComesBack) {
  MemoryTensors tensors = OneOfEachType();
  tensors.Add("of/complex128", BundleDtype::kComplex128, Shape({1}), std::string(16, '\x11'));
  Written(&tensors);
  auto file = NpzFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<TensorInfo> expected = tensors.List();
  const std::vector<TensorInfo> found = (*file)->List();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_EQ(found[i].shape, expected[i].shape);
    if (expected[i].dtype == BundleDtype::kBfloat16) continue;
    EXPECT_EQ(found[i].dtype, expected[i].dtype) << found[i].name;
    EXPECT_EQ(*(*file)->Read(found[i].name), *tensors.Read(found[i].name)) << found[i].name;
  }
}

TEST_F(NpzTest, Bfloat16BecomesFloat32) {
  MemoryTensors tensors;
  tensors.AddValues<uint16_t>("w", BundleDtype::kBfloat16, Shape({3}), {0x3f80, 0xc000, 0x7f80});
  Written(&tensors);
  auto file = NpzFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->List()[0].dtype, BundleDtype::kFloat32);
  EXPECT_EQ(*(*file)->Read("w"), std::string("\0\0\x80\x3f\0\0\0\xc0\0\0\x80\x7f", 12));
}

TEST_F(NpzTest, TheSameTensorsGiveTheSameBytes) {
  MemoryTensors tensors = OneOfEachType();
  const std::string first = Written(&tensors);
  EXPECT_EQ(Written(&tensors), first);
}

TEST_F(NpzTest, ArraysThatAreNotWantedMayBeOfAnyType) {
  std::string strings = EncodeNpyHeader({BundleDtype::kUint32, Shape({0})});
  strings.replace(strings.find("<u4"), 3, "<U3");
  WriteRawFile(path_, ZipArchive("names.npy", strings, /*compressed=*/false));
  EXPECT_EQ(NpzFile::Open(path_).status().code(), absl::StatusCode::kUnimplemented);
  std::vector<std::string> asked;
  const auto file = NpzFile::Open(path_, [&](absl::string_view name) {
    asked.emplace_back(name);
    return false;
  });
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(asked, testing::ElementsAre("names"));
  EXPECT_TRUE((*file)->List().empty());
}

TEST_F(NpzTest, WhatIsNoArchiveIsRefused) {
  for (const char* content : {"", "PK", "this is not a zip archive, though it is long enough"}) {
    WriteRawFile(path_, content);
    const absl::Status status = NpzFile::Open(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  }
  EXPECT_EQ(NpzFile::Open(directory_ + "/none.npz").status().code(), absl::StatusCode::kNotFound);
}

// An archive has checksums: what can be read is what was written.
TEST_F(NpzTest, SurvivesDamageAnywhere) {
  MemoryTensors tensors;
  tensors.AddValues<float>("w", BundleDtype::kFloat32, Shape({2, 2}), {1, 2, 3, 4});
  tensors.AddValues<int64_t>("n", BundleDtype::kInt64, Shape(), {5});
  const std::string content = Written(&tensors);
  for (size_t size = 0; size < content.size(); ++size) {
    ReplaceRawFile(path_, content.substr(0, size));
    EXPECT_FALSE(NpzFile::Open(path_).ok()) << size;
  }
  for (size_t i = 0; i < content.size(); ++i) {
    ReplaceRawFile(path_, Flipped(content, i, static_cast<int>(i % 8)));
    auto file = NpzFile::Open(path_);
    if (!file.ok()) continue;
    for (const TensorInfo& tensor : (*file)->List()) {
      const auto bytes = (*file)->Read(tensor.name);
      const auto written = tensors.Read(tensor.name);
      if (!bytes.ok() || !written.ok()) continue;
      EXPECT_EQ(*bytes, *written) << i;
    }
  }
}

// The header of an array of bytes that has `bytes` with this header.
std::string HeaderOfClaim(int64_t bytes) {
  NpyHeader header;
  header.dtype = BundleDtype::kUint8;
  const int64_t header_bytes = static_cast<int64_t>(EncodeNpyHeader(header).size());
  header.shape = Shape({bytes - header_bytes});
  return EncodeNpyHeader(header);
}

TEST_F(NpzTest, CompressedArraysExpandUpToALimit) {
  const std::string at_limit = HeaderOfClaim(1 << 30);
  WriteRawFile(path_, ZipArchive("w.npy", at_limit, true, 1 << 30));
  auto file = NpzFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Read("w").status().code(), absl::StatusCode::kDataLoss);
  WriteRawFile(path_, ZipArchive("w.npy", at_limit, true, (1 << 30) + 1));
  EXPECT_EQ(NpzFile::Open(path_).status(),
            absl::DataLossError(path_ + ": array 'w': expected at most 1073741824 bytes in "
                                        "compressed form, found 1073741825"));
}

TEST_F(NpzTest, StoredArraysAreNotLargerThanTheFile) {
  WriteRawFile(path_, ZipArchive("w.npy", HeaderOfClaim(5000), false, 5000));
  const std::string bytes = std::to_string(ReadRawFile(path_).size());
  EXPECT_EQ(NpzFile::Open(path_).status(),
            absl::DataLossError(path_ + ": array 'w': expected at most " + bytes +
                                " bytes, all of the file, found 5000"));
}

TEST_F(NpzTest, AnyNumberOfDimensionsOfOneCostsNothing) {
  NpyHeader header;
  header.dtype = BundleDtype::kUint8;
  header.fortran_order = true;
  std::vector<int64_t> dims(20000, 1);
  dims.front() = 100;
  dims.back() = 300;
  header.shape = Shape(dims);
  std::string member = EncodeNpyHeader(header);
  for (int i = 0; i < 100 * 300; ++i) member += static_cast<char>(i);
  WriteRawFile(path_, ZipArchive("w.npy", member, true));
  auto file = NpzFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto bytes = (*file)->Read("w");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->substr(0, 2), std::string("\0\x64", 2));
}

TEST_F(NpzTest, DamagedElementsAreFound) {
  MemoryTensors tensors;
  tensors.AddValues<float>("w", BundleDtype::kFloat32, Shape({2}), {1, 2});
  const std::string content = Written(&tensors);
  const size_t element = content.find(std::string("\0\0\x80\x3f", 4));
  ASSERT_NE(element, std::string::npos);
  WriteRawFile(path_, Flipped(content, element));
  auto file = NpzFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status = (*file)->Read("w").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("array 'w': CRC error"));
  EXPECT_EQ((*file)->Read("v").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(NpzTest, NothingIsLeftOfAFileThatCannotBeFinished) {
  MemoryTensors tensors;
  tensors.AddValues<float>("a", BundleDtype::kFloat32, Shape(), {1});
  tensors.AddValues<float>("b", BundleDtype::kFloat32, Shape(), {1});
  tensors.Break("b", absl::DataLossError("b is damaged"));
  WriteRawFile(path_, "old");
  const absl::Status status = WriteNpz(path_, tensors.List(), &tensors);
  EXPECT_EQ(status, absl::DataLossError("b is damaged"));
  EXPECT_EQ(ReadRawFile(path_), "old");
  EXPECT_EQ(ListDirectory(directory_)->size(), 1u);
}

TEST_F(NpzTest, MissingDirectoryIsAnError) {
  MemoryTensors tensors;
  tensors.AddValues<float>("a", BundleDtype::kFloat32, Shape(), {1});
  const std::string path = directory_ + "/none/model.npz";
  const absl::Status status = WriteNpz(path, tensors.List(), &tensors);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

}  // namespace
}  // namespace keelson
