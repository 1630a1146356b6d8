#include "core/checkpoint/snapshot_lease.h"

#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SnapshotLeaseTest : public testing::Test {
 protected:
  SnapshotLeaseTest() { EXPECT_TRUE(files_.CreateDirectories("/job").ok()); }

  // Files of a snapshot; their content does not matter here.
  void Commit(int64_t step, const RetentionPolicy& policy = {.keep_max = 1}) {
    const std::string prefix = directory_.SnapshotPrefix(step);
    files_.SetContent(DataPath(prefix, 0, 1), "data");
    files_.SetContent(IndexPath(prefix), "index");
    ASSERT_EQ(directory_.Commit(step, policy), absl::OkStatus());
  }
  std::unique_ptr<SnapshotLease> Take(int64_t step, const std::string& holder = "evaluator-0") {
    auto lease = SnapshotLease::Take(&files_, directory_.SnapshotPrefix(step), holder, &clock_);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return *std::move(lease);
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    const std::vector<SnapshotInfo> snapshots = *directory_.List();
    for (const SnapshotInfo& snapshot : snapshots) steps.push_back(snapshot.step);
    return steps;
  }
  bool OnDisk(int64_t step) { return *files_.Exists(IndexPath(directory_.SnapshotPrefix(step))); }
  std::vector<std::string> LeaseNames() {
    std::vector<std::string> names;
    const std::map<std::string, LeaseFile> leases = *ListLeases(&files_, "/job");
    for (const auto& [name, lease] : leases) names.push_back(name);
    return names;
  }

  MemoryFileSystem files_;
  ManualClock clock_;
  CheckpointDirectory directory_{&files_, "/job", &clock_};
};

