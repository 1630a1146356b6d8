#include "core/table/row_sections.h"

#include <limits>
#include <string>
#include <vector>

#include "core/table/row_testing.h"
#include "core/wire/row_codec.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr RowPartitionRun kHeld = {64, 64};

class RowSectionsTest : public testing::Test {
 protected:
  // Applies gradients to both tables' rows of `ids` in `run`, and reads those of the second.
  void SetUp() override { Make(kHeld); }
  void Make(RowPartitionRun run) {
    sections_.clear();
    payload_.clear();
    std::vector<uint64_t> ids(1000);
    for (uint64_t i = 0; i < 1000; ++i) ids[i] = i * i;
    for (uint32_t t = 0; t < 2; ++t) {
      const IdList list = ListOf(ids, tables_[t].salt, run);
      sections_.push_back(SectionOf(t, run, list, RowPurpose::kApply, &payload_));
      sections_.back().format = t == 0 ? WireFormat::kFloat32 : WireFormat::kInt8;
      std::vector<float> gradients(list.ids.size() * tables_[t].dim);
      for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i);
      std::string rows(list.ids.size() * RowBytes(sections_.back().format, tables_[t].dim), 'x');
      EncodeRows(sections_.back().format, absl::MakeConstSpan(gradients), tables_[t].dim,
                 reinterpret_cast<uint8_t*>(rows.data()));
      payload_ += rows;
    }
    sections_.push_back(
        SectionOf(1, run, ListOf(ids, tables_[1].salt, run), RowPurpose::kRead, &payload_));
  }

  std::string CheckError(BulkMethod method = BulkMethod::kPushPull) {
    const auto bytes = CheckRowSections(method, sections_, tables_, kHeld);
    EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(bytes.status().message());
  }
  std::string ReadError() {
    ByteRope rope;
    rope.AppendCopy(payload_);
    const auto read = ReadRowSections(sections_, tables_, true, ByteCursor(rope));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(read.status().message());
  }

  std::vector<WireTable> tables_ = {WireTable({"items", 3, {}}), WireTable({"users", 2, {}})};
  std::vector<RowSection> sections_;
  std::string payload_;
};

TEST_F(RowSectionsTest, ReadsSectionsHoweverTheyAreCut) {
  const auto bytes = CheckRowSections(BulkMethod::kPushPull, sections_, tables_, kHeld);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, payload_.size());
  for (const size_t size : {size_t{1}, size_t{7}, size_t{64}, payload_.size()}) {
    ByteRope rope;
    for (size_t i = 0; i < payload_.size(); i += size) rope.AppendCopy(payload_.substr(i, size));
    const auto read = ReadRowSections(sections_, tables_, true, ByteCursor(rope));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const ReceivedRows& rows = (*read)[i];
      EXPECT_EQ(rows.section, sections_[i]);
      EXPECT_EQ(rows.list.ids.size(), sections_[i].num_ids);
      EXPECT_EQ(rows.list.counts.size(), 64u);
    }
    EXPECT_EQ((*read)[1].list.ids, (*read)[2].list.ids);
    std::vector<float> gradients(sections_[0].num_ids * 3);
    ByteCursor cursor = (*read)[0].gradients;
    TakeRows(WireFormat::kFloat32, &cursor, 3, absl::MakeSpan(gradients));
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_EQ(gradients[i], static_cast<float>(i));
  }
}

TEST_F(RowSectionsTest, NoSections) {
  EXPECT_EQ(*CheckRowSections(BulkMethod::kPush, {}, {}, {0, 0}), 0u);
  const ByteRope rope;
  EXPECT_TRUE(ReadRowSections({}, {}, true, ByteCursor(rope))->empty());
}

TEST_F(RowSectionsTest, TablesExist) {
  sections_[2].table = 2;
  EXPECT_EQ(CheckError(), "rows[2].table: expected < 2, found 2");
}

