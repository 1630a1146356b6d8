#include "core/data/columnar_records.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/columnar_file.h"
#include "core/data/columnar_writer.h"
#include "core/table/row_id.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kColumnarPath[] = "/d/a.columns";

RecordSchema Schema() {
  return {{{"numbers", Shape({2, 3})},
           {"id", {}, FeatureKind::kId, false, 1000},
           {"bag", {}, FeatureKind::kBag},
           {"weighted", {}, FeatureKind::kBag, true, 50}},
          {{"class", 3}, {"price"}}};
}

// Record `n` into a row.
void Fill(int64_t n, int64_t row, const RecordSchema& schema, Batch* batch) {
  const uint64_t drawn = MixId(static_cast<uint64_t>(n), 7);
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const FeatureSpec& feature = schema.features[i];
    FeatureValues& values = batch->features[i];
    const int64_t elements = feature.shape.num_elements();
    for (int64_t k = 0; feature.kind == FeatureKind::kNumbers && k < elements; ++k) {
      values.numbers.data()[row * elements + k] =
          static_cast<float>(n) + 0.25f * static_cast<float>(k);
    }
    if (feature.kind == FeatureKind::kId) values.ids[row] = drawn % 1000;
    if (feature.kind != FeatureKind::kBag) continue;
    for (uint64_t k = 0; k < drawn % 4; ++k) {
      values.ids.push_back(feature.num_ids == 0 ? drawn + k : (drawn + k) % 50);
      if (feature.weighted) values.weights.push_back(0.5f * static_cast<float>(k));
    }
    values.offsets[row + 1] = static_cast<int64_t>(values.ids.size());
  }
  for (size_t i = 0; i < schema.labels.size(); ++i) {
    batch->labels[i].data()[row] =
        schema.labels[i].num_classes > 0 ? static_cast<float>(n % 3) : static_cast<float>(n) - 0.5f;
  }
}

Batch RecordsOf(absl::Span<const int64_t> numbers, const RecordSchema& schema) {
  Batch batch;
  Resize(static_cast<int64_t>(numbers.size()), schema, &batch);
  for (size_t i = 0; i < numbers.size(); ++i) {
    Fill(numbers[i], static_cast<int64_t>(i), schema, &batch);
  }
  return batch;
}

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

absl::Status WriteRecords(const std::string& path, int64_t begin, int64_t end, FileSystem* files) {
  auto writer = ColumnarWriter::Create(path, Schema(), files);
  if (!writer.ok()) return writer.status();
  for (int64_t at = begin; at < end; at += kColumnarGroup) {
    const absl::Status status =
        (*writer)->Append(RecordsOf(Range(at, std::min(end, at + kColumnarGroup)), Schema()));
    if (!status.ok()) return status;
  }
  return (*writer)->Finish();
}

void ExpectEqual(const Batch& found, const Batch& expected) {
  ASSERT_EQ(found.features.size(), expected.features.size());
  for (size_t i = 0; i < found.features.size(); ++i) {
    EXPECT_EQ(found.features[i].numbers.span(), expected.features[i].numbers.span());
    EXPECT_EQ(found.features[i].ids, expected.features[i].ids);
    EXPECT_EQ(found.features[i].offsets, expected.features[i].offsets);
    EXPECT_EQ(found.features[i].weights, expected.features[i].weights);
  }
  ASSERT_EQ(found.labels.size(), expected.labels.size());
  for (size_t i = 0; i < found.labels.size(); ++i) {
    EXPECT_EQ(found.labels[i].span(), expected.labels[i].span());
  }
}

class ColumnarRecordsTest : public testing::Test {
 protected:
  ColumnarRecordsTest() { EXPECT_TRUE(files_.CreateDirectories("/d").ok()); }

