#include "core/cluster/consistency.h"

#include <utility>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(ConsistencyModeTest, TextsAreReadAndWritten) {
  for (const char* text : {"async", "ssp:0", "ssp:4", "sync:1", "sync:3", "sync:3/5"}) {
    const auto mode = ConsistencyMode::Parse(text);
    ASSERT_TRUE(mode.ok()) << mode.status();
    EXPECT_EQ(mode->ToString(), text);
  }
  EXPECT_EQ(ConsistencyMode::Parse("sync:3/3")->ToString(), "sync:3");
}

TEST(ConsistencyModeTest, ATextMeansItsNumbers) {
  const ConsistencyMode bounded = ConsistencyMode::Parse("ssp:4").value();
  EXPECT_EQ(bounded.kind, ConsistencyMode::kBoundedStaleness);
  EXPECT_EQ(bounded.staleness, 4);
  EXPECT_FALSE(bounded.synchronous());
  const ConsistencyMode backups = ConsistencyMode::Parse("sync:3/5").value();
  EXPECT_TRUE(backups.synchronous());
  EXPECT_TRUE(backups.contested());
  EXPECT_EQ(backups.replicas_to_aggregate, 3);
  EXPECT_EQ(backups.total_replicas, 5);
  EXPECT_FALSE(ConsistencyMode::Parse("sync:3").value().contested());
  EXPECT_EQ(ConsistencyMode::Parse("async").value(), ConsistencyMode());
}

TEST(ConsistencyModeTest, OtherTextsAreRefused) {
  for (const char* text : {"", "Async", "sync", "sync:", "sync:x", "sync:3/", "sync:3/0", "sync:/3",
                           "sync:3/5/7", "ssp", "ssp:", "ssp:1.5", "ssp:4 x"}) {
    const absl::Status status = ConsistencyMode::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("found \"") + text + "\""));
  }
}

TEST(ConsistencyModeTest, NumbersAreChecked) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"ssp:-1", "mode.bounded_staleness.staleness: expected 0..1073741824, found -1"},
      {"sync:0", "mode.synchronous.replicas_to_aggregate: expected 1..1048576, found 0"},
      {"sync:-2", "mode.synchronous.replicas_to_aggregate: expected 1..1048576, found -2"},
      {"sync:9999999",
       "mode.synchronous.replicas_to_aggregate: expected 1..1048576, found 9999999"},
      {"sync:4/3",
       "mode.synchronous.total_replicas: expected 4 (replicas_to_aggregate)..1048576, found 3"},
  };
  for (const auto& [text, error] : kErrors) {
    EXPECT_EQ(ConsistencyMode::Parse(text).status(), absl::InvalidArgumentError(error));
  }
}

TEST(ConsistencyModeTest, MessagesAreReadAndWritten) {
  for (const char* text : {"async", "ssp:4", "sync:3", "sync:3/5"}) {
    const ConsistencyMode mode = ConsistencyMode::Parse(text).value();
    EXPECT_EQ(ConsistencyMode::FromProto(mode.ToProto()).value(), mode) << text;
  }
  EXPECT_EQ(ConsistencyMode::FromProto({}).value(), ConsistencyMode());
}

TEST(ConsistencyModeTest, AMessageNeedNotNameTheTotal) {
  v1::ConsistencyMode proto;
  proto.mutable_synchronous()->set_replicas_to_aggregate(3);
  EXPECT_EQ(ConsistencyMode::FromProto(proto).value().total_replicas, 3);
}

TEST(ConsistencyModeTest, ErrorsNameThePlaceOfTheMessage) {
  v1::ConsistencyMode proto;
  proto.mutable_bounded_staleness()->set_staleness(-3);
  EXPECT_EQ(ConsistencyMode::FromProto(proto, "consistency.mode").status(),
            absl::InvalidArgumentError(
                "consistency.mode.bounded_staleness.staleness: expected 0..1073741824, found -3"));
}

}  // namespace
}  // namespace keelson
