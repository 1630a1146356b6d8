#include "core/table/id_list.h"

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/table/row_id.h"
#include "core/table/row_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

constexpr RowPartitionRun kAll = {0, kRowPartitions};
const uint64_t kUsers = TableSalt("users");

std::vector<uint64_t> Ids(size_t n, uint64_t most) {
  std::mt19937_64 random(n);
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(random() & most);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

class IdListTest : public testing::Test {
 protected:
  void Encode(const std::vector<uint64_t>& ids, RowPartitionRun run = kAll) {
    list_ = ListOf(ids, kUsers, run);
    bytes_.clear();
    section_ = SectionOf(0, run, list_, RowPurpose::kRead, &bytes_);
  }
  // The list as if it had been written in another coding.
  void EncodeAs(IdCoding coding) {
    bytes_.assign(list_.counts.size() * 5 + list_.ids.size() * 10, 'x');
    auto* to = reinterpret_cast<uint8_t*>(bytes_.data());
    EncodeIdList({coding, 0}, list_.counts, list_.ids, to);
    section_.id_coding = coding;
  }
  void ExpectRoundTrip() {
    IdList decoded;
    const absl::Status status = DecodeIdList(section_, kUsers, bytes_, &decoded);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(decoded.counts, list_.counts);
    EXPECT_EQ(decoded.ids, list_.ids);
  }
  std::string Error() {
    IdList decoded;
    const absl::Status status = DecodeIdList(section_, kUsers, bytes_, &decoded);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  // A list of one partition whose bytes are given.
  std::string ErrorOf(uint32_t partition, IdCoding coding, uint32_t num_ids, std::string bytes) {
    section_ = {
        .first_partition = partition, .num_partitions = 1, .num_ids = num_ids, .id_coding = coding};
    bytes_ = std::move(bytes);
    return Error();
  }
  // The smallest ids of the partition, in ascending order.
  std::vector<uint64_t> Of(uint32_t partition, size_t n) {
    std::vector<uint64_t> ids;
    for (uint64_t id = 0; ids.size() < n; ++id) {
      if (RowPartitionOf(MixId(id, kUsers)) == partition) ids.push_back(id);
    }
    return ids;
  }

  IdList list_;
  RowSection section_;
  std::string bytes_;
};

TEST_F(IdListTest, EveryIdIsValid) {
  Encode({0, 1, uint64_t{1} << 63, ~uint64_t{0} - 1, ~uint64_t{0}});
  EXPECT_EQ(section_.num_ids, 5u);
  ExpectRoundTrip();
}

TEST_F(IdListTest, NoIds) {
  Encode({});
  EXPECT_EQ(bytes_, std::string(256, '\0'));
  ExpectRoundTrip();
}

TEST_F(IdListTest, TheSmallestCodingIsChosen) {
  Encode(Ids(20000, ~uint64_t{0}));
  EXPECT_EQ(section_.id_coding, IdCoding::kRaw64);
  EXPECT_EQ(bytes_.size(), 256 + 20000u * 8);
  ExpectRoundTrip();
  Encode(Ids(1000, 0xffffffff));
  EXPECT_EQ(section_.id_coding, IdCoding::kRaw32);
  EXPECT_EQ(bytes_.size(), 256 + list_.ids.size() * 4);
  ExpectRoundTrip();
  Encode(Ids(50000, 0xfffff));
  EXPECT_EQ(section_.id_coding, IdCoding::kDelta);
  EXPECT_LT(bytes_.size(), list_.ids.size() * 17 / 8);
  ExpectRoundTrip();
}

TEST_F(IdListTest, EveryCodingIsRead) {
  Encode(Ids(3000, 0xffffffff), {128, 64});
  EXPECT_NEAR(static_cast<double>(list_.ids.size()), 750, 150);
  for (const IdCoding coding : {IdCoding::kRaw64, IdCoding::kRaw32, IdCoding::kDelta}) {
    EncodeAs(coding);
    size_t counts = 0, deltas = 0;
    for (const uint32_t count : list_.counts) counts += count < 128 ? 1 : 2;
    if (coding == IdCoding::kDelta) {
      // What is left of the bytes tells how long they are.
      while (bytes_.back() == 'x') bytes_.pop_back();
    } else {
      deltas = list_.ids.size() * (coding == IdCoding::kRaw64 ? 8 : 4);
      bytes_.resize(counts + deltas);
    }
    ExpectRoundTrip();
  }
}

TEST_F(IdListTest, TheBytesAreThoseOfTheFormat) {
  list_.counts = {2, 0, 1};
  list_.ids = {5, 300, 7};
  const IdListForm form = SmallestForm(list_.counts, list_.ids);
  EXPECT_EQ(form.coding, IdCoding::kDelta);
  EXPECT_EQ(form.bytes, 7u);
  std::string bytes(7, 'x');
  EncodeIdList(form, list_.counts, list_.ids, reinterpret_cast<uint8_t*>(bytes.data()));
  EXPECT_EQ(bytes, std::string("\2\0\1\5\xa7\2\7", 7));
}

TEST_F(IdListTest, CountsMustBeThoseOfTheHeader) {
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, "\1\1"),
            "ids: expected counts that add up to num_ids, 2, found a sum of 1");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, "\3\1\1\1"),
            "ids of partition 3: expected at most 2 of num_ids left, found a count of 3");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, ""),
            "ids of partition 3: expected their count as a varint, found none");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, "\x82"),
            "ids of partition 3: expected their count as a varint, found none");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, std::string("\x82\0", 2)),
            "ids of partition 3: expected their count as a varint, found none")
      << "longer than it needs to be";
}