  void Write(int64_t records = 10) {
    ASSERT_TRUE(files_.Remove(kColumnarPath).ok());
    ASSERT_TRUE(WriteRecords(kColumnarPath, 0, records, &files_).ok());
  }
  std::string Content() { return files_.ReadVersioned(kColumnarPath, 1 << 24)->content; }
  std::string OpenError(const RecordSchema& schema) {
    const auto records = OpenColumnarRecords({kColumnarPath}, schema, &files_);
    return records.ok() ? "opened" : std::string(records.status().message());
  }
  std::string OpenError() { return OpenError(Schema()); }
  // Of one record.
  std::string ReadError(int64_t record) {
    const auto records = OpenColumnarRecords({kColumnarPath}, Schema(), &files_);
    if (!records.ok()) return std::string(records.status().message());
    Batch batch;
    const absl::Status status = (*records)->Read({record}, &batch);
    return status.ok() ? "read" : std::string(status.message());
  }
  ColumnarLayout Layout() { return (*ColumnarFile::Open(kColumnarPath, &files_))->layout(); }
  // The file with this directory in place of its own.
  void WriteWith(const ColumnarLayout& layout, std::string content) {
    uint64_t begin = 0;
    std::memcpy(&begin, content.data() + content.size() - kColumnarTrailerBytes, sizeof(begin));
    const std::string directory = EncodeColumnarDirectory(layout);
    files_.SetContent(kColumnarPath, absl::StrCat(content.substr(0, begin), directory,
                                                  EncodeColumnarTrailer(begin, directory)));
  }
  // The same with some bytes of a part replaced, and a checksum that fits them.
  void Forge(size_t array, const std::string& bytes) {
    ColumnarLayout layout = Layout();
    std::string content = Content();
    ColumnarPart& part = layout.parts[array];
    content.replace(part.offset, bytes.size(), bytes);
    part.crc = MaskCrc32c(Crc32c(absl::string_view(content).substr(part.offset, part.bytes)));
    WriteWith(layout, content);
  }

  MemoryFileSystem files_;
};

TEST_F(ColumnarRecordsTest, RecordsOfSeveralFilesInAnyOrder) {
  const std::string other = "/d/b.columns";
  ASSERT_TRUE(WriteRecords(kColumnarPath, 0, 2 * kColumnarGroup + 5, &files_).ok());
  ASSERT_TRUE(WriteRecords(other, 2 * kColumnarGroup + 5, 9000, &files_).ok());
  const auto records = OpenColumnarRecords({kColumnarPath, other}, Schema(), &files_);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ((*records)->size(), 9000);
  EXPECT_EQ((*records)->where(), "/d/a.columns and 1 more");
  std::vector<int64_t> numbers = Range(0, 9000);
  for (size_t i = 0; i < numbers.size(); ++i) std::swap(numbers[i], numbers[MixId(i, 3) % 9000]);
  Batch batch;
  for (int64_t begin = 0; begin < 9000; begin += 1000) {
    const auto some = absl::MakeConstSpan(numbers).subspan(begin, 1000);
    ASSERT_TRUE((*records)->Read(some, &batch).ok());
    ExpectEqual(batch, RecordsOf(some, Schema()));
  }
  // Runs across groups and files.
  const std::vector<int64_t> runs = Range(kColumnarGroup - 3, 2 * kColumnarGroup + 9);
  ASSERT_TRUE((*records)->Read(runs, &batch).ok());
  ExpectEqual(batch, RecordsOf(runs, Schema()));
  const std::vector<int64_t> parts = {5, 6, 7, 7, 8, 3, 2, 8192, 8193, 0};
  ASSERT_TRUE((*records)->Read(parts, &batch).ok());
  ExpectEqual(batch, RecordsOf(parts, Schema()));
  EXPECT_EQ((*records)->Read({9000}, &batch).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*records)->Read({-1}, &batch).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ColumnarRecordsTest, AModelMayTakeSomeOfTheFeatures) {
  Write();
  const RecordSchema some = {
      {{"weighted", {}, FeatureKind::kBag, true}, {"numbers", Shape({2, 3})}}, {{"price"}}};
  const auto records = OpenColumnarRecords({kColumnarPath}, some, &files_);
  ASSERT_TRUE(records.ok()) << records.status();
  const Batch all = RecordsOf({7, 2}, Schema());
  Batch batch;
  ASSERT_TRUE((*records)->Read({7, 2}, &batch).ok());
  EXPECT_EQ(batch.features[0].ids, all.features[3].ids);
  EXPECT_EQ(batch.features[0].weights, all.features[3].weights);
  EXPECT_EQ(batch.features[1].numbers.span(), all.features[0].numbers.span());
  EXPECT_EQ(batch.labels[0].span(), all.labels[1].span());
}

