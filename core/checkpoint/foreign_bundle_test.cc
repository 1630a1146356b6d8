// Bundles by a writer that shares nothing with Keelson's: records, keys and checksums made by hand
// as tensorflow/core/util/tensor_bundle describes them, the table by leveldb with its own settings
// (small blocks, snappy).
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"
#include "leveldb/env.h"
#include "leveldb/options.h"
#include "leveldb/table_builder.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Bit by bit.
uint32_t SlowCrc32c(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 127; value /= 128) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

// Fields of protobuf's wire format. Zero is left out.
std::string IntField(int number, int64_t value) {
  if (value == 0) return "";
  return Varint(static_cast<uint64_t>(number) * 8) + Varint(static_cast<uint64_t>(value));
}
std::string BytesField(int number, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(number) * 8 + 2) + Varint(bytes.size()) + bytes;
}

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string ShapeRecord(const std::vector<int64_t>& dims) {
  std::string record;
  for (const int64_t dim : dims) record += BytesField(2, IntField(1, dim));
  return record;
}

// (start, length) of each dimension; a length of -1 is the whole dimension.
using Box = std::vector<std::array<int64_t, 2>>;

std::string BoxRecord(const Box& box) {
  std::string record;
  for (const auto& [start, length] : box) {
    std::string extent;
    // The length is written even where it is 0, the only member of a oneof.
    if (length >= 0)
      extent = IntField(1, start) + Varint(2 * 8) + Varint(static_cast<uint64_t>(length));
    record += BytesField(1, extent);
  }
  return record;
}

// Numbers from -64 to 63 and names without 00 and ff, which is all that these tests need.
std::string BoxKey(const std::string& name, const Box& box) {
  std::string key = std::string("\x00", 1) + name + std::string("\x00\x01", 2);
  key += std::string("\x01", 1) + static_cast<char>(box.size());
  for (const auto& [start, length] : box) {
    key += static_cast<char>(0x80 ^ start);
    key += static_cast<char>(0x80 ^ length);
  }
  return key;
}

class ForeignWriter {
 public:
  explicit ForeignWriter(size_t num_shards) : data_(num_shards) {}

  void AddWhole(const std::string& name, int dtype, const std::vector<int64_t>& dims, size_t shard,
                const std::string& bytes) {
    table_[name] = DataRecord(dtype, dims, shard, bytes, SlowCrc32c(bytes));
  }
  void AddStrings(const std::string& name, const std::vector<int64_t>& dims, size_t shard,
                  const std::vector<std::string>& strings) {
    table_[name] = StringRecord(dims, shard, strings);
  }
  void AddSlice(const std::string& name, int dtype, const Box& box,
                const std::vector<int64_t>& dims, size_t shard, const std::string& bytes) {
    table_[BoxKey(name, box)] = DataRecord(dtype, dims, shard, bytes, SlowCrc32c(bytes));
    slices_[name] += BytesField(7, BoxRecord(box));
  }
  void AddStringSlice(const std::string& name, const Box& box, const std::vector<int64_t>& dims,
                      size_t shard, const std::vector<std::string>& strings) {
    table_[BoxKey(name, box)] = StringRecord(dims, shard, strings);
    slices_[name] += BytesField(7, BoxRecord(box));
  }
  // After its slices.
  void AddSliced(const std::string& name, int dtype, const std::vector<int64_t>& dims) {
    table_[name] = IntField(1, dtype) + BytesField(2, ShapeRecord(dims)) + slices_[name];
  }

  void Write(const std::string& prefix, const leveldb::Options& options) {
    const size_t num_shards = data_.size();
    table_[""] = IntField(1, num_shards) + IntField(2, endianness_) + BytesField(3, IntField(1, 1));
    for (size_t shard = 0; shard < num_shards; ++shard) {
      WriteRawFile(DataPath(prefix, shard, num_shards), data_[shard]);
    }
    leveldb::WritableFile* raw = nullptr;
    ASSERT_TRUE(leveldb::Env::Default()->NewWritableFile(IndexPath(prefix), &raw).ok());
    const std::unique_ptr<leveldb::WritableFile> file(raw);
    leveldb::TableBuilder builder(options, file.get());
    for (const auto& [key, value] : table_) builder.Add(key, value);
    ASSERT_TRUE(builder.Finish().ok());
    ASSERT_TRUE(file->Close().ok());
  }
  void set_big_endian() { endianness_ = 1; }

