#include "core/checkpoint/bundle_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/ordered_code.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

std::string CrcHex(const std::string& bytes) {
  const uint32_t crc = MaskCrc32c(Crc32c(bytes));
  return Hex(std::string(reinterpret_cast<const char*>(&crc), sizeof(crc)));
}

class BundleWriterTest : public testing::Test {
 protected:
  void ExpectInvalid(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const std::string directory_ = FreshDirectory();
  const std::string prefix_ = JoinPath(directory_, "model.ckpt-100");
};

TEST_F(BundleWriterTest, Names) {
  EXPECT_EQ(DataPath("m", 0, 3), "m.data-00000-of-00003");
  EXPECT_EQ(IndexPath("m"), "m.index");
  EXPECT_EQ(DtypeName(BundleDtype::kBfloat16), "bfloat16");
  EXPECT_EQ(DtypeName(static_cast<BundleDtype>(99)), "dtype 99");
}

TEST_F(BundleWriterTest, IndexRecordsAreTensorFlowsBytes) {
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->AddTensor("w", Shape({10, 3}), Iota(30)).ok());
  ASSERT_TRUE(writer->AddInt64("global_step", 7).ok());
  std::vector<BundleIndexEntry> entries;
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, entries).ok());

  const std::string data = ReadRawFile(DataPath(prefix_, 0, 1));
  ASSERT_EQ(data.size(), 128u);
  const auto table = ReadIndexTable(FileSystem::Real(), IndexPath(prefix_));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(Hex(table->at("")), "08011a020801");
  EXPECT_EQ(Hex(table->at("w")),
            "08011208"
            "1202080a"
            "12020803"
            "2878"
            "35" +
                CrcHex(data.substr(0, 120)));
  EXPECT_EQ(Hex(table->at("global_step")),
            "08091200"
            "2078"
            "2808"
            "35" +
                CrcHex(data.substr(120)));
}

TEST_F(BundleWriterTest, DataFileIsTheValuesBackToBack) {
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->AddFloatScalar("x", 1.0f).ok());
  ASSERT_TRUE(writer->AddInt64("y", -2).ok());
  EXPECT_EQ(writer->bytes_written(), 12);
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Hex(ReadRawFile(DataPath(prefix_, 0, 1))),
            "0000803f"
            "feffffffffffffff");
}

// Keeps what it gets where the test can see it.
class StringSink : public AppendFile {
 public:
  struct Target {
    std::string bytes;
    bool closed = false;
    absl::Status answer;
  };
  explicit StringSink(Target* target) : target_(target) {}

  absl::Status Append(absl::string_view data) override {
    target_->bytes.append(data.data(), data.size());
    return target_->answer;
  }
  absl::Status Sync() override { return target_->answer; }
  absl::Status Close() override {
    target_->closed = true;
    return target_->answer;
  }

 private:
  Target* const target_;
};

TEST_F(BundleWriterTest, ASinkGetsTheBytesOfTheFile) {
  const auto fill = [](BundleDataWriter* writer) {
    AddIotaRows(writer, "w", Shape({10, 3}), 2, 7);
    ASSERT_TRUE(writer->AddString("state", "text").ok());
  };
  auto file = NewWriter(prefix_, 3, 4);
  fill(file.get());
  const auto file_entries = file->Finish();
  StringSink::Target target;
  const auto sink = BundleDataWriter::CreateOn(std::make_unique<StringSink>(&target), 3);
  fill(sink.get());
  EXPECT_FALSE(target.closed);
  const auto sink_entries = sink->Finish();
  ASSERT_TRUE(sink_entries.ok()) << sink_entries.status();
  EXPECT_TRUE(target.closed);
  EXPECT_EQ(target.bytes, ReadRawFile(DataPath(prefix_, 3, 4)));
  EXPECT_EQ(sink->bytes_written(), static_cast<int64_t>(target.bytes.size()));
  ASSERT_EQ(sink_entries->size(), file_entries->size());
  for (size_t i = 0; i < sink_entries->size(); ++i) {
    EXPECT_EQ((*sink_entries)[i].key, (*file_entries)[i].key);
    EXPECT_EQ((*sink_entries)[i].entry.SerializeAsString(),
              (*file_entries)[i].entry.SerializeAsString());
  }
}