TEST_F(ColumnarRecordsTest, MappedFilesAndTheirChanges) {
  const std::string path = JoinPath(FreshDirectory(), "a.columns");
  ASSERT_TRUE(WriteRecords(path, 0, 5000, FileSystem::Real()).ok());
  const auto records = OpenColumnarRecords({path}, Schema(), FileSystem::Real());
  ASSERT_TRUE(records.ok()) << records.status();
  Batch batch;
  ASSERT_TRUE((*records)->Read({4999, 0}, &batch).ok());
  ExpectEqual(batch, RecordsOf({4999, 0}, Schema()));
  ASSERT_TRUE(RemoveFile(path).ok());
  EXPECT_EQ((*records)->Read({4999, 0}, &batch).message(),
            path + ": expected the file as it was when it was opened, found none");
}

TEST_F(ColumnarRecordsTest, AChangedFile) {
  Write();
  const auto records = OpenColumnarRecords({kColumnarPath}, Schema(), &files_);
  Write(20);
  Batch batch;
  const absl::Status status = (*records)->Read({1}, &batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "/d/a.columns: expected the file as it was when it was opened, found it changed");
}

TEST_F(ColumnarRecordsTest, WhatAModelCannotTake) {
  Write();
  const auto error_of = [&](FeatureSpec feature, LabelSpec label = {"class", 3}) {
    return OpenError({{std::move(feature)}, {std::move(label)}});
  };
  EXPECT_EQ(
      error_of({"user", {}, FeatureKind::kId}),
      "/d/a.columns: expected a feature \"user\", found numbers ([2, 3]), id (id of 1000), bag "
      "(bag of any ids), weighted (weighted bag of 50 ids)");
  EXPECT_EQ(error_of({"numbers", Shape({6})}),
            "/d/a.columns: expected the feature \"numbers\" as [6], found [2, 3]");
  EXPECT_EQ(error_of({"weighted", {}, FeatureKind::kBag}),
            "/d/a.columns: expected the feature \"weighted\" as bag of any ids, found weighted bag "
            "of 50 ids");
  EXPECT_THAT(error_of({"id", {}, FeatureKind::kId, false, 10}),
              StartsWith("/d/a.columns: expected ids of \"id\" below 10, the rows of its "
                         "embedding, found up to "));
  const FeatureSpec numbers = {"numbers", Shape({2, 3})};
  EXPECT_EQ(error_of(numbers, {"click"}),
            "/d/a.columns: expected a label \"click\", found class, price");
  EXPECT_EQ(error_of(numbers, {"class", 2}),
            "/d/a.columns: expected 0 or 1 as each label \"class\", found 2");
  EXPECT_EQ(error_of(numbers, {"price", 10}),
            "/d/a.columns: expected a class from 0 to 9 as each label \"price\", found -0.5");
  EXPECT_EQ(error_of(numbers, {"class", 3}), "opened");
}

TEST_F(ColumnarRecordsTest, LabelsBetweenClasses) {
  ASSERT_TRUE(WriteRecords(kColumnarPath, 1, 4, &files_).ok());
  EXPECT_THAT(OpenError({{{"numbers", Shape({2, 3})}}, {{"price", 10}}}),
              HasSubstr("expected a class from 0 to 9 as each label \"price\", found 0.5"));
  ColumnarLayout layout = Layout();
  layout.labels[1].min = 0;
  layout.labels[1].max = 3;
  WriteWith(layout, Content());
  EXPECT_EQ(OpenError({{{"numbers", Shape({2, 3})}}, {{"price", 10}}}),
            "/d/a.columns: expected classes as labels \"price\", found fractions");
}