 private:
  std::string DataRecord(int dtype, const std::vector<int64_t>& dims, size_t shard,
                         const std::string& bytes, uint32_t crc) {
    std::string& data = data_[shard];
    std::string record = IntField(1, dtype) + BytesField(2, ShapeRecord(dims)) +
                         IntField(3, shard) + IntField(4, static_cast<int64_t>(data.size())) +
                         IntField(5, static_cast<int64_t>(bytes.size()));
    data += bytes;
    const uint32_t masked = Masked(crc);
    return record + Varint(6 * 8 + 5) + Raw<uint32_t>({masked});
  }
  std::string StringRecord(const std::vector<int64_t>& dims, size_t shard,
                           const std::vector<std::string>& strings) {
    std::string lengths, fixed, content;
    for (const std::string& s : strings) {
      lengths += Varint(s.size());
      fixed += Raw<uint32_t>({static_cast<uint32_t>(s.size())});
      content += s;
    }
    const std::string checksum = Raw<uint32_t>({Masked(SlowCrc32c(fixed))});
    return DataRecord(7, dims, shard, lengths + checksum + content,
                      SlowCrc32c(fixed + checksum + content));
  }

  std::vector<std::string> data_;
  std::map<std::string, std::string> table_;
  std::map<std::string, std::string> slices_;
  int endianness_ = 0;
};

class ForeignBundleTest : public testing::Test {
 protected:
  std::unique_ptr<BundleReader> Open(ForeignWriter* writer,
                                     const leveldb::Options& options = leveldb::Options()) {
    writer->Write(prefix_, options);
    auto reader = BundleReader::Open(prefix_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->VerifyAll(), absl::OkStatus());
    return *std::move(reader);
  }

  const std::string prefix_ = JoinPath(FreshDirectory(), "model.ckpt-7");
};

TEST_F(ForeignBundleTest, SnappyBlocksOfAnySize) {
  ASSERT_EQ(leveldb::Options().compression, leveldb::kSnappyCompression);
  int64_t compressed_size = 0;
  for (const size_t block_size : {64, 4096, 1 << 20}) {
    ForeignWriter writer(1);
    for (int i = 0; i < 300; ++i) {
      const std::string number = std::to_string(i);
      writer.AddWhole("layer_" + number + "/kernel", 1, {2}, 0,
                      Raw<float>({static_cast<float>(i), 0.5f}));
    }
    leveldb::Options options;
    options.block_size = block_size;
    options.block_restart_interval = 3;
    const auto reader = Open(&writer, options);
    EXPECT_EQ(reader->List().size(), 300u);
    for (const int i : {0, 7, 299}) {
      const auto tensor = reader->ReadTensor("layer_" + std::to_string(i) + "/kernel");
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      EXPECT_THAT(tensor->span(), ElementsAre(static_cast<float>(i), 0.5f));
    }
    compressed_size = static_cast<int64_t>(ReadRawFile(IndexPath(prefix_)).size());
  }
  // Less than the names alone: it really was compressed.
  EXPECT_LT(compressed_size, 300 * 16);
}

TEST_F(ForeignBundleTest, DamageInACompressedIndexIsFound) {
  ForeignWriter writer(1);
  for (int i = 0; i < 5; ++i) writer.AddWhole("name_" + std::to_string(i), 3, {}, 0, Raw<int>({i}));
  Open(&writer);
  const std::string good = ReadRawFile(IndexPath(prefix_));
  for (size_t i = 0; i < good.size(); ++i) {
    WriteRawFile(IndexPath(prefix_), Flipped(good, i, 5));
    const absl::Status status = BundleReader::Open(prefix_).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << i << " " << status;
    ASSERT_THAT(std::string(status.message()), HasSubstr(IndexPath(prefix_)));
  }
}

