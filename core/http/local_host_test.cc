#include "core/http/local_host.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(IsLocalHost, TakesTheNamesOfThisMachineWithAnyPort) {
  for (const char* host : {"localhost", "LOCALHOST:6006", "localhost:", "127.0.0.1",
                           "127.0.0.1:6006", "127.9.8.7:80", "[::1]", "[::1]:6006"}) {
    EXPECT_TRUE(IsLocalHost(host)) << host;
  }
}

TEST(IsLocalHost, TakesNoOthers) {
  for (const char* host :
       {"", ":6006", "evil.example", "evil.example:6006", "localhost.evil.example",
        "evil.localhost", "localhost:x", "localhost:1:2", "127.0.0.1.evil.example",
        "127.0.0.1:6006x", "127.1", "128.0.0.1", "10.0.0.1:6006", "0.0.0.0", "::1", "[::2]",
        "[::1]x", "[::1"}) {
    EXPECT_FALSE(IsLocalHost(host)) << host;
  }
}

}  // namespace
}  // namespace keelson
