#include "core/cluster/logged_name.h"

#include <string>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(LoggedNameTest, PrintableTextIsAName) {
  for (const std::string& name :
       {std::string("accuracy"), std::string("accuracy of the batch"), std::string("grad/\u00e9"),
        std::string("\u20ac"), std::string("\U0001f600"), std::string(100, 'x')}) {
    EXPECT_EQ(CheckLoggedName(name), absl::OkStatus()) << name;
  }
}

TEST(LoggedNameTest, OtherBytesAreNone) {
  for (const std::string& name :
       {std::string(), std::string(101, 'x'), std::string("two\nlines"), std::string("\x7f"),
        std::string("\xc3"), std::string("\xc0\xaf"), std::string("\xe0\x80\x80"),
        std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"), std::string("\xff"),
        std::string("\xc2\x80"), std::string("\xe2\x28\xa1")}) {
    EXPECT_EQ(CheckLoggedName(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_THAT(CheckLoggedName("two\nlines").message(),
              HasSubstr("printable UTF-8, found \"two\\nlines\", 9 bytes"));
}

TEST(LoggedNameTest, TheJobsOwnNamesAreTaken) {
  for (const char* name : {"loss", "learning_rate", "speed/x", "exchange/staleness"}) {
    EXPECT_THAT(CheckLoggedName(name).message(), HasSubstr("does not report itself")) << name;
  }
  EXPECT_EQ(CheckLoggedName("loss/value"), absl::OkStatus());
}

}  // namespace
}  // namespace keelson
