#include "core/checkpoint/bundle_reader.h"

#include <thread>

#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/ordered_code.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::unique_ptr<BundleReader> OpenOrDie(const std::string& prefix) {
  auto reader = BundleReader::Open(prefix);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

class BundleReaderTest : public testing::Test {
 protected:
  const std::string prefix_ = JoinPath(FreshDirectory(), "model.ckpt-100");
};

TEST_F(BundleReaderTest, ListsTensorsWithoutTheirSlices) {
  WriteSmallBundle(prefix_);
  const auto reader = OpenOrDie(prefix_);
  std::vector<std::string> lines;
  for (const TensorInfo& info : reader->List()) {
    lines.push_back(info.name + " " + DtypeName(info.dtype) + " " + info.shape.ToString());
  }
  EXPECT_THAT(lines, ElementsAre("b float32 [4]", "global_step int64 []", "state string []",
                                 "w float32 [10, 3]"));
  EXPECT_TRUE(reader->Contains("w"));
  EXPECT_FALSE(reader->Contains("v"));
  EXPECT_FALSE(reader->Contains(""));
}

TEST_F(BundleReaderTest, ReadsWhatWasWritten) {
  WriteSmallBundle(prefix_);
  const auto reader = OpenOrDie(prefix_);
  EXPECT_EQ(*reader->ReadInt64("global_step"), 100);
  EXPECT_THAT(reader->ReadTensor("b")->span(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(reader->ReadTensor("w")->span(), ElementsAreArray(Iota(30)));
  const auto state = reader->ReadString("state");
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->size(), 256u);
  EXPECT_EQ((*state)[255], '\xff');
  EXPECT_TRUE(reader->VerifyAll().ok());
}

// Any number of stored slices, any range of rows.
TEST_F(BundleReaderTest, EveryRowRangeOfEverySharding) {
  const Shape shape({12, 2});
  for (const int num_shards : {1, 2, 3, 5}) {
    std::vector<BundleIndexEntry> entries;
    for (int shard = 0; shard < num_shards; ++shard) {
      auto writer = NewWriter(prefix_, shard, num_shards);
      AddIotaRows(writer.get(), "w", shape, 12 * shard / num_shards, 12 * (shard + 1) / num_shards);
      AppendEntries(writer.get(), &entries);
    }
    ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, num_shards, std::move(entries)).ok());
    for (int64_t begin = 0; begin <= 12; ++begin) {
      for (int64_t end = begin; end <= 12; ++end) {
        // A new reader for each: none of the checksums is verified yet.
        std::vector<float> rows(2 * (end - begin));
        ASSERT_TRUE(OpenOrDie(prefix_)->ReadElements("w", 2 * begin, absl::MakeSpan(rows)).ok());
        ASSERT_THAT(rows, ElementsAreArray(Iota(2 * (end - begin), static_cast<float>(2 * begin))));
      }
    }
  }
}

TEST_F(BundleReaderTest, EntriesLargerThanAChunk) {
  const Shape shape({3000, 500});  // 6 MB
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->AddTensor("w", shape, Iota(shape.num_elements())).ok());
  std::vector<BundleIndexEntry> entries;
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, std::move(entries)).ok());
  const auto reader = OpenOrDie(prefix_);
  std::vector<float> rows(1000);
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(reader->ReadElements("w", 1250000, absl::MakeSpan(rows)).ok());
    EXPECT_EQ(rows, Iota(1000, 1250000.0f));
  }
  const auto tensor = reader->ReadTensor("w");
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->span()[1499999], 1499999.0f);
}

