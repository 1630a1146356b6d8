#include "core/checkpoint/directory_owner.h"

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kModelDir[] = "/model";
constexpr char kHere[] = "boot of this machine";
constexpr char kElsewhere[] = "boot of another machine";
constexpr absl::Duration kLease = absl::Seconds(20);

// Processes on two machines that share a directory, and a clock that the test moves.
class DirectoryOwnerTest : public testing::Test {
 protected:
  using Owner = std::unique_ptr<DirectoryOwner>;

  static DirectoryOwner::Options Of(uint64_t incarnation, const std::string& boot_id = kHere) {
    DirectoryOwner::Options options;
    options.model_dir = kModelDir;
    options.self.set_owner(incarnation);
    options.self.set_job("mnist");
    options.self.set_task("chief-0");
    options.self.set_host(absl::StrCat("host-of-", incarnation));
    options.self.set_pid(static_cast<int64_t>(incarnation));
    options.self.set_boot_id(boot_id);
    options.self.set_lease_seconds(absl::ToInt64Seconds(kLease));
    options.look_pause = absl::Milliseconds(1);
    // Renewals are the test's.
    options.renew_pause = absl::InfiniteDuration();
    return options;
  }

  static DirectoryOwner::Options Renewing(DirectoryOwner::Options options) {
    options.renew_pause = absl::Milliseconds(1);
    return options;
  }

  absl::StatusOr<Owner> Take(DirectoryOwner::Options options) {
    return DirectoryOwner::Take(std::move(options), &files_, &clock_, &stop_);
  }

  Owner MustTake(DirectoryOwner::Options options) {
    absl::StatusOr<Owner> owner = Take(std::move(options));
    EXPECT_TRUE(owner.ok()) << owner.status();
    return owner.ok() ? *std::move(owner) : nullptr;
  }

  v1::JobFile Stored() {
    const auto stored = ReadJobFile(&files_, kModelDir);
    EXPECT_TRUE(stored.ok() && stored->has_value()) << stored.status();
    return stored.ok() && stored->has_value() ? (*stored)->job : v1::JobFile();
  }

  // What a process leaves that is killed: its file, and a lock that is free.
  v1::JobFile LeaveBehind(DirectoryOwner::Options options) {
    const std::string path = JobFilePath(kModelDir);
    Owner owner = MustTake(std::move(options));
    const v1::JobFile left = Stored();
    owner = nullptr;
    files_.SetContent(path, FormatJobFile(left));
    return left;
  }

  // Takes the directory on a thread; `while_it_waits` is called until that has ended.
  absl::StatusOr<Owner> TakeWhile(DirectoryOwner::Options options,
                                  const std::function<void()>& while_it_waits) {
    absl::StatusOr<Owner> result = absl::UnknownError("not taken");
    std::atomic<bool> ended = false;
    std::thread taker([&] {
      result = Take(std::move(options));
      ended = true;
    });
    while (!ended) {
      while_it_waits();
      std::this_thread::yield();
    }
    taker.join();
    return result;
  }

  MemoryFileSystem files_;
  ManualClock clock_;
  StopSignal stop_;
};

TEST_F(DirectoryOwnerTest, TakesAnEmptyDirectoryAndReleasesIt) {
  Owner first = MustTake(Of(1));
  EXPECT_EQ(first->term(), 1u);
  EXPECT_TRUE(first->in_force());
  EXPECT_EQ(Stored().owner(), 1u);
  EXPECT_FALSE(Stored().released());
  first = nullptr;
  EXPECT_TRUE(Stored().released());
  // On another machine too: nothing is waited for.
  EXPECT_EQ(MustTake(Of(2, kElsewhere))->term(), 2u);
  EXPECT_EQ(MustTake(Of(3))->term(), 3u);
}

TEST_F(DirectoryOwnerTest, RaisesItsTermUnlessTheDirectoryIsLost) {
  Owner owner = MustTake(Of(1));
  EXPECT_EQ(owner->RaiseTerm(6).value(), 7u);
  EXPECT_EQ(Stored().term(), 7u);
  EXPECT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_EQ(owner->RaiseTerm(3).value(), 7u) << "it never falls";
  v1::JobFile other = Stored();
  other.set_owner(2);
  other.set_term(8);
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(other));
  EXPECT_EQ(owner->RaiseTerm(8).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Stored().term(), 8u);
  EXPECT_TRUE(stop_.raised());
}