TEST_F(ForeignBundleTest, EveryTypeOfNumber) {
  ForeignWriter writer(2);
  writer.AddWhole("float", 1, {3}, 0, Raw<float>({1, -2, 3}));
  writer.AddWhole("double", 2, {3}, 1, Raw<double>({1, -2, 3}));
  writer.AddWhole("int32", 3, {3}, 0, Raw<int32_t>({1, -2, 3}));
  writer.AddWhole("uint8", 4, {3}, 0, Raw<uint8_t>({1, 254, 3}));
  writer.AddWhole("int16", 5, {3}, 0, Raw<int16_t>({1, -2, 3}));
  writer.AddWhole("int8", 6, {3}, 0, Raw<int8_t>({1, -2, 3}));
  writer.AddWhole("int64", 9, {3}, 1, Raw<int64_t>({1, -2, 3}));
  writer.AddWhole("bool", 10, {3}, 0, std::string("\x01\x00\x01", 3));
  writer.AddWhole("bfloat16", 14, {3}, 1, Raw<uint16_t>({0x3f80, 0xc000, 0x4040}));
  writer.AddWhole("uint16", 17, {3}, 0, Raw<uint16_t>({1, 65534, 3}));
  writer.AddWhole("half", 19, {3}, 0, Raw<uint16_t>({0x3c00, 0xc000, 0x4200}));
  writer.AddWhole("uint32", 22, {3}, 0, Raw<uint32_t>({1, 2, 3}));
  writer.AddWhole("uint64", 23, {3}, 0, Raw<uint64_t>({1, 2, 3}));
  const auto reader = Open(&writer);
  for (const char* name :
       {"float", "double", "int32", "int16", "int8", "int64", "bfloat16", "half"}) {
    const auto tensor = reader->ReadTensor(name);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_THAT(tensor->span(), ElementsAre(1, -2, 3)) << name;
  }
  EXPECT_THAT(reader->ReadTensor("uint8")->span(), ElementsAre(1, 254, 3));
  EXPECT_THAT(reader->ReadTensor("uint16")->span(), ElementsAre(1, 65534, 3));
  EXPECT_THAT(reader->ReadTensor("uint32")->span(), ElementsAre(1, 2, 3));
  EXPECT_THAT(reader->ReadTensor("uint64")->span(), ElementsAre(1, 2, 3));
  EXPECT_THAT(reader->ReadTensor("bool")->span(), ElementsAre(1, 0, 1));
  float last_two[2];
  ASSERT_EQ(reader->ReadElements("double", 1, absl::MakeSpan(last_two)), absl::OkStatus());
  EXPECT_THAT(last_two, ElementsAre(-2, 3));
}

TEST_F(ForeignBundleTest, BytesAreThoseThatWereStored) {
  ForeignWriter writer(1);
  writer.AddWhole("double", 2, {2}, 0, Raw<double>({0.1, -2}));
  writer.AddWhole("complex", 18, {1}, 0, Raw<double>({1, 2}));
  writer.AddWhole("step", 3, {}, 0, Raw<int32_t>({-9}));
  writer.AddWhole("none", 9, {0, 4}, 0, "");
  const auto reader = Open(&writer);
  EXPECT_EQ(*reader->ReadBytes("double"), Raw<double>({0.1, -2}));
  EXPECT_EQ(*reader->ReadBytes("complex"), Raw<double>({1, 2}));
  EXPECT_EQ(*reader->ReadBytes("none"), "");
  EXPECT_EQ(*reader->ReadInt64("step"), -9);
  const absl::Status status = reader->ReadTensor("complex").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has type complex128, expected a number"));
}