TEST_F(BundleReaderTest, ScalarsAndEmptyTensors) {
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->AddFloatScalar("scalar", 0.5f).ok());
  ASSERT_TRUE(writer->AddTensor("none", Shape({0, 3}), {}).ok());
  ASSERT_TRUE(writer->AddString("empty", "").ok());
  std::vector<BundleIndexEntry> entries;
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, std::move(entries)).ok());
  const auto reader = OpenOrDie(prefix_);
  float value = 0;
  EXPECT_TRUE(reader->ReadElements("scalar", 0, absl::MakeSpan(&value, 1)).ok());
  EXPECT_EQ(value, 0.5f);
  EXPECT_TRUE(reader->ReadElements("scalar", 0, {}).ok());
  EXPECT_EQ(reader->ReadTensor("none")->shape(), Shape({0, 3}));
  EXPECT_EQ(*reader->ReadString("empty"), "");
  EXPECT_TRUE(reader->VerifyAll().ok());
}

TEST_F(BundleReaderTest, ADeletedBundleStaysReadable) {
  WriteSmallBundle(prefix_);
  const auto reader = OpenOrDie(prefix_);
  for (const int shard : {0, 1}) ASSERT_TRUE(RemoveFile(DataPath(prefix_, shard, 2)).ok());
  ASSERT_TRUE(RemoveFile(IndexPath(prefix_)).ok());
  EXPECT_TRUE(reader->ReadTensor("w").ok());
}

