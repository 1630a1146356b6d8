#include "core/http/host_names.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

TEST(AdmitsHost, TakesTheNamesOfThisMachineWithAnyPort) {
  for (const char* host : {"localhost", "LOCALHOST:6006", "localhost:", "localhost.:6006",
                           "127.0.0.1", "127.0.0.1:6006", "[::1]", "[::1]:6006"}) {
    EXPECT_TRUE(AdmitsHost(host, {})) << host;
  }
  char own[256] = "";
  ASSERT_EQ(gethostname(own, sizeof(own) - 1), 0);
  EXPECT_TRUE(AdmitsHost(own, {}));
  EXPECT_TRUE(AdmitsHost(absl::StrCat(absl::AsciiStrToUpper(own), ":9090"), {}));
}

TEST(AdmitsHost, TakesWhatNoPageFromElsewhereIsCalled) {
  for (const char* host : {"10.0.0.1:6006", "192.0.2.1", "0.0.0.0:80", "[2001:db8::1]:6006",
                           "[::2]", "mnist-dashboard.default.svc", "Mnist-Dashboard.default.SVC:80",
                           "mnist-dashboard.default.svc.cluster.local",
                           "mnist-ps-0.mnist.default.svc.cluster.local."}) {
    EXPECT_TRUE(AdmitsHost(host, {})) << host;
  }
}

TEST(AdmitsHost, TakesTheNamesThatItIsGiven) {
  const std::vector<std::string> names = {"mnist.example.com.", "run-dashboard"};
  EXPECT_TRUE(AdmitsHost("mnist.example.com", names));
  EXPECT_TRUE(AdmitsHost("MNIST.example.com:443", names));
  EXPECT_TRUE(AdmitsHost("run-dashboard:80", names));
  EXPECT_FALSE(AdmitsHost("example.com", names));
  EXPECT_FALSE(AdmitsHost("a.mnist.example.com", names));
  EXPECT_TRUE(AdmitsHost("evil.example", {"*"}));
  EXPECT_TRUE(AdmitsHost("", {"*"}));
}

TEST(AdmitsHost, TakesNoOthers) {
  for (const char* host : {"",
                           ":6006",
                           ".",
                           "evil.example",
                           "evil.example:6006",
                           "localhost.evil.example",
                           "evil.localhost",
                           "localhost:x",
                           "localhost:1:2",
                           "127.0.0.1.evil.example",
                           "127.0.0.1:6006x",
                           "127.1",
                           "::1",
                           "[::1]x",
                           "[::1",
                           "[localhost]",
                           "[127.0.0.1]",
                           "svc",
                           ".svc",

                           "svc.evil.example",
                           "a.svc.evil.example",
                           "a.notsvc",
                           "a.cluster.local",
                           "a/b.svc"}) {
    EXPECT_FALSE(AdmitsHost(host, {})) << host;
  }
}

TEST(CheckHostNames, TakesNamesAndNumbersAlone) {
  EXPECT_TRUE(CheckHostNames("--flag", {"a", "mnist.example.com", "a_b-c.1", "*"}).ok());
  EXPECT_TRUE(CheckHostNames("--flag", {}).ok());
  for (const char* name : {"", "http://a", "a:80", "a/", "[::1]", "*.example.com", "a b"}) {
    EXPECT_EQ(CheckHostNames("--flag", {"a", name}),
              absl::InvalidArgumentError(absl::StrCat(
                  "--flag: expected a host's name such as mnist.example.com, without scheme and "
                  "port, or *, found \"",
                  name, "\"")));
  }
}

}  // namespace
}  // namespace keelson