TEST_F(BundleWriterTest, ErrorsOfASinkComeOut) {
  StringSink::Target target;
  target.answer = absl::CancelledError("the caller has gone");
  const auto writer = BundleDataWriter::CreateOn(std::make_unique<StringSink>(&target), 0);
  EXPECT_EQ(writer->AddInt64("x", 1).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(writer->Finish().status().code(), absl::StatusCode::kCancelled);
  const auto wrong = BundleDataWriter::CreateOn(std::make_unique<StringSink>(&target), 2);
  ExpectInvalid(wrong->AddTensor("w", Shape({2}), Iota(3)), "data file 2: tensor 'w'");
}

TEST_F(BundleWriterTest, SlicesAreJoinedIntoAFullEntry) {
  WriteSmallBundle(prefix_);
  const auto table = ReadIndexTable(FileSystem::Real(), IndexPath(prefix_));
  ASSERT_TRUE(table.ok());
  // float, [10, 3], slices "0,4:0,3" and "4,6:0,3"; no data of its own.
  EXPECT_EQ(Hex(table->at("w")),
            "08011208"
            "1202080a"
            "12020803"
            "3a08"
            "0a021004"
            "0a021003"
            "3a0a"
            "0a0408041006"
            "0a021003");
  v1::BundleEntry slice;
  ASSERT_TRUE(
      slice.ParseFromString(table->at(EncodeSliceKey("w", RowSlice(Shape({10, 3}), 4, 10)))));
  EXPECT_EQ(slice.shard_id(), 1);
  EXPECT_EQ(slice.size(), 72);
  EXPECT_EQ(Hex(slice.shape().SerializeAsString()), "1202080612020803");
}

TEST_F(BundleWriterTest, IndexDoesNotDependOnTheOrderOfParts) {
  std::vector<BundleIndexEntry> entries;
  for (const int shard : {0, 1, 2}) {
    auto writer = NewWriter(prefix_, shard, 3);
    AddIotaRows(writer.get(), "w", Shape({6, 2}), 2 * shard, 2 * shard + 2);
    AppendEntries(writer.get(), &entries);
  }
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 3, entries).ok());
  const std::string forward = ReadRawFile(IndexPath(prefix_));
  std::reverse(entries.begin(), entries.end());
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 3, entries).ok());
  EXPECT_EQ(ReadRawFile(IndexPath(prefix_)), forward);
}

TEST_F(BundleWriterTest, SliceOfEverythingIsAPlainEntry) {
  auto writer = NewWriter(prefix_, 0, 1);
  AddIotaRows(writer.get(), "w", Shape({2, 3}), 0, 2);
  AddIotaRows(writer.get(), "scalar", Shape(), 0, 1);
  const auto entries = writer->Finish();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].key, "scalar");
  EXPECT_EQ((*entries)[1].key, "w");
  EXPECT_THAT((*entries)[1].entry.slices(), IsEmpty());
}

TEST_F(BundleWriterTest, SeveralSlicesOfOneTensorInOneFile) {
  auto writer = NewWriter(prefix_, 0, 1);
  AddIotaRows(writer.get(), "w", Shape({6}), 3, 6);
  AddIotaRows(writer.get(), "w", Shape({6}), 0, 3);
  std::vector<BundleIndexEntry> entries;
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, entries).ok());
  const auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto tensor = (*reader)->ReadTensor("w");
  ASSERT_TRUE(tensor.ok());
  EXPECT_THAT(tensor->span(), ElementsAre(0, 1, 2, 3, 4, 5));
}

