#include "core/data/idx_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const char kValues[] = "abcdefghijkl";

// Reads `content` from a file of this name as an array of rank 3.
class IdxFileTest : public testing::Test {
 protected:
  absl::StatusOr<IdxArray> Read(const std::string& name, absl::string_view content) {
    path_ = JoinPath(FreshDirectory(), name);
    WriteTestFile(path_, content);
    return ReadIdxFile(path_, 3);
  }

  // One line of this kind, with the path and `text`.
  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& text) {
    EXPECT_EQ(status.code(), code) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(path_));
    EXPECT_THAT(message, HasSubstr(text));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }

  void ExpectDataLoss(const absl::Status& status, const std::string& text) {
    ExpectError(status, absl::StatusCode::kDataLoss, text);
  }

  const std::string content_ = IdxContent({2, 3, 2}, kValues);
  const std::string gzip_ = GzipContent(content_);
  std::string path_;
};

TEST_F(IdxFileTest, ReadsPlainGzipAndZstd) {
  for (const auto& [name, content] : {std::pair("x", content_), std::pair("x.gz", gzip_),
                                      std::pair("x.zst", ZstdContent(content_))}) {
    const auto array = Read(name, content);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_THAT(array->dims, ElementsAre(2, 3, 2));
    EXPECT_EQ(std::string(array->values.begin(), array->values.end()), kValues);
  }
}

TEST_F(IdxFileTest, ReadsManyPieces) {
  const std::string values(5'000'000, 'v');
  const std::string content = IdxContent({50, 1000, 100}, values);
  for (const auto& [name, bytes] :
       {std::pair("x", content), std::pair("x.gz", GzipContent(content))}) {
    const auto array = Read(name, bytes);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(std::string(array->values.begin(), array->values.end()), values);
    EXPECT_EQ(array->values.capacity(), values.size());
  }
}

TEST_F(IdxFileTest, ReadsGzipOfSeveralMembers) {
  const auto array =
      Read("x.gz", GzipContent(content_.substr(0, 9)) + GzipContent(content_.substr(9)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(std::string(array->values.begin(), array->values.end()), kValues);
}

TEST_F(IdxFileTest, ReadsAnEmptyArray) {
  const auto array = Read("x", IdxContent({0, 28, 28}, ""));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->dims, ElementsAre(0, 28, 28));
}

TEST_F(IdxFileTest, MissingFile) {
  path_ = JoinPath(FreshDirectory(), "none");
  ExpectError(ReadIdxFile(path_, 3).status(), absl::StatusCode::kNotFound, "No such file");
}

TEST_F(IdxFileTest, BadMagic) {
  ExpectError(Read("x", "P5 28 28 not an IDX file").status(), absl::StatusCode::kInvalidArgument,
              "expected magic number 0x00000803, found 0x50352032");
}

TEST_F(IdxFileTest, LabelsInPlaceOfImages) {
  ExpectError(Read("x", IdxContent({4}, "0123")).status(), absl::StatusCode::kInvalidArgument,
              "expected magic number 0x00000803, found 0x00000801");
}

TEST_F(IdxFileTest, EveryTruncationOfAPlainFile) {
  for (size_t size = 0; size < content_.size(); ++size) {
    const size_t expected = size < 16 ? 16 : 28;
    ExpectDataLoss(Read("x", content_.substr(0, size)).status(),
                   absl::StrCat("truncated IDX file: expected ", expected, " bytes, found ", size));
  }
}

TEST_F(IdxFileTest, EveryTruncationOfAGzipFile) {
  for (size_t size = 0; size < gzip_.size(); ++size) {
    const absl::Status status = Read("x.gz", gzip_.substr(0, size)).status();
    const bool all_decoded = absl::StrContains(status.message(), "cut off before its checksum");
    ExpectDataLoss(status, all_decoded ? "gzip" : "truncated IDX file: expected ");
  }
}

TEST_F(IdxFileTest, ShortContentInAWholeGzipStream) {
  ExpectDataLoss(Read("x.gz", GzipContent(content_.substr(0, 20))).status(),
                 "truncated IDX file: expected 28 bytes, found 20");
}

TEST_F(IdxFileTest, NotGzip) {
  ExpectDataLoss(Read("x.gz", content_).status(), "not a valid gzip stream: incorrect header");
}

TEST_F(IdxFileTest, GzipWithWrongChecksum) {
  std::string damaged = gzip_;
  damaged[damaged.size() - 8] ^= 1;
  ExpectDataLoss(Read("x.gz", damaged).status(), "not a valid gzip stream: incorrect data check");
}

TEST_F(IdxFileTest, GzipWithWrongLength) {
  std::string damaged = gzip_;
  damaged[damaged.size() - 4] ^= 1;
  ExpectDataLoss(Read("x.gz", damaged).status(), "not a valid gzip stream: incorrect length check");
}

TEST_F(IdxFileTest, GzipWithDamagedBlock) {
  std::string damaged = gzip_;
  damaged[10] |= 0x06;  // the reserved block type
  ExpectDataLoss(Read("x.gz", damaged).status(), "not a valid gzip stream: invalid block type");
}

TEST_F(IdxFileTest, TrailingBytes) {
  ExpectDataLoss(Read("x", content_ + "junk").status(),
                 "trailing bytes: expected 28 bytes, found 32");
  ExpectDataLoss(Read("x.gz", GzipContent(content_ + "junk")).status(),
                 "trailing bytes: expected the end after 28 bytes");
  ExpectDataLoss(Read("x.gz", gzip_ + "junk").status(),
                 "trailing bytes: expected the end after 28 bytes");
}

TEST_F(IdxFileTest, HeaderThatOverflows) {
  const std::string content = IdxContent({0xffffffff, 0xffffffff, 0xffffffff}, kValues);
  const std::string expected = "header claims 4294967295 x 4294967295 x 4294967295 bytes";
  ExpectDataLoss(Read("x", content).status(), expected);
  ExpectDataLoss(Read("x.gz", GzipContent(content)).status(), expected);
}

TEST_F(IdxFileTest, AnEmptyArrayHasExtentsWithinBounds) {
  ExpectDataLoss(Read("x", IdxContent({0, 0xffffffff, 0xffffffff}, "")).status(),
                 "header claims 0 x 4294967295 x 4294967295 bytes");
}

TEST_F(IdxFileTest, AGzipFileExpandsUpToALimit) {
  const std::string content = IdxContent({0x80000000, 1, 1}, kValues);
  ExpectDataLoss(Read("x.gz", GzipContent(content)).status(),
                 "truncated IDX file: expected 2147483664 bytes, found 28");
  ExpectDataLoss(Read("x.gz", GzipContent(IdxContent({0x80000001, 1, 1}, kValues))).status(),
                 "expected at most 2147483648 bytes of values in a packed file, header claims "
                 "2147483649");
}

// Would exhaust the memory if the header were believed.
TEST_F(IdxFileTest, HeaderThatClaimsTerabytes) {
  const std::string content = IdxContent({0xffffffff, 1000, 1000}, kValues);
  ExpectDataLoss(Read("x", content).status(),
                 "truncated IDX file: expected 4294967295000016 bytes, found 28");
}

}  // namespace
}  // namespace keelson
