#include "chief/lifecycle/leadership.h"

#include <memory>

#include "core/base/file_system_testing.h"
#include "core/checkpoint/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class LeadershipTest : public testing::Test {
 protected:
  std::unique_ptr<DirectoryOwner> Take() {
    DirectoryOwner::Options options;
    options.model_dir = "/model";
    options.self.set_owner(7);
    options.self.set_task("chief-0");
    options.self.set_lease_seconds(20);
    // Renewals are the test's.
    options.renew_pause = absl::InfiniteDuration();
    auto owner = DirectoryOwner::Take(std::move(options), &files_, &clock_, &stop_);
    EXPECT_TRUE(owner.ok()) << owner.status();
    return *std::move(owner);
  }

  MemoryFileSystem files_;
  ManualClock clock_;
  StopSignal stop_;
};

TEST_F(LeadershipTest, WithoutAnOwnerOnlyAnotherChiefEndsIt) {
  Leadership leadership(nullptr, &stop_);
  EXPECT_EQ(leadership.Check(), absl::OkStatus());
  EXPECT_EQ(leadership.ConfirmDirectory(), absl::OkStatus());
  EXPECT_TRUE(leadership.may_report());
  EXPECT_FALSE(leadership.is_heir());
  leadership.NoteSnapshot(5);
  EXPECT_EQ(leadership.snapshot_step(), 0) << "nothing remembers it";
  EXPECT_FALSE(stop_.raised());
}

TEST_F(LeadershipTest, AnotherChiefStopsThisOneAndTheFirstWordStays) {
  Leadership leadership(nullptr, &stop_);
  leadership.NoteReplaced(absl::AbortedError("ps-0: term 8"));
  EXPECT_TRUE(stop_.raised());
  leadership.NoteReplaced(absl::AbortedError("ps-1: term 9"));
  EXPECT_EQ(leadership.Check(),
            absl::AlreadyExistsError("another chief has taken this one's place: ps-0: term 8"));
}

TEST_F(LeadershipTest, ALostDirectoryIsFoundWhenItIsConfirmed) {
  const std::unique_ptr<DirectoryOwner> owner = Take();
  Leadership leadership(owner.get(), &stop_);
  leadership.NoteSnapshot(5);
  EXPECT_EQ(leadership.snapshot_step(), 5);
  EXPECT_EQ(leadership.ConfirmDirectory(), absl::OkStatus());
  v1::JobFile other = (*ReadJobFile(&files_, "/model"))->job;
  other.set_owner(8);
  other.set_task("chief-1");
  files_.SetContent(JobFilePath("/model"), FormatJobFile(other));
  EXPECT_EQ(leadership.Check(), absl::OkStatus()) << "it does not look at the storage";
  EXPECT_TRUE(absl::IsAlreadyExists(leadership.ConfirmDirectory()));
  const absl::Status status = leadership.Check();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("chief-1"));
  EXPECT_FALSE(leadership.may_report());
}

TEST_F(LeadershipTest, NothingIsReportedOnceTheOwnersLeaseHasPassed) {
  const std::unique_ptr<DirectoryOwner> owner = Take();
  const Leadership leadership(owner.get(), &stop_);
  EXPECT_TRUE(leadership.may_report());
  clock_.Advance(absl::Seconds(21));
  EXPECT_FALSE(leadership.may_report());
  EXPECT_EQ(leadership.Check(), absl::OkStatus());
}

}  // namespace
}  // namespace keelson