// Of two files, in an order that is not that of the rows.
TEST_F(BundleWriterTest, SlicesOfIntegersComeBackExactly) {
  const std::vector<int64_t> wide = {0, -1, std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max(), 5};
  const std::vector<int32_t> narrow = {7, std::numeric_limits<int32_t>::min(), -1, 0, 9};
  std::vector<BundleIndexEntry> entries;
  const std::pair<int64_t, int64_t> parts[] = {{2, 5}, {0, 2}};
  for (size_t file = 0; file < 2; ++file) {
    const auto [begin, end] = parts[file];
    const auto writer = NewWriter(prefix_, file, 2);
    ASSERT_TRUE(writer->BeginSlice("keys", Shape({5}), begin, end, BundleDtype::kInt64).ok());
    for (int64_t i = begin; i < end; ++i) {
      ASSERT_TRUE(writer->AppendValues(absl::MakeConstSpan(&wide[i], 1)).ok());
    }
    ASSERT_TRUE(writer->EndSlice().ok());
    ASSERT_TRUE(writer->BeginSlice("steps", Shape({5}), begin, end, BundleDtype::kInt32).ok());
    ASSERT_TRUE(writer->AppendValues(absl::MakeConstSpan(narrow).subspan(begin, end - begin)).ok());
    ASSERT_TRUE(writer->EndSlice().ok());
    AppendEntries(writer.get(), &entries);
  }
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 2, entries).ok());
  const auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->VerifyAll().ok());
  EXPECT_EQ((*reader)->Info("keys")->dtype, BundleDtype::kInt64);
  std::vector<int64_t> wide_read(3);
  ASSERT_TRUE((*reader)->ReadInt64s("keys", 1, absl::MakeSpan(wide_read)).ok());
  EXPECT_THAT(wide_read, ElementsAre(wide[1], wide[2], wide[3]));
  std::vector<int32_t> narrow_read(5);
  ASSERT_TRUE((*reader)->ReadInt32s("steps", 0, absl::MakeSpan(narrow_read)).ok());
  EXPECT_EQ(narrow_read, narrow);
  ExpectInvalid((*reader)->ReadInt32s("keys", 0, absl::MakeSpan(narrow_read)),
                "has type int64, expected int32");
  ExpectInvalid((*reader)->ReadInt64s("keys", 3, absl::MakeSpan(wide_read)),
                "elements [3, 6) asked for");
}

TEST_F(BundleWriterTest, ATensorWithoutRowsIsWhole) {
  const auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->BeginSlice("values", Shape({0, 4}), 0, 0).ok());
  ASSERT_TRUE(writer->EndSlice().ok());
  std::vector<BundleIndexEntry> entries;
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, entries).ok());
  const auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Info("values")->shape, Shape({0, 4}));
  EXPECT_TRUE((*reader)->VerifyAll().ok());
}

TEST_F(BundleWriterTest, RefusesValuesOfAnotherType) {
  const std::vector<int32_t> narrow = {1};
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->BeginSlice("keys", Shape({4}), 0, 2, BundleDtype::kInt64).ok());
  ExpectInvalid(writer->AppendValues(narrow),
                "tensor 'keys': expected values of int64, found int32");
  writer = NewWriter(prefix_, 0, 1);
  ExpectInvalid(writer->BeginSlice("names", Shape({4}), 0, 2, BundleDtype::kString),
                "expected slices of float32, int64 or int32, found string");
  writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->BeginSlice("x", Shape({4}), 0, 1, BundleDtype::kInt32).ok());
  ASSERT_TRUE(writer->AppendValues(narrow).ok());
  ASSERT_TRUE(writer->EndSlice().ok());
  ASSERT_TRUE(writer->BeginSlice("x", Shape({4}), 1, 2).ok());
  ASSERT_TRUE(writer->AppendValues(Iota(1)).ok());
  ExpectInvalid(writer->EndSlice(), "its slices disagree about its type");
}