TEST_F(DirectoryOwnerTest, RefusesASecondOneOnTheMachineAndNamesTheFirst) {
  const Owner first = MustTake(Of(1));
  const absl::Status second = Take(Of(2)).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << second;
  EXPECT_THAT(
      std::string(second.message()),
      AllOf(HasSubstr("checkpoint.model_dir /model"), HasSubstr("job mnist, chief-0"),
            HasSubstr("host-of-1 (pid 1)"), HasSubstr(Stored().since()), HasSubstr("--model_dir")));
  EXPECT_EQ(Stored().owner(), 1u);
  EXPECT_EQ(first->Confirm(), absl::OkStatus());
}

TEST_F(DirectoryOwnerTest, InheritsAtOnceFromAProcessOfThisMachineThatHasEnded) {
  LeaveBehind(Of(1));
  const Owner second = MustTake(Of(2));
  EXPECT_EQ(second->term(), 2u);
  EXPECT_EQ(Stored().owner(), 2u);
}

TEST_F(DirectoryOwnerTest, WaitsForTheLeaseOfAnotherMachine) {
  LeaveBehind(Of(1, kElsewhere));
  const absl::Duration before = clock_.Monotonic();
  const auto second = TakeWhile(Of(2), [this] { clock_.Advance(absl::Seconds(1)); });
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GE(clock_.Monotonic() - before, kLease);
  EXPECT_EQ((*second)->term(), 2u);
}

TEST_F(DirectoryOwnerTest, WaitsForTheLeaseWhereTheLockIsAnotherOne) {
  v1::JobFile left = LeaveBehind(Of(1));
  left.set_lock("of a directory that was mounted elsewhere");
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(left));
  const absl::Duration before = clock_.Monotonic();
  const auto second = TakeWhile(Of(2), [this] { clock_.Advance(absl::Seconds(1)); });
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GE(clock_.Monotonic() - before, kLease);
}

TEST_F(DirectoryOwnerTest, RefusesWhileAnotherMachineRenews) {
  v1::JobFile left = LeaveBehind(Of(1, kElsewhere));
  const auto second = TakeWhile(Of(2), [&] {
    left.set_renewals(left.renewals() + 1);
    files_.SetContent(JobFilePath(kModelDir), FormatJobFile(left));
  });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("host-of-1"));
  EXPECT_EQ(Stored().owner(), 1u);
}

TEST_F(DirectoryOwnerTest, OneOfTwoThatWaitTakesIt) {
  LeaveBehind(Of(1, "boot of a third machine"));
  // Two machines share the file, but no lock.
  files_.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "lock" ? absl::UnimplementedError("no locks") : absl::OkStatus();
  });
  absl::StatusOr<Owner> elsewhere = absl::UnknownError("not taken");
  std::atomic<bool> ended = false;
  std::thread other([&] {
    elsewhere = Take(Renewing(Of(3, kElsewhere)));
    ended = true;
  });
  // The clock stands still once one has it, so that its lease lasts.
  const auto advance = [this] {
    if (Stored().term() == 1) clock_.Advance(absl::Milliseconds(100));
  };
  const auto here = TakeWhile(Renewing(Of(2)), advance);
  while (!ended) advance();
  other.join();
  EXPECT_NE(here.ok(), elsewhere.ok());
  EXPECT_EQ((here.ok() ? elsewhere : here).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Stored().owner(), here.ok() ? 2u : 3u);
}

TEST_F(DirectoryOwnerTest, AnOwnerThatWasReplacedIsLost) {
  const Owner frozen = MustTake(Of(1));
  EXPECT_EQ(frozen->lost(), absl::OkStatus());
  v1::JobFile other = Of(2, kElsewhere).self;
  other.set_format(kJobFileFormat);
  other.set_term(2);
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(other));
  clock_.Advance(kLease);
  EXPECT_FALSE(frozen->in_force());
  const absl::Status confirmed = frozen->Confirm();
  EXPECT_EQ(confirmed.code(), absl::StatusCode::kAlreadyExists) << confirmed;
  EXPECT_THAT(std::string(confirmed.message()),
              AllOf(HasSubstr("taken over by job mnist, chief-0 on host-of-2"), HasSubstr("20s")));
  EXPECT_EQ(frozen->lost(), confirmed);
  EXPECT_TRUE(stop_.raised());
  EXPECT_FALSE(frozen->in_force());
  EXPECT_EQ(Stored().owner(), 2u);
}

