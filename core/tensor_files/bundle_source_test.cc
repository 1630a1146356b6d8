#include "core/tensor_files/bundle_source.h"

#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/snapshot_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;

TEST(BundleSourceTest, ASnapshotSaysWhatItsVariablesAre) {
  const std::string directory = FreshDirectory();
  WriteTestSnapshot(directory, 7);
  auto source = BundleSource::Open(directory + "/model.ckpt-7");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(NamesOf((*source)->List()),
              ElementsAre("_keelson/job", "_keelson/shard-0-of-2", "_keelson/shard-1-of-2",
                          "beta1_power", "dense/bias", "dense/bias/Momentum", "dense/kernel",
                          "dense/kernel/Momentum", "global_step"));
  EXPECT_THAT(NamesOf(*(*source)->Variables()), ElementsAre("dense/bias", "dense/kernel"));
}

TEST(BundleSourceTest, PartsAreReadAsFloats) {
  const std::string directory = FreshDirectory();
  WriteTestSnapshot(directory, 7);
  auto source = BundleSource::Open(directory + "/model.ckpt-7");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_TRUE((*source)->reads_parts());
  std::vector<float> part(3);
  ASSERT_EQ((*source)->ReadFloats("dense/kernel", 5, absl::MakeSpan(part)), absl::OkStatus());
  EXPECT_THAT(part, ElementsAre(5, 6, 7));
  EXPECT_EQ((*source)->ReadFloats("dense/kernel", 10, absl::MakeSpan(part)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BundleSourceTest, ABundleWithoutKeelsonsStateIsReadByNames) {
  const std::string prefix = FreshDirectory() + "/tf";
  WriteSmallBundle(prefix);
  auto source = BundleSource::Open(prefix);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(NamesOf(*(*source)->Variables()), ElementsAre("b", "w"));
}

TEST(BundleSourceTest, WhatCannotBeReadIsAnError) {
  const std::string prefix = FreshDirectory() + "/model.ckpt-1";
  EXPECT_EQ(BundleSource::Open(prefix).status().code(), absl::StatusCode::kNotFound);
  WriteJobStateBundle(prefix, "no JobState\xff");
  auto source = BundleSource::Open(prefix);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Read("_keelson/job").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*source)->Read("w").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ((*source)->Variables().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace keelson