TEST_F(ColumnarRecordsTest, FilesThatAreNone) {
  constexpr char kNone[] =
      "/d/a.columns: expected a file that \"keelson_data convert\" wrote, found ";
  files_.SetContent(kColumnarPath, "");
  EXPECT_EQ(OpenError(), absl::StrCat(kNone, "0 bytes"));
  files_.SetContent(kColumnarPath, std::string(1000, 'x'));
  EXPECT_EQ(OpenError(), absl::StrCat(kNone, "other bytes"));
  Write();
  const std::string content = Content();
  files_.SetContent(kColumnarPath, content.substr(0, content.size() - 1));
  EXPECT_EQ(
      OpenError(),
      "/d/a.columns: expected the end of a columnar file, found other bytes; was it copied as "
      "a whole?");
  files_.SetContent(kColumnarPath, content.substr(0, 64) + content.substr(128));
  EXPECT_THAT(OpenError(), HasSubstr("before the end, found a file of "));
  std::string other = content;
  other[content.size() - 12] = 2;
  files_.SetContent(kColumnarPath, other);
  EXPECT_EQ(OpenError(),
            "/d/a.columns: expected version 1 of the form, found 2; convert the records again");
  other = content;
  other[content.size() - kColumnarTrailerBytes - 1] ^= 1;
  files_.SetContent(kColumnarPath, other);
  EXPECT_EQ(OpenError(),
            "/d/a.columns: expected a directory that fits its checksum, found another one");
  Write(0);
  EXPECT_EQ(OpenError(), "/d/a.columns: expected one record or more, found none");
}

TEST_F(ColumnarRecordsTest, DirectoriesThatAreNone) {
  constexpr char kOther[] =
      "/d/a.columns: expected the directory of a columnar file, found other bytes";
  Write();
  const std::string content = Content();
  const ColumnarLayout sound = Layout();
  const auto error_with = [&](auto change) {
    ColumnarLayout layout = sound;
    change(&layout);
    WriteWith(layout, content);
    return OpenError();
  };
  EXPECT_EQ(error_with([](ColumnarLayout*) {}), "opened");
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->num_records = 11; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->num_records = int64_t{1} << 60; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->num_records = kColumnarGroup + 1; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts.pop_back(); }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts[1].offset += 8; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts[1].offset = uint64_t{1} << 40; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts[3].bytes = ~uint64_t{0} - 7; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts[3].bytes += 4; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts.back().bytes += 4; }), kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->parts[6].bytes += 4; }), kOther);  // weights
  EXPECT_EQ(error_with([](ColumnarLayout* l) {
              l->features[0].spec.shape = Shape({2, 0});
            }),
            kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) {
              l->features[0].spec.shape = Shape({int64_t{1} << 40, int64_t{1} << 40});
            }),
            kOther);
  EXPECT_EQ(error_with([](ColumnarLayout* l) { l->features[1].spec.weighted = true; }), kOther);
  EXPECT_EQ(
      error_with([](ColumnarLayout* l) { l->features[1].spec.kind = static_cast<FeatureKind>(7); }),
      kOther);
}