TEST_F(RowSectionsTest, FormatsAreOfRows) {
  sections_[1].format = WireFormat::kTopK;
  EXPECT_EQ(CheckError(), "rows[1].format: expected a format of rows, found top_k");
}

TEST_F(RowSectionsTest, RunsLieInTheShard) {
  const std::string expected =
      "rows[0].first_partition, num_partitions: expected a run within the shard's 64 partitions "
      "from "
      "64 on, found ";
  sections_[0].num_partitions = 65;
  EXPECT_EQ(CheckError(), expected + "65 partitions from 64 on");
  sections_[0].num_partitions = 0;
  EXPECT_EQ(CheckError(), expected + "0 partitions from 64 on");
  sections_[0].num_partitions = 64;
  sections_[0].first_partition = 63;
  EXPECT_EQ(CheckError(), expected + "64 partitions from 63 on");
  sections_[0].first_partition = ~uint32_t{0};
  sections_[0].num_partitions = ~uint32_t{0};
  EXPECT_EQ(CheckError(), expected + "4294967295 partitions from 4294967295 on");
}

TEST_F(RowSectionsTest, AllHaveOneRun) {
  sections_[2].num_partitions = 63;
  EXPECT_EQ(CheckError(),
            "rows[2].first_partition, num_partitions: expected rows[0]'s 64 partitions from 64 on, "
            "found 63 partitions from 64 on");
}

TEST_F(RowSectionsTest, PurposesFitTheMethod) {
  EXPECT_EQ(CheckError(BulkMethod::kPull), "rows[0].purpose: expected READ in a Pull, found APPLY");
  EXPECT_EQ(CheckError(BulkMethod::kPush), "rows[2].purpose: expected APPLY in a Push, found READ");
}

TEST_F(RowSectionsTest, SectionsAreInOrder) {
  std::swap(sections_[0], sections_[1]);
  EXPECT_EQ(CheckError(),
            "rows[1].purpose, table: expected APPLY before READ, and tables in ascending order, "
            "found APPLY 0 after APPLY 1");
  sections_[0] = sections_[1];
  EXPECT_EQ(CheckError(),
            "rows[1].purpose, table: expected APPLY before READ, and tables in ascending order, "
            "found APPLY 0 after APPLY 0");
  std::swap(sections_[1], sections_[2]);
  EXPECT_EQ(CheckError(),
            "rows[2].purpose, table: expected APPLY before READ, and tables in ascending order, "
            "found APPLY 0 after READ 1");
}

TEST_F(RowSectionsTest, SizesDoNotOverflow) {
  RowSection section;
  section.id_bytes = section.num_ids = section.num_rows = ~uint32_t{0};
  section.purpose = RowPurpose::kApply;
  EXPECT_EQ(RequestRowBytes(section, 1024), 0xffffffffull * 4097);
  EXPECT_EQ(AnswerRowBytes(section, 1024), 0xffffffffull * 4096 + (uint64_t{1} << 29));
  section.purpose = RowPurpose::kRead;
  EXPECT_EQ(RequestRowBytes(section, 1024), 0xffffffffull);
}

TEST_F(RowSectionsTest, MalformedIdsNameTheSection) {
  payload_[0] = '\x7f';
  EXPECT_THAT(ReadError(), ::testing::StartsWith("rows[0], table \"items\": ids of partition "));
}

TEST_F(RowSectionsTest, GradientsAreFinite) {
  const float bad = std::numeric_limits<float>::infinity();
  payload_.replace(sections_[0].id_bytes + 8, 4, reinterpret_cast<const char*>(&bad), 4);
  EXPECT_EQ(ReadError(),
            "rows[0], table \"items\": gradients: expected finite elements, found one that is not");
  ByteRope rope;
  rope.AppendCopy(payload_);
  EXPECT_TRUE(ReadRowSections(sections_, tables_, false, ByteCursor(rope)).ok());
}

}  // namespace
}  // namespace keelson