TEST_F(BundleReaderTest, ManyThreads) {
  WriteSmallBundle(prefix_);
  const auto reader = OpenOrDie(prefix_);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&reader, t] {
      std::vector<float> rows(15);
      for (int64_t begin = t % 2; begin + 5 <= 10; ++begin) {
        ASSERT_TRUE(reader->ReadElements("w", 3 * begin, absl::MakeSpan(rows)).ok());
        ASSERT_EQ(rows, Iota(15, static_cast<float>(3 * begin)));
      }
      ASSERT_TRUE(reader->VerifyAll().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(BundleReaderTest, AnswersForWrongQuestions) {
  WriteSmallBundle(prefix_);
  const auto reader = OpenOrDie(prefix_);
  const std::string index = IndexPath(prefix_);
  float values[6];
  ExpectError(reader->ReadTensor("v").status(), absl::StatusCode::kNotFound,
              index + ": no tensor 'v'");
  ExpectError(reader->ReadInt64("w").status(), absl::StatusCode::kInvalidArgument,
              index + ": tensor 'w' has type float32, expected int64");
  ExpectError(reader->ReadTensor("state").status(), absl::StatusCode::kInvalidArgument,
              "has type string, expected a number");
  for (const int64_t first : {-1, 25, 31}) {
    ExpectError(reader->ReadElements("w", first, absl::MakeSpan(values)),
                absl::StatusCode::kInvalidArgument, "tensor 'w' of shape [10, 3]: elements [");
  }
  ExpectError(reader->ReadBytes("state").status(), absl::StatusCode::kInvalidArgument,
              "has type string, expected one of fixed size");
  ExpectError(reader->ReadStrings("w").status(), absl::StatusCode::kInvalidArgument,
              "has type float32, expected string");
  for (const absl::Status& status :
       {reader->Info("v").status(), reader->ReadBytes("v").status(),
        reader->ReadStrings("v").status(), reader->ReadElements("v", 0, {})}) {
    ExpectError(status, absl::StatusCode::kNotFound, index + ": no tensor 'v'");
  }
}

// A bundle as another program may have written it: hand-made records over one data file.
class BadBundleTest : public BundleReaderTest {
 protected:
  BadBundleTest() { header_.set_num_shards(1); }

  v1::BundleEntry Entry(BundleDtype dtype, const Shape& shape, int64_t offset, int64_t size) {
    v1::BundleEntry entry;
    entry.set_dtype(static_cast<int32_t>(dtype));
    *entry.mutable_shape() = ToProto(shape);
    entry.set_offset(offset);
    entry.set_size(size);
    entry.set_crc32c(MaskCrc32c(Crc32c(absl::string_view(data_).substr(offset, size))));
    return entry;
  }
  void SetData(const std::vector<float>& values) {
    data_.assign(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  }
  void AddSlice(const TensorSliceSpec& slice, const Shape& shape, int64_t offset) {
    table_[EncodeSliceKey("w", slice)] =
        Entry(BundleDtype::kFloat32, shape, offset, 4 * shape.num_elements()).SerializeAsString();
    *full_.add_slices() = ToProto(slice);
  }
  absl::StatusOr<std::unique_ptr<BundleReader>> Open() {
    if (!full_.slices().empty()) table_["w"] = full_.SerializeAsString();
    table_[""] = header_.SerializeAsString();
    EXPECT_TRUE(WriteIndexTable(FileSystem::Real(), IndexPath(prefix_), table_).ok());
    WriteRawFile(DataPath(prefix_, 0, 1), data_);
    return BundleReader::Open(prefix_);
  }
  void ExpectOpenFails(absl::StatusCode code, const std::string& text) {
    const absl::Status status = Open().status();
    ExpectError(status, code, text);
    EXPECT_THAT(std::string(status.message()), HasSubstr(IndexPath(prefix_)));
  }

  v1::BundleHeader header_;
  std::string data_;
  IndexTable table_;
  v1::BundleEntry full_;
};

// [4, 3] as columns 0-1 and column 2, the second one with a "full" row extent.
TEST_F(BadBundleTest, SlicesAlongAnotherAxis) {
  full_ = Entry(BundleDtype::kFloat32, Shape({4, 3}), 0, 0);
  SetData({0, 1, 3, 4, 6, 7, 9, 10, 2, 5, 8, 11});
  AddSlice({{{0, 4}, {0, 2}}}, Shape({4, 2}), 0);
  AddSlice({{{}, {2, 1}}}, Shape({4, 1}), 32);
  const auto reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->ReadTensor("w")->span(), ElementsAreArray(Iota(12)));
  std::vector<float> rows(6);
  ASSERT_TRUE((*reader)->ReadElements("w", 3, absl::MakeSpan(rows)).ok());
  EXPECT_THAT(rows, ElementsAreArray(Iota(6, 3)));
}

// [2, 2, 3], cut once along each of the first two axes.
TEST_F(BadBundleTest, BoxesOfThreeDimensions) {
  full_ = Entry(BundleDtype::kFloat32, Shape({2, 2, 3}), 0, 0);
  SetData({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  AddSlice({{{0, 1}, {}, {}}}, Shape({1, 2, 3}), 0);
  AddSlice({{{1, 1}, {0, 1}, {}}}, Shape({1, 1, 3}), 24);
  AddSlice({{{1, 1}, {1, 1}, {}}}, Shape({1, 1, 3}), 36);
  const auto reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->ReadTensor("w")->span(), ElementsAreArray(Iota(12)));
}

TEST_F(BadBundleTest, AVariantIsListedButNeitherReadNorVerified) {
  data_ = std::string(6, 'x');
  table_["v"] = Entry(BundleDtype::kVariant, Shape({3}), 0, 6).SerializeAsString();
  const auto reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->List()[0].name, "v");
  ExpectError((*reader)->VerifyAll(), absl::StatusCode::kUnimplemented, "variant");
  ExpectError((*reader)->ReadTensor("v").status(), absl::StatusCode::kUnimplemented,
              "tensor 'v' has type variant, expected a number");
  ExpectError((*reader)->ReadBytes("v").status(), absl::StatusCode::kUnimplemented,
              "tensor 'v' has type variant, expected one of fixed size");
}

TEST_F(BundleReaderTest, AnUnknownTypeIsVerifiedAndReadAsItLiesInTheFile) {
  const std::string prefix = FreshDirectory() + "/b";
  WriteRawBundle(prefix, {{"v", static_cast<BundleDtype>(99), Shape({3}), "abcdef"},
                          {"q", BundleDtype::kQuint8, Shape({2}), "xy"},
                          {"f", BundleDtype::kFloat8E5m2, Shape({2}), "uv"}});
  const auto reader = BundleReader::Open(prefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->VerifyAll(), absl::OkStatus());
  EXPECT_EQ(*(*reader)->ReadBytes("v"), "abcdef");
  EXPECT_EQ(*(*reader)->ReadBytes("q"), "xy");
  ExpectError((*reader)->ReadTensor("v").status(), absl::StatusCode::kUnimplemented, "dtype 99");
  ExpectError((*reader)->ReadTensor("f").status(), absl::StatusCode::kInvalidArgument,
              "tensor 'f' has type float8_e5m2, expected a number");
  const std::string data = DataPath(prefix, 0, 1);
  WriteRawFile(data, Flipped(ReadRawFile(data), 4));
  EXPECT_EQ((*BundleReader::Open(prefix))->ReadBytes("v").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(BadBundleTest, ReadInt64WantsOneElement) {
  data_ = std::string(16, '\0');
  table_["x"] = Entry(BundleDtype::kInt64, Shape({2}), 0, 16).SerializeAsString();
  const auto reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  ExpectError((*reader)->ReadInt64("x").status(), absl::StatusCode::kInvalidArgument,
              "tensor 'x' has shape [2], expected one element");
}

TEST_F(BadBundleTest, RefusesBigEndianAndNewerBundles) {
  header_.set_endianness(1);
  ExpectOpenFails(absl::StatusCode::kUnimplemented, "big-endian");
  header_.set_endianness(0);
  header_.mutable_version()->set_min_consumer(2);
  ExpectOpenFails(absl::StatusCode::kUnimplemented, "reader of version 2");
}

TEST_F(BadBundleTest, ContradictionsAreDataLoss) {
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  SetData({1, 2, 3});
  v1::BundleEntry entry = Entry(BundleDtype::kFloat32, Shape({3}), 0, 12);
  const auto with = [&](auto change) {
    v1::BundleEntry changed = entry;
    change(&changed);
    table_["w"] = changed.SerializeAsString();
  };
  with([](v1::BundleEntry* e) { e->set_size(8); });
  ExpectOpenFails(kLoss, "tensor 'w': is stored in 8 bytes from 0, expected 12");
  with([](v1::BundleEntry* e) { e->set_offset(-1); });
  ExpectOpenFails(kLoss, "tensor 'w': is stored in 12 bytes from -1");
  with([](v1::BundleEntry* e) { e->set_shard_id(1); });
  ExpectOpenFails(kLoss, "tensor 'w': is in data file 1 of 1");
  with([](v1::BundleEntry* e) { e->mutable_shape()->mutable_dim(0)->set_size(-3); });
  ExpectOpenFails(kLoss, "tensor 'w': shape with dimension -3");
  with([](v1::BundleEntry* e) { e->add_slices()->add_extent()->set_start(5); });
  ExpectOpenFails(kLoss, "tensor 'w': slice 5,-1 does not lie within shape [3]");
  table_["w"] = "\xff\xff";
  ExpectOpenFails(kLoss, "tensor 'w': its index entry is not one");
  table_["w"] = entry.SerializeAsString();
  header_.set_num_shards(0);
  ExpectOpenFails(kLoss, "0 data files");
}

TEST_F(BadBundleTest, SlicesHaveTheirTensorsTypeAndShape) {
  full_ = Entry(BundleDtype::kFloat32, Shape({2, 2}), 0, 0);
  SetData({0, 1, 2, 3});
  AddSlice({{{0, 2}, {}}}, Shape({4}), 0);
  ExpectOpenFails(absl::StatusCode::kDataLoss, "slice 0,2:- is stored with another shape");
  full_.set_dtype(static_cast<int32_t>(BundleDtype::kInt32));
  ExpectOpenFails(absl::StatusCode::kDataLoss, "slice 0,2:- is stored with another type");
}

TEST_F(BadBundleTest, AnIndexWithoutAHeaderIsDataLoss) {
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), IndexPath(prefix_), {{"w", ""}}).ok());
  ExpectError(BundleReader::Open(prefix_).status(), absl::StatusCode::kDataLoss, "no header");
}

}  // namespace
}  // namespace keelson
