#include "dashboard/runs/changed_file.h"

#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr char kPath[] = "/status.json";

class ChangedFileTest : public testing::Test {
 protected:
  void Write(const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(kPath, content, &files_).ok());
  }
  void Append(const std::string& content) {
    auto file = files_.OpenForAppend(kPath, /*truncate=*/false);
    ASSERT_TRUE(file.ok() && (*file)->Append(content).ok());
  }

  MemoryFileSystem files_;
};

TEST_F(ChangedFileTest, TellsTheContentWheneverItIsAnother) {
  ChangedFile file(&files_, kPath, 100);
  EXPECT_TRUE(absl::IsNotFound(file.Poll()->status()));
  EXPECT_EQ(file.Poll(), std::nullopt);
  Write("a");
  EXPECT_EQ(**file.Poll(), "a");
  EXPECT_EQ(file.Poll(), std::nullopt);
  Write("b");
  EXPECT_EQ(**file.Poll(), "b");
  ASSERT_TRUE(files_.Remove(kPath).ok());
  EXPECT_TRUE(absl::IsNotFound(file.Poll()->status()));
  EXPECT_EQ(file.Poll(), std::nullopt);
}

TEST_F(ChangedFileTest, AFileThatIsTooLargeIsNotRead) {
  Write("12345");
  ChangedFile file(&files_, kPath, 4);
  const auto content = file.Poll();
  EXPECT_EQ(content->status().message(), "/status.json: expected at most 4 bytes, found 5");
  EXPECT_TRUE(absl::IsDataLoss(content->status()));
  // It is tried again, for the trouble may pass.
  EXPECT_TRUE(file.Poll().has_value());
  Write("1234");
  EXPECT_EQ(**file.Poll(), "1234");
}

TEST_F(ChangedFileTest, ATailIsReadInParts) {
  FileTail tail(&files_, kPath);
  EXPECT_TRUE(absl::IsNotFound(tail.Read(10).status()));
  Write("abcdef");
  EXPECT_TRUE(*tail.Read(4));
  EXPECT_EQ(tail.pending(), "abcd");
  tail.Consume(3);
  EXPECT_EQ(tail.position(), 3u);
  EXPECT_FALSE(*tail.Read(4));
  EXPECT_EQ(tail.pending(), "def");
  Append("g");
  EXPECT_FALSE(*tail.Read(4));
  EXPECT_EQ(tail.pending(), "defg");
  tail.ReadAgain();
  EXPECT_EQ(tail.pending(), "");
  EXPECT_FALSE(*tail.Read(10));
  EXPECT_EQ(tail.pending(), "defg");
}

TEST_F(ChangedFileTest, AFileThatBecameShorterIsReadAnew) {
  FileTail tail(&files_, kPath);
  Write("abcdef");
  EXPECT_FALSE(*tail.Read(10));
  Write("xy");
  EXPECT_FALSE(*tail.Read(10));
  EXPECT_EQ(tail.pending(), "xy");
  EXPECT_EQ(tail.position(), 0u);
}

}  // namespace
}  // namespace keelson