TEST_F(BundleWriterTest, AbandonedWriterLeavesNothing) {
  {
    auto writer = NewWriter(prefix_, 0, 1);
    ASSERT_TRUE(writer->AddInt64("x", 1).ok());
    EXPECT_THAT(*ListDirectory(directory_),
                ElementsAre(HasSubstr("model.ckpt-100.data-00000-of-00001.tempstate")));
  }
  EXPECT_THAT(*ListDirectory(directory_), IsEmpty());
}

TEST_F(BundleWriterTest, AFailedFinishLeavesNoTemporaryFile) {
  ASSERT_TRUE(CreateDirectories(DataPath(prefix_, 0, 1)).ok());
  auto writer = NewWriter(prefix_, 0, 1);
  const absl::Status status = writer->Finish().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(DataPath(prefix_, 0, 1)));
  writer.reset();
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("model.ckpt-100.data-00000-of-00001"));
}

TEST_F(BundleWriterTest, AFileThatIsOutOfSightWhenItGetsItsNameIsStorageThatErrs) {
  MemoryFileSystem files;
  files.SetFault([](absl::string_view operation, const std::string& path) {
    return operation == "rename" ? absl::NotFoundError(path + ": no such file") : absl::OkStatus();
  });
  auto writer = BundleDataWriter::Create(&files, "/part", 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ((*writer)->Finish().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(BundleWriterTest, MissingDirectoryIsNotFound) {
  const absl::Status status =
      BundleDataWriter::Create(FileSystem::Real(), "/nonexistent/part", 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

TEST_F(BundleWriterTest, RefusesBadNamesAndRepeatsTheError) {
  for (const std::string& name : {std::string(), std::string("\0w", 2)}) {
    auto writer = NewWriter(prefix_, 0, 1);
    ExpectInvalid(writer->AddInt64(name, 1), "is not a name");
    ExpectInvalid(writer->AddInt64("good", 1), "is not a name");
    ExpectInvalid(writer->Finish().status(), "is not a name");
  }
}

TEST_F(BundleWriterTest, RefusesATensorTwice) {
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->AddInt64("x", 1).ok());
  ExpectInvalid(writer->AddString("x", "s"), "tensor 'x': was added before");
  auto sliced = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(sliced->AddTensor("w", Shape({4}), Iota(4)).ok());
  ASSERT_TRUE(sliced->BeginSlice("w", Shape({4}), 0, 2).ok());
  ASSERT_TRUE(sliced->AppendValues(Iota(2)).ok());
  ExpectInvalid(sliced->EndSlice(), "tensor 'w': was added before");
}

TEST_F(BundleWriterTest, RefusesValuesThatDoNotFit) {
  ExpectInvalid(NewWriter(prefix_, 0, 1)->AddTensor("w", Shape({2, 2}), Iota(3)),
                "3 values for shape [2, 2]");
  auto more = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(more->BeginSlice("w", Shape({4}), 0, 2).ok());
  ExpectInvalid(more->AppendValues(Iota(3)), "1 values more");
  auto fewer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(fewer->BeginSlice("w", Shape({4}), 0, 2).ok());
  ExpectInvalid(fewer->EndSlice(), "2 values fewer");
}

TEST_F(BundleWriterTest, RefusesRowsThatAreNoSlice) {
  for (const auto& [begin, end] : {std::pair(0, 5), {-1, 2}, {2, 2}, {3, 1}}) {
    ExpectInvalid(NewWriter(prefix_, 0, 1)->BeginSlice("w", Shape({4}), begin, end),
                  "are not a slice of shape [4]");
  }
}

TEST_F(BundleWriterTest, RefusesCallsOutOfOrder) {
  auto open = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(open->BeginSlice("w", Shape({4}), 0, 2).ok());
  const auto precondition = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(open->Finish().status().code(), precondition);
  EXPECT_EQ(open->AddInt64("x", 1).code(), precondition);
  EXPECT_EQ(NewWriter(prefix_, 0, 1)->AppendValues(Iota(1)).code(), precondition);
  EXPECT_EQ(NewWriter(prefix_, 0, 1)->EndSlice().code(), precondition);
  auto finished = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(finished->Finish().ok());
  EXPECT_EQ(finished->AddInt64("x", 1).code(), precondition);
}

TEST_F(BundleWriterTest, RefusesSlicesThatDisagreeAboutTheShape) {
  auto writer = NewWriter(prefix_, 0, 1);
  AddIotaRows(writer.get(), "w", Shape({4}), 0, 2);
  ASSERT_TRUE(writer->BeginSlice("w", Shape({5}), 2, 5).ok());
  ASSERT_TRUE(writer->AppendValues(Iota(3)).ok());
  ExpectInvalid(writer->EndSlice(), "disagree about its shape");
}

class WriteBundleIndexTest : public BundleWriterTest {
 protected:
  // Rows of "w", of 10, each in a data file of its own.
  void AddParts(const std::vector<std::pair<int64_t, int64_t>>& rows) {
    for (const auto& [begin, end] : rows) {
      auto writer = NewWriter(prefix_, num_shards_, 9);
      AddIotaRows(writer.get(), "w", Shape({10}), begin, end);
      AppendEntries(writer.get(), &entries_);
      ++num_shards_;
    }
  }
  absl::Status Write() {
    return WriteBundleIndex(FileSystem::Real(), prefix_, num_shards_, entries_);
  }
  void ExpectRefused(const std::string& text) {
    ExpectInvalid(Write(), text);
    EXPECT_FALSE(FileExists(IndexPath(prefix_)));
  }

  int num_shards_ = 0;
  std::vector<BundleIndexEntry> entries_;
};

TEST_F(WriteBundleIndexTest, RefusesATensorInTwoDataFiles) {
  AddParts({{0, 10}, {0, 10}});
  ExpectRefused(IndexPath(prefix_) + ": tensor 'w': is in two data files");
}

TEST_F(WriteBundleIndexTest, RefusesAWholeTensorBesideASlice) {
  AddParts({{0, 10}, {0, 5}});
  ExpectRefused("tensor 'w': is in two data files");
}

TEST_F(WriteBundleIndexTest, RefusesTheSameSliceTwice) {
  AddParts({{0, 5}, {0, 5}, {5, 10}});
  ExpectRefused("is in two data files");
}

TEST_F(WriteBundleIndexTest, RefusesOverlap) {
  AddParts({{0, 6}, {5, 10}});
  ExpectRefused("tensor 'w': slices 0,6 and 5,5 overlap");
}

TEST_F(WriteBundleIndexTest, RefusesGaps) {
  AddParts({{0, 4}, {5, 10}});
  ExpectRefused("tensor 'w': slices cover 9 of the 10 elements");
}

TEST_F(WriteBundleIndexTest, RefusesSlicesWithoutData) {
  AddParts({{0, 5}, {5, 10}});
  const std::string key = EncodeSliceKey("w", RowSlice(Shape({10}), 5, 10));
  entries_.erase(std::find_if(entries_.begin(), entries_.end(),
                              [&](const BundleIndexEntry& entry) { return entry.key == key; }));
  ExpectRefused("tensor 'w': slice 5,5 has no data");
}

TEST_F(WriteBundleIndexTest, RefusesSlicesOfDifferentTensors) {
  AddParts({{0, 5}});
  auto writer = NewWriter(prefix_, num_shards_++, 9);
  AddIotaRows(writer.get(), "w", Shape({11}), 5, 11);
  AppendEntries(writer.get(), &entries_);
  ExpectRefused("disagree about its type or shape");
}

TEST_F(WriteBundleIndexTest, RefusesAnUnknownDataFile) {
  AddParts({{0, 5}, {5, 10}});
  num_shards_ = 1;
  ExpectRefused("tensor 'w': is in data file 1 of 1");
}

TEST_F(WriteBundleIndexTest, RefusesAnEmptyKey) {
  entries_.push_back({"", {}});
  num_shards_ = 1;
  ExpectRefused("is not a name");
}

}  // namespace
}  // namespace keelson