TEST_F(DirectoryOwnerTest, ALostOneReleasesNothing) {
  Owner frozen = MustTake(Of(1));
  v1::JobFile other = Stored();
  other.set_owner(2);
  other.set_term(2);
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(other));
  frozen = nullptr;
  EXPECT_EQ(Stored().owner(), 2u);
  EXPECT_FALSE(Stored().released());
}

TEST_F(DirectoryOwnerTest, StorageThatFailsEndsTheLeaseButNotTheOwner) {
  const Owner owner = MustTake(Of(1));
  files_.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "replace" ? absl::UnavailableError("away") : absl::OkStatus();
  });
  clock_.Advance(kLease / 2);
  EXPECT_EQ(owner->Confirm().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(owner->in_force());
  clock_.Advance(kLease / 2);
  EXPECT_FALSE(owner->in_force());
  EXPECT_EQ(owner->lost(), absl::OkStatus());
  EXPECT_FALSE(stop_.raised());
  files_.SetFault(nullptr);
  EXPECT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_TRUE(owner->in_force());
}

TEST_F(DirectoryOwnerTest, AnAnswerThatWasLostIsNoLoss) {
  std::atomic<bool> lose_next = true;
  files_.SetFault([&](absl::string_view operation, const std::string&) {
    const bool lost = operation == "replaced" && lose_next.exchange(false);
    return lost ? absl::UnavailableError("answer lost") : absl::OkStatus();
  });
  const Owner owner = MustTake(Of(1));
  EXPECT_FALSE(lose_next);
  lose_next = true;
  EXPECT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_FALSE(lose_next);
  EXPECT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_EQ(owner->lost(), absl::OkStatus());
}