TEST_F(ColumnarRecordsTest, ANameThatIsLongerThanTheDirectory) {
  std::string content(kColumnarMagic);
  content.resize(kColumnarAlignment);
  std::string directory;
  // No record; a feature whose name has 45 bytes, of which 40 are there.
  for (const uint64_t number : {0, 1, 45, 0, 0, 0, 0, 0}) {
    directory.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  files_.SetContent(kColumnarPath, absl::StrCat(content, directory,
                                                EncodeColumnarTrailer(content.size(), directory)));
  EXPECT_EQ(OpenError(),
            "/d/a.columns: expected the directory of a columnar file, found other bytes");
}

TEST_F(ColumnarRecordsTest, DamageIsFoundWhenItIsReadFirst) {
  Write(kColumnarGroup + 10);
  const std::string content = Content();
  const ColumnarLayout layout = Layout();
  const std::vector<std::string> columns = {"numbers",  "id",       "bag",   "bag",  "weighted",
                                            "weighted", "weighted", "class", "price"};
  ASSERT_EQ(layout.num_arrays(), columns.size());
  for (size_t array = 0; array < columns.size(); ++array) {
    std::string damaged = content;
    damaged[layout.parts[layout.num_arrays() + array].offset] ^= 1;
    files_.SetContent(kColumnarPath, damaged);
    EXPECT_EQ(ReadError(kColumnarGroup + 3),
              absl::StrCat("/d/a.columns: records 4096 to 4105 of \"", columns[array],
                           "\": expected data that fits its checksum, found other data"));
    EXPECT_EQ(ReadError(3), "read");
    EXPECT_EQ((*ColumnarFile::Open(kColumnarPath, &files_))->CheckAll().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST_F(ColumnarRecordsTest, ValuesThatBelieTheDirectory) {
  constexpr char kRecords[] = "/d/a.columns: records 0 to 9 of ";
  Write();
  Forge(1, std::string(8, '\xff'));
  EXPECT_THAT(ReadError(0), StartsWith(absl::StrCat(kRecords, "\"id\": expected ids up to ")));
  for (const uint64_t offset : {uint64_t{1}, ~uint64_t{0}}) {
    Write();
    Forge(2, std::string(reinterpret_cast<const char*>(&offset), sizeof(offset)));
    EXPECT_EQ(ReadError(0),
              absl::StrCat(kRecords,
                           "\"bag\": expected offsets that ascend to the number of ids, found "
                           "other data"));
  }
  for (const float label : {3.0f, 0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    Write();
    Forge(7, std::string(reinterpret_cast<const char*>(&label), sizeof(label)));
    EXPECT_EQ(ReadError(0),
              absl::StrCat(kRecords,
                           "\"class\": expected labels as the directory describes them, found "
                           "other data"));
  }
}

TEST_F(ColumnarRecordsTest, AFileAppearsAsAWhole) {
  Write();
  EXPECT_EQ(WriteRecords(kColumnarPath, 0, 10, &files_).message(),
            "/d/a.columns: expected a file that is not there yet, found one");
  ASSERT_TRUE(files_.Remove(kColumnarPath).ok());
  {
    auto writer = ColumnarWriter::Create(kColumnarPath, Schema(), &files_);
    ASSERT_TRUE(writer.ok());
    Batch batch = RecordsOf({1, 2}, Schema());
    batch.labels[1].data()[1] = std::numeric_limits<float>::infinity();
    EXPECT_EQ((*writer)->Append(batch).message(),
              "record 1: expected a finite number as the label \"price\", found inf");
  }
  EXPECT_THAT(*files_.List("/d"), ElementsAre());
  const int64_t before = files_.operations();
  ASSERT_TRUE(WriteRecords(kColumnarPath, 0, 10, &files_).ok());
  const int64_t operations = files_.operations() - before;
  for (int64_t crash = 0; crash < operations; ++crash) {
    files_.Remove(kColumnarPath).IgnoreError();
    ASSERT_TRUE(files_.SyncDirectory("/d").ok());
    files_.CrashAt(files_.operations() + crash);
    EXPECT_FALSE(WriteRecords(kColumnarPath, 0, 10, &files_).ok());
    files_.Restart(Unsynced::kNamesKept);
    if (*files_.Exists(kColumnarPath)) {
      EXPECT_EQ(ReadError(9), "read");
    }
  }
}

}  // namespace
}  // namespace keelson