TEST_F(SnapshotLeaseTest, IsAFileBesideTheSnapshotUntilItIsGivenBack) {
  Commit(1);
  auto lease = Take(1, "reader \"x\" \xff");
  const auto leases = ListLeases(&files_, "/job");
  ASSERT_TRUE(leases.ok()) << leases.status();
  ASSERT_EQ(leases->size(), 1u);
  EXPECT_THAT(leases->begin()->first, HasSubstr("model.ckpt-1.lease-"));
  EXPECT_EQ(leases->begin()->second.snapshot, "model.ckpt-1");
  EXPECT_THAT(leases->begin()->second.holder, HasSubstr("reader \"x\" "));
  EXPECT_EQ(leases->begin()->second.expires, clock_.Now() + SnapshotLease::kDuration);
  EXPECT_EQ(lease->expires(), clock_.Now() + SnapshotLease::kDuration);
  lease.reset();
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

TEST_F(SnapshotLeaseTest, KeepsASnapshotAndItsPlaceInTheList) {
  Commit(1);
  auto lease = Take(1);
  Commit(2);
  Commit(3);
  EXPECT_THAT(Steps(), ElementsAre(1, 3));
  EXPECT_FALSE(OnDisk(2));
  lease.reset();
  EXPECT_THAT(Steps(), ElementsAre(1, 3));
  Commit(4);
  EXPECT_THAT(Steps(), ElementsAre(4));
  EXPECT_THAT(*files_.List("/job"),
              ElementsAre("checkpoint", "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index"));
}

TEST_F(SnapshotLeaseTest, ADeadReadersLeaseExpiresAndGoesWithTheSnapshot) {
  Commit(1);
  const auto dead = Take(1);
  clock_.Advance(SnapshotLease::kDuration - absl::Seconds(1));
  Commit(2);
  EXPECT_TRUE(OnDisk(1));
  clock_.Advance(absl::Seconds(1));
  Commit(3);
  EXPECT_FALSE(OnDisk(1));
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

TEST_F(SnapshotLeaseTest, RenewingHoldsOn) {
  Commit(1);
  auto lease = Take(1);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(SnapshotLease::kDuration / 2);
    ASSERT_EQ(lease->Renew(), absl::OkStatus());
  }
  EXPECT_EQ(lease->expires(), clock_.Now() + SnapshotLease::kDuration);
  Commit(2);
  EXPECT_TRUE(OnDisk(1));
  EXPECT_EQ(LeaseNames().size(), 1u);
}

TEST_F(SnapshotLeaseTest, OneOfTwoReadersIsEnough) {
  Commit(1);
  auto first = Take(1);
  const auto second = Take(1);
  first.reset();
  Commit(2);
  EXPECT_TRUE(OnDisk(1));
}

TEST_F(SnapshotLeaseTest, AMissingSnapshotIsNotFoundAndLeavesNoLease) {
  const absl::Status status =
      SnapshotLease::Take(&files_, "/job/model.ckpt-9", "x", &clock_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job/model.ckpt-9.index"));
  EXPECT_THAT(*files_.List("/job"), IsEmpty());
}

TEST_F(SnapshotLeaseTest, RenewingALeaseOnADeletedSnapshotIsNotFound) {
  Commit(1);
  const auto lease = Take(1);
  clock_.Advance(SnapshotLease::kDuration);
  Commit(2);
  const absl::Time expired = lease->expires();
  EXPECT_EQ(lease->Renew().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(lease->expires(), expired);
}

TEST_F(SnapshotLeaseTest, AnUnwritableDirectoryIsAnError) {
  Commit(1);
  files_.SetCapacity(0);
  const absl::Status status =
      SnapshotLease::Take(&files_, directory_.SnapshotPrefix(1), "x", &clock_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SnapshotLeaseTest, WhatIsNoLeaseHoldsNothing) {
  Commit(1);
  for (const char* text :
       {"", "garbage", "[]", R"({"expires":"2100-01-01T00:00:00Z"})",
        R"({"expires":"soon","holder":"x"})", R"({"expires":4102444800,"holder":"x"})",
        R"({"expires":"2100-01-01T00:00:00Z","holder":1})"}) {
    files_.SetContent("/job/model.ckpt-1.lease-aa", text);
    const std::map<std::string, LeaseFile> leases = *ListLeases(&files_, "/job");
    EXPECT_EQ(leases.at("model.ckpt-1.lease-aa").expires, absl::InfinitePast()) << text;
  }
  Commit(2);
  EXPECT_FALSE(OnDisk(1));
}

TEST_F(SnapshotLeaseTest, ARestartRemovesWhatHasExpiredOnly) {
  Commit(1);
  const auto dead = Take(1);
  clock_.Advance(absl::Minutes(1));
  const auto alive = Take(1);
  clock_.Advance(SnapshotLease::kDuration - absl::Minutes(1));
  ASSERT_EQ(directory_.RemoveStaleFiles({}), absl::OkStatus());
  EXPECT_EQ(LeaseNames().size(), 1u);
  EXPECT_TRUE(OnDisk(1));
}

TEST_F(SnapshotLeaseTest, ALeasedSnapshotIsPreservedLater) {
  const RetentionPolicy hourly = {.keep_max = 1, .keep_every_n_hours = 1};
  Commit(1, hourly);
  clock_.Advance(absl::Hours(2));
  Commit(2, hourly);
  auto lease = Take(2);
  clock_.Advance(absl::Minutes(1));
  Commit(3, hourly);
  EXPECT_THAT(Steps(), ElementsAre(2, 3));
  lease.reset();
  Commit(4, hourly);
  EXPECT_THAT(Steps(), ElementsAre(4));
  EXPECT_TRUE(OnDisk(2));
}

TEST_F(SnapshotLeaseTest, ALeaseThatIsTooLargeHoldsNothingAndIsLogged) {
  Commit(1);
  const std::string lease = R"({"expires":"2100-01-01T00:00:00Z","holder":"x"})";
  const std::string path = "/job/model.ckpt-1.lease-aa";
  files_.SetContent(path, lease + std::string(65536 - lease.size(), ' '));
  EXPECT_EQ(ListLeases(&files_, "/job")->begin()->second.holder, "x");
  files_.SetContent(path, lease + std::string(65537 - lease.size(), ' '));
  testing::internal::CaptureStderr();
  EXPECT_EQ(ListLeases(&files_, "/job")->begin()->second.expires, absl::InfinitePast());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a lease that holds nothing: " + path +
                        ": expected at most 65536 bytes, found 65537"));
}

}  // namespace
}  // namespace keelson