TEST_F(DirectoryOwnerTest, ADirectoryThatWasEmptiedIsMarkedAgain) {
  const Owner owner = MustTake(Of(1));
  files_.RemoveTree(kModelDir);
  EXPECT_EQ(owner->Confirm().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(owner->lost(), absl::OkStatus());
  ASSERT_EQ(files_.CreateDirectories(kModelDir), absl::OkStatus());
  EXPECT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_EQ(Stored().owner(), 1u);
  EXPECT_EQ(Stored().term(), 1u);
}

// Directories that can be read, but not written.
class HeirTest : public DirectoryOwnerTest {
 protected:
  void SetReadOnly(bool read_only) {
    files_.SetFault([read_only](absl::string_view operation, const std::string& path) {
      const bool written = operation != "look" && operation != "lock" && operation != "create";
      return read_only && written ? absl::PermissionDeniedError(path + ": read-only")
                                  : absl::OkStatus();
    });
  }
};

TEST_F(HeirTest, ARestartedProcessTakesADirectoryOnceItCanBeWritten) {
  LeaveBehind(Of(1));
  SetReadOnly(true);
  DirectoryOwner::Options options = Of(2);
  options.self.set_config_hash("of the heir");
  const Owner heir = MustTake(std::move(options));
  EXPECT_TRUE(heir->heir());
  EXPECT_EQ(heir->term(), 2u);
  EXPECT_EQ(*heir->RaiseTerm(6), 7u) << "servers have obeyed another heir";
  EXPECT_FALSE(heir->in_force());
  EXPECT_EQ(heir->Confirm().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(heir->lost(), absl::OkStatus());
  heir->NoteConfigInUse();
  SetReadOnly(false);
  EXPECT_EQ(heir->Confirm(), absl::OkStatus());
  EXPECT_FALSE(heir->heir());
  EXPECT_EQ(Stored().config_hash(), "of the heir");
  EXPECT_EQ(heir->term(), 7u);
  EXPECT_EQ(Stored().term(), 7u);
  EXPECT_TRUE(heir->in_force());
  EXPECT_EQ(Stored().owner(), 2u);
  EXPECT_EQ(heir->Confirm(), absl::OkStatus());
}

TEST_F(HeirTest, ADirectoryInWhichNobodyTrainedMustBeWritable) {
  ASSERT_EQ(files_.CreateDirectories(kModelDir), absl::OkStatus());
  SetReadOnly(true);
  EXPECT_EQ(Take(Of(1)).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(HeirTest, WaitsForAPredecessorThatLivesAfterAll) {
  v1::JobFile left = LeaveBehind(Of(1, kElsewhere));
  SetReadOnly(true);
  const auto taken = TakeWhile(Of(2), [this] { clock_.Advance(absl::Seconds(1)); });
  ASSERT_TRUE(taken.ok()) << taken.status();
  const Owner& heir = *taken;
  // It was frozen, and renews before the heir could take the directory.
  left.set_renewals(left.renewals() + 1);
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(left));
  SetReadOnly(false);
  EXPECT_EQ(heir->Confirm().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(heir->lost(), absl::OkStatus());
  left.set_released(true);
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(left));
  EXPECT_EQ(heir->Confirm(), absl::OkStatus());
  EXPECT_EQ(Stored().owner(), 2u);
}

TEST_F(HeirTest, LosesItsDirectoryToAThirdOne) {
  LeaveBehind(Of(1));
  SetReadOnly(true);
  const Owner heir = MustTake(Of(2));
  v1::JobFile other = Of(3, kElsewhere).self;
  other.set_format(kJobFileFormat);
  other.set_term(2);
  files_.SetContent(JobFilePath(kModelDir), FormatJobFile(other));
  SetReadOnly(false);
  EXPECT_EQ(heir->Confirm().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Stored().owner(), 3u);
}

TEST_F(DirectoryOwnerTest, RemembersTheNewestSnapshotOfAnyOwner) {
  Owner first = MustTake(Of(1));
  EXPECT_EQ(first->snapshot_step(), 0);
  first->NoteSnapshot(300);
  first->NoteSnapshot(200);
  ASSERT_EQ(first->Confirm(), absl::OkStatus());
  EXPECT_EQ(Stored().snapshot_step(), 300);
  first = nullptr;
  EXPECT_EQ(MustTake(Of(2))->snapshot_step(), 300);
  EXPECT_EQ(Stored().snapshot_step(), 300);
}

TEST_F(DirectoryOwnerTest, TellsOfTheConfigurationThatWasInUse) {
  const auto with_config = [](uint64_t incarnation, const std::string& hash) {
    DirectoryOwner::Options options = Of(incarnation);
    options.self.set_config_hash(hash);
    options.self.set_config("model of " + hash);
    return options;
  };
  Owner owner = MustTake(with_config(1, "first"));
  EXPECT_EQ(Stored().config_hash(), "");
  owner->NoteConfigInUse();
  ASSERT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_EQ(Stored().config_hash(), "first");
  EXPECT_EQ(Stored().config(), "model of first");
  owner = nullptr;
  // One that ends before it trains.
  owner = MustTake(with_config(2, "refused"));
  ASSERT_EQ(owner->Confirm(), absl::OkStatus());
  EXPECT_EQ(Stored().config_hash(), "first");
  owner = nullptr;
  EXPECT_TRUE(Stored().released());
  EXPECT_EQ(Stored().config(), "model of first");
  owner = MustTake(with_config(3, "second"));
  owner->NoteConfigInUse();
  owner = nullptr;
  EXPECT_EQ(Stored().config(), "model of second");
}

TEST_F(DirectoryOwnerTest, WhoMayNotFollowChangesNothing) {
  v1::JobFile left = LeaveBehind(Of(1));
  DirectoryOwner::Options options = Of(2);
  uint64_t predecessor = 0;
  options.may_follow = [&](const v1::JobFile& job) {
    predecessor = job.owner();
    return absl::FailedPreconditionError("another configuration");
  };
  EXPECT_EQ(Take(std::move(options)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(predecessor, 1u);
  EXPECT_EQ(Stored().owner(), 1u);
  EXPECT_TRUE(Take(Of(3)).ok());
}

TEST_F(DirectoryOwnerTest, RenewsOnAThreadOfItsOwn) {
  const Owner owner = MustTake(Renewing(Of(1)));
  while (Stored().renewals() < 3) std::this_thread::yield();
  EXPECT_EQ(Stored().term(), 1u);
}

TEST_F(DirectoryOwnerTest, StopsWaitingWhenItIsToldTo) {
  LeaveBehind(Of(1, kElsewhere));
  const auto second = TakeWhile(Of(2), [this] { stop_.Raise(); });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(DirectoryOwnerTest, WhatIsNoJobFileIsNotReplaced) {
  ASSERT_EQ(files_.CreateDirectories(kModelDir), absl::OkStatus());
  for (const char* text : {"something else\n", "format: 9\n"}) {
    files_.SetContent(JobFilePath(kModelDir), text);
    const absl::Status status = Take(Of(1)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("/model/JOB: "));
  }
}

TEST_F(DirectoryOwnerTest, NamesADirectoryThatCannotBeMade) {
  files_.SetContent("/file", "");
  DirectoryOwner::Options options = Of(1);
  options.model_dir = "/file/model";
  const absl::Status status = Take(std::move(options)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint.model_dir /file/model: "));
}

}  // namespace
}  // namespace keelson