TEST_F(IdListTest, ClaimedIdsBeyondTheBytesAllocateNothing) {
  EXPECT_EQ(ErrorOf(3, IdCoding::kRaw64, ~uint32_t{0},
                    "\xff\xff\xff\xff\xf"
                    "1234"),
            "ids: expected at least 4294967295 bytes after the counts, found 4");
}

TEST_F(IdListTest, SizesMustBeThoseOfTheIds) {
  EXPECT_EQ(ErrorOf(3, IdCoding::kRaw64, 1,
                    "\1"
                    "1234567"),
            "ids: expected 8 bytes after the counts, found 7");
  EXPECT_EQ(ErrorOf(3, IdCoding::kRaw32, 1,
                    "\1"
                    "12345"),
            "ids: expected 4 bytes after the counts, found 5");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 1, "\1\5\5"),
            "ids: expected no bytes after the last one, found 1");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, "\2\5\x85"),
            "ids of partition 3: expected a varint, found none");
  EXPECT_EQ(ErrorOf(3, IdCoding::kDelta, 2, "\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1"),
            "ids of partition 3: expected differences below 2^64, found more");
}

TEST_F(IdListTest, IdsMustAscend) {
  const std::vector<uint64_t> ids = Of(3, 2);
  list_ = {{2}, {ids[1], ids[0]}};
  section_ = {.first_partition = 3, .num_partitions = 1, .num_ids = 2};
  bytes_.assign(17, 'x');
  EncodeIdList({IdCoding::kRaw64, 17}, list_.counts, list_.ids,
               reinterpret_cast<uint8_t*>(bytes_.data()));
  EXPECT_EQ(Error(), absl::StrCat("ids of partition 3: expected ascending ones, found ", ids[0],
                                  " after ", ids[1]));
  list_.ids = {ids[0], ids[0]};
  EncodeIdList({IdCoding::kRaw64, 17}, list_.counts, list_.ids,
               reinterpret_cast<uint8_t*>(bytes_.data()));
  EXPECT_EQ(Error(), absl::StrCat("ids of partition 3: expected ascending ones, found ", ids[0],
                                  " after ", ids[0]));
}

TEST_F(IdListTest, IdsMustBeOfTheirPartition) {
  const std::vector<uint64_t> ids = {Of(3, 1)[0], Of(4, 1)[0]};
  list_ = {{1, 1}, ids};
  section_ = {.first_partition = 3, .num_partitions = 2, .num_ids = 2};
  EncodeAs(IdCoding::kRaw64);
  section_.id_bytes = 18;
  bytes_.resize(18);
  ExpectRoundTrip();
  section_.first_partition = 2;
  EXPECT_EQ(Error(), absl::StrCat("ids of partition 2: expected its own, found ", ids[0],
                                  ", which is of 3"));
}

TEST_F(IdListTest, EveryTruncationIsRefused) {
  for (const uint64_t most : {~uint64_t{0}, uint64_t{0xffffffff}, uint64_t{0xfff}}) {
    Encode(Ids(600, most), {0, 16});
    ASSERT_GT(section_.num_ids, 0u);
    const std::string whole = bytes_;
    for (size_t size = 0; size < whole.size(); ++size) {
      bytes_ = whole.substr(0, size);
      Error();
    }
  }
}

}  // namespace
}  // namespace keelson
