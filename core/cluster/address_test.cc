#include "core/cluster/address.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, AcceptsNamesAndNumbers) {
  for (const char* text : {"j-ps-0.ns.svc:2222", "localhost:1", "127.0.0.1:65535", "[::1]:2222",
                           "[fe80::1:2]:80", "under_score:9"}) {
    const auto address = ParseAddress("field", text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(AddressTest, KnowsLiteralHosts) {
  EXPECT_TRUE(ParseAddress("", "127.0.0.1:1")->is_literal());
  EXPECT_TRUE(ParseAddress("", "[::1]:1")->is_literal());
  EXPECT_TRUE(ParseAddress("", "localhost:1")->is_literal());
  EXPECT_FALSE(ParseAddress("", "j-ps-0:1")->is_literal());
}

TEST(AddressTest, RefusesMalformedText) {
  for (const char* text : {"", "host", ":2222", "host:", "host:abc", "host:-1", "host: 1", "a b:1",
                           "::1:2222", "[::1]", "[::x]:1", "[host]:1", "http://host:1"}) {
    const auto address = ParseAddress("TF_CONFIG: cluster.ps[0]", text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(address.status().message(),
                HasSubstr("TF_CONFIG: cluster.ps[0]: expected \"host:port\""))
        << text;
  }
}

TEST(AddressTest, RefusesPortsOutOfRange) {
  for (const char* text : {"host:0", "host:65536", "host:99999999999999"}) {
    const auto address = ParseAddress("--ps_hosts[1]", text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(address.status().message(),
              std::string("--ps_hosts[1]: expected a port in 1..65535, found \"") + text + "\"");
  }
}

}  // namespace
}  // namespace keelson
