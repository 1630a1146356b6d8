#include "core/cluster/host_pattern.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Expand(absl::string_view list) {
  const auto hosts = ExpandHosts("--ps_hosts", list);
  EXPECT_TRUE(hosts.ok()) << hosts.status();
  return hosts.value_or(std::vector<std::string>());
}

std::string Error(absl::string_view list) {
  const absl::Status status = ExpandHosts("--ps_hosts", list).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(HostPatternTest, AListWithoutPatternsStaysItself) {
  EXPECT_THAT(Expand(""), IsEmpty());
  EXPECT_THAT(Expand("a:1"), ElementsAre("a:1"));
  EXPECT_THAT(Expand("a:1, [::1]:2"), ElementsAre("a:1", "[::1]:2"));
  EXPECT_THAT(Expand("a:1,,b:1"), ElementsAre("a:1", "", "b:1"));
}

TEST(HostPatternTest, ARangeCounts) {
  EXPECT_THAT(
      Expand("mnist-ps-{0..2}.mnist:2222"),
      ElementsAre("mnist-ps-0.mnist:2222", "mnist-ps-1.mnist:2222", "mnist-ps-2.mnist:2222"));
  EXPECT_THAT(Expand("{9..11}"), ElementsAre("9", "10", "11"));
  EXPECT_THAT(Expand("h:{3..3}"), ElementsAre("h:3"));
  EXPECT_THAT(Expand("{9223372036854775807..9223372036854775807}"),
              ElementsAre("9223372036854775807"));
}

TEST(HostPatternTest, ALeadingZeroPadsAllNumbers) {
  EXPECT_THAT(Expand("n{08..10}"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(Expand("n{00..03}"), ElementsAre("n00", "n01", "n02", "n03"));
  EXPECT_THAT(Expand("n{1..003}"), ElementsAre("n001", "n002", "n003"));
  EXPECT_THAT(Expand("n{0..1}"), ElementsAre("n0", "n1"));
}

TEST(HostPatternTest, OfSeveralRangesTheLastRunsFastest) {
  EXPECT_THAT(Expand("r{0..1}-n{1..2}:5"), ElementsAre("r0-n1:5", "r0-n2:5", "r1-n1:5", "r1-n2:5"));
}

TEST(HostPatternTest, PatternsAndHostsMix) {
  EXPECT_THAT(Expand("first:1, ps-{0..1}:2 ,127.0.0.1:{7..8}"),
              ElementsAre("first:1", "ps-0:2", "ps-1:2", "127.0.0.1:7", "127.0.0.1:8"));
}

TEST(HostPatternErrorTest, BracesThatDoNotPair) {
  for (const char* entry : {"ps-{0..3", "ps-0..3}", "ps-}0..3{", "ps-{0..1}-{"}) {
    EXPECT_EQ(Error(absl::StrCat("a:1,", entry)),
              absl::StrCat("--ps_hosts: expected { and } in pairs, found \"", entry, "\""));
  }
}

TEST(HostPatternErrorTest, BracesThatHoldNoRange) {
  for (const char* range : {"", "0..", "..3", "3", "3..0", "-1..3", "+1..3", "0...3", "a..c",
                            "0..4..2", "a,b", "{0..1", "0..99999999999999999999"}) {
    const std::string entry = absl::StrCat("ps-{", range, "}:1");
    EXPECT_EQ(Error(absl::StrCat("a:1,", entry)),
              absl::StrCat("--ps_hosts: expected {FIRST..LAST}, two whole numbers with FIRST <= "
                           "LAST, found {",
                           range, "} in \"", entry, "\""));
  }
}

TEST(HostPatternErrorTest, TooManyHosts) {
  EXPECT_EQ(Expand("{1..100000}").size(), kMaxPatternHosts);
  const std::string message = "--ps_hosts: expected at most 100000 hosts, found more in ";
  EXPECT_EQ(Error("{0..100000}"), absl::StrCat(message, "\"{0..100000}\""));
  EXPECT_EQ(Error("{0..9223372036854775807}"),
            absl::StrCat(message, "\"{0..9223372036854775807}\""));
  EXPECT_EQ(Error("{1..1000}-{1..1000}"), absl::StrCat(message, "\"{1..1000}-{1..1000}\""));
  EXPECT_EQ(Error("{1..60000},{1..60000}"), absl::StrCat(message, "\"{1..60000}\""));
  EXPECT_EQ(Error("{1..100000},one"), absl::StrCat(message, "\"one\""));
}

}  // namespace
}  // namespace keelson
