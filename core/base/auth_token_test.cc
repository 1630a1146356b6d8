#include "core/base/auth_token.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "0123456789abcdef-._~+/==";

class AuthTokenTest : public testing::Test {
 protected:
  AuthTokenTest() { path_ = JoinPath(FreshDirectory(), "token"); }
  ~AuthTokenTest() override {
    unlink(path_.c_str());
    rmdir(DirectoryOf(path_).c_str());
  }

  absl::StatusOr<std::string> Read(const std::string& text, mode_t mode = 0600) {
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    chmod(path_.c_str(), mode);
    testing::internal::CaptureStderr();
    absl::StatusOr<std::string> token = ReadToken("--auth_token_file", path_);
    log_ = testing::internal::GetCapturedStderr();
    return token;
  }

  std::string path_;
  // The log of the last Read.
  std::string log_;
};

TEST_F(AuthTokenTest, IsTheFirstLine) {
  EXPECT_EQ(*Read(kToken), kToken);
  EXPECT_EQ(*Read(absl::StrCat(kToken, "\n")), kToken);
  EXPECT_EQ(*Read(absl::StrCat(" ", kToken, " \r\nmore of it\n")), kToken);
  EXPECT_EQ(*Read(std::string(16, 'a')), std::string(16, 'a'));
  EXPECT_EQ(*Read(std::string(4096, 'a')), std::string(4096, 'a'));
}

TEST_F(AuthTokenTest, RefusesOtherLinesAndKeepsThemOutOfTheMessage) {
  for (const std::string& text :
       {std::string(), std::string("\n") + kToken, std::string("short"), std::string(15, 'a'),
        std::string(4097, 'a'), std::string("two words of a token"),
        std::string("a token with a tab\t."), std::string("bad%41token-of-many-bytes"),
        std::string("tökenöfmänyönesöthatcöunt"), std::string(20, '\0')}) {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("--auth_token_file ", path_, ": expected a token of ")));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("bad%41")));
  }
  EXPECT_THAT(std::string(Read("short").status().message()),
              HasSubstr("16 to 4096 characters in the first line, found 5"));
}

TEST_F(AuthTokenTest, NamesAFileThatIsNotThere) {
  const absl::Status status = ReadToken("--auth_token_file", path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--auth_token_file"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

TEST_F(AuthTokenTest, WarnsWhenOthersCanReadIt) {
  EXPECT_TRUE(Read(kToken, 0644).ok());
  EXPECT_THAT(log_, HasSubstr("every user of this machine can read it"));
  EXPECT_THAT(log_, Not(HasSubstr(kToken)));
  EXPECT_TRUE(Read(kToken, 0640).ok());
  EXPECT_EQ(log_, "");
}

TEST(SameToken, ComparesWholeTokens) {
  EXPECT_TRUE(SameToken(kToken, kToken));
  EXPECT_FALSE(SameToken(kToken, "0123456789abcdef-._~+/=-"));
  EXPECT_FALSE(SameToken(kToken, "1123456789abcdef-._~+/=="));
  EXPECT_FALSE(SameToken(kToken, "0123456789abcdef"));
  EXPECT_FALSE(SameToken("", ""));
  EXPECT_FALSE(SameToken(kToken, ""));
}

}  // namespace
}  // namespace keelson