// [4, 5] as two columns, one "full" in rows, over two data files; then as four tiles.
TEST_F(ForeignBundleTest, SlicesInTwoDimensions) {
  ForeignWriter writer(2);
  writer.AddSlice("columns", 9, {{0, -1}, {0, 2}}, {4, 2}, 1,
                  Raw<int64_t>({0, 1, 5, 6, 10, 11, 15, 16}));
  writer.AddSlice("columns", 9, {{0, 4}, {2, 3}}, {4, 3}, 0,
                  Raw<int64_t>({2, 3, 4, 7, 8, 9, 12, 13, 14, 17, 18, 19}));
  writer.AddSliced("columns", 9, {4, 5});
  writer.AddSlice("tiles", 1, {{0, 1}, {0, 2}}, {1, 2}, 0, Raw<float>({0, 1}));
  writer.AddSlice("tiles", 1, {{0, 1}, {2, 3}}, {1, 3}, 1, Raw<float>({2, 3, 4}));
  writer.AddSlice("tiles", 1, {{1, 3}, {0, 4}}, {3, 4}, 0,
                  Raw<float>({5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18}));
  writer.AddSlice("tiles", 1, {{1, 3}, {4, 1}}, {3, 1}, 1, Raw<float>({9, 14, 19}));
  writer.AddSliced("tiles", 1, {4, 5});
  const auto reader = Open(&writer);
  EXPECT_EQ(*reader->ReadBytes("columns"),
            Raw<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  for (const char* name : {"columns", "tiles"}) {
    for (int64_t first = 0; first < 20; ++first) {
      for (int64_t size = 0; size <= 20 - first; ++size) {
        std::vector<float> part(size);
        ASSERT_EQ(reader->ReadElements(name, first, absl::MakeSpan(part)), absl::OkStatus());
        ASSERT_EQ(part, Iota(size, static_cast<float>(first))) << name << " " << first;
      }
    }
  }
}

TEST_F(ForeignBundleTest, StringsOfEveryShape) {
  ForeignWriter writer(2);
  writer.AddStrings("names", {2, 2}, 0, {"a", "", std::string(300, 'x'), std::string("\0z", 2)});
  writer.AddStrings("none", {0}, 1, {});
  writer.AddStrings("scalar", {}, 1, {"graph"});
  writer.AddStringSlice("sliced", {{0, 2}, {1, 1}}, {2, 1}, 1, {"b", "d"});
  writer.AddStringSlice("sliced", {{0, 2}, {0, 1}}, {2, 1}, 0, {"a", "c"});
  writer.AddSliced("sliced", 7, {2, 2});
  const auto reader = Open(&writer);
  EXPECT_THAT(*reader->ReadStrings("names"),
              ElementsAre("a", "", std::string(300, 'x'), std::string("\0z", 2)));
  EXPECT_THAT(*reader->ReadStrings("none"), testing::IsEmpty());
  EXPECT_THAT(*reader->ReadStrings("sliced"), ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(*reader->ReadString("scalar"), "graph");
  EXPECT_EQ(reader->ReadString("names").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ForeignBundleTest, ABigEndianBundleIsRefused) {
  ForeignWriter writer(1);
  writer.AddWhole("w", 1, {1}, 0, Raw<float>({1}));
  writer.set_big_endian();
  writer.Write(prefix_, leveldb::Options());
  const absl::Status status = BundleReader::Open(prefix_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            IndexPath(prefix_) + ": the bundle is big-endian; only little-endian is supported");
}

// Keelson's index of the same tensors has the same records.
TEST_F(ForeignBundleTest, KeelsonWritesTheSameRecords) {
  ForeignWriter foreign(2);
  foreign.AddSlice("w", 1, {{0, 4}, {0, 3}}, {4, 3}, 0, Raw(Iota(12)));
  foreign.AddWhole("global_step", 9, {}, 0, Raw<int64_t>({100}));
  foreign.AddSlice("w", 1, {{4, 6}, {0, 3}}, {6, 3}, 1, Raw(Iota(18, 12)));
  foreign.AddSliced("w", 1, {10, 3});
  foreign.AddWhole("b", 1, {4}, 1, Raw(Iota(4)));
  std::string bytes(256, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  foreign.AddStrings("state", {}, 1, {bytes});
  // The settings of TensorFlow's table.
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = 262144;
  foreign.Write(prefix_, options);
  const std::string own = JoinPath(FreshDirectory(), "model.ckpt-7");
  WriteSmallBundle(own);
  for (const size_t shard : {0, 1}) {
    EXPECT_EQ(ReadRawFile(DataPath(own, shard, 2)), ReadRawFile(DataPath(prefix_, shard, 2)));
  }
  EXPECT_EQ(ReadRawFile(IndexPath(own)), ReadRawFile(IndexPath(prefix_)));
}

}  // namespace
}  // namespace keelson
