#include "core/base/file_system.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "core/base/confined_file_system.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Kind { kReal, kMemory, kConfined, kConfinedByComponent };

// What every file system does.
class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() { EXPECT_EQ(files_->CreateDirectories(directory_), absl::OkStatus()); }
  std::string Path(const std::string& name) { return JoinPath(directory_, name); }
  void Write(const std::string& path, const std::string& content, bool truncate = true) {
    const auto file = files_->OpenForAppend(path, truncate);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ((*file)->Append(content), absl::OkStatus());
    ASSERT_EQ((*file)->Close(), absl::OkStatus());
  }

  FileSystem* Files() {
    if (GetParam() == Kind::kReal) return FileSystem::Real();
    if (GetParam() == Kind::kMemory) return &memory_;
    return GetParam() == Kind::kConfined ? &confined_ : &by_component_;
  }

  const std::string directory_ = GetParam() == Kind::kMemory ? "/job" : FreshDirectory();
  MemoryFileSystem memory_;
  ConfinedFileSystem confined_{directory_};
  ConfinedFileSystem by_component_{directory_, ConfinedFileSystem::Walk::kByComponent};
  FileSystem* const files_ = Files();
};

TEST_P(FileSystemTest, WritesAndReads) {
  Write(Path("a"), "one");
  EXPECT_EQ(*ReadFile(Path("a"), files_), "one");
  Write(Path("a"), "two", /*truncate=*/false);
  EXPECT_EQ(*ReadFile(Path("a"), files_), "onetwo");
  Write(Path("a"), "3");
  EXPECT_EQ(*ReadFile(Path("a"), files_), "3");
  EXPECT_TRUE(files_->ModificationTime(Path("a")).ok());
}

TEST_P(FileSystemTest, RenameReplacesAndRemoveMayMiss) {
  Write(Path("a"), "1");
  Write(Path("b"), "2");
  ASSERT_EQ(files_->Rename(Path("a"), Path("b")), absl::OkStatus());
  EXPECT_THAT(*files_->List(directory_), ElementsAre("b"));
  EXPECT_EQ(*ReadFile(Path("b"), files_), "1");
  EXPECT_EQ(files_->Remove(Path("a")), absl::OkStatus());
  EXPECT_EQ(files_->Remove(Path("b")), absl::OkStatus());
  EXPECT_FALSE(*files_->Exists(Path("b")));
  EXPECT_EQ(files_->SyncDirectory(directory_), absl::OkStatus());
}

TEST_P(FileSystemTest, ARemovedFileStaysReadableToThoseWhoHaveIt) {
  Write(Path("a"), "content");
  const auto file = files_->OpenForRead(Path("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(files_->Remove(Path("a")), absl::OkStatus());
  char content[7];
  EXPECT_EQ((*file)->Read(0, 7, content), absl::OkStatus());
  const absl::Status status = (*file)->Read(5, 3, content);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
}

TEST(MappedFileTest, HasTheBytesAlsoWhenItsNameIsGone) {
  const std::string path = JoinPath(FreshDirectory(), "file");
  ASSERT_TRUE(WriteFileAtomically(path, "content").ok());
  auto file = FileSystem::Real()->OpenForRead(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(FileSystem::Real()->Remove(path).ok());
  const char* const bytes = (*file)->Map();
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(absl::string_view(bytes, (*file)->size()), "content");
  EXPECT_EQ((*file)->Map(), bytes);
}

TEST(MappedFileTest, AnEmptyFileIsNotMapped) {
  const std::string path = JoinPath(FreshDirectory(), "file");
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  const auto file = FileSystem::Real()->OpenForRead(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Map(), nullptr);
}

TEST_P(FileSystemTest, WhatIsMissingIsNotFoundAndNamed) {
  const std::string missing = Path("none/a");
  for (const absl::Status& status :
       {files_->OpenForRead(missing).status(), files_->OpenForAppend(missing, true).status(),
        files_->ModificationTime(missing).status(), files_->List(missing).status(),
        files_->SyncDirectory(missing), files_->Rename(missing, Path("b"))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(missing));
  }
  EXPECT_FALSE(*files_->Exists(missing));
}

TEST_P(FileSystemTest, CreateDirectoriesMakesParents) {
  EXPECT_EQ(files_->CreateDirectories(Path("x/y/z")), absl::OkStatus());
  EXPECT_EQ(files_->CreateDirectories(Path("x/y/z")), absl::OkStatus());
  Write(Path("x/y/z/a"), "1");
  EXPECT_THAT(*files_->List(Path("x")), ElementsAre("y"));
}

TEST_P(FileSystemTest, SeveralMayMakeTheSameDirectoriesAtOnce) {
  constexpr int kRounds = 400;
  constexpr int kThreads = 4;
  for (int round = 0; round < kRounds; ++round) {
    auto* const start = new absl::Barrier(kThreads);
    std::vector<absl::Status> made(kThreads);
    std::vector<std::thread> threads;
    for (absl::Status& status : made) {
      threads.emplace_back([&] {
        if (start->Block()) delete start;
        status = files_->CreateDirectories(Path(absl::StrCat(round, "/y/z")));
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_THAT(made, Each(absl::OkStatus())) << "round " << round;
  }
}

TEST_P(FileSystemTest, ADirectoryIsNotMadeOverAFile) {
  Write(Path("a"), "1");
  for (const std::string& directory : {Path("a"), Path("a/below")}) {
    const absl::Status status = files_->CreateDirectories(directory);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
  }
  EXPECT_EQ(*ReadFile(Path("a"), files_), "1");
}

TEST_P(FileSystemTest, CreateExclusiveTakesNoNameThatIsThere) {
  {
    const auto file = files_->CreateExclusive(Path("a"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ((*file)->Append("1"), absl::OkStatus());
    ASSERT_EQ((*file)->Close(), absl::OkStatus());
  }
  ASSERT_EQ(files_->CreateDirectories(Path("b")), absl::OkStatus());
  for (const char* taken : {"a", "b"}) {
    const absl::Status status = files_->CreateExclusive(Path(taken)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(taken)));
  }
  EXPECT_EQ(*ReadFile(Path("a"), files_), "1");
}

TEST_P(FileSystemTest, OnlyWhatIsNotThereIsAbsent) {
  Write(Path("a"), "1");
  EXPECT_TRUE(*files_->Exists(Path("a")));
  EXPECT_TRUE(*files_->Exists(directory_));
  EXPECT_FALSE(*files_->Exists(Path("a/below")));
  if (GetParam() == Kind::kMemory) return;
  const absl::StatusOr<bool> unknown = files_->Exists(Path(std::string(5000, 'a')));
  EXPECT_FALSE(unknown.ok());
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr(Path("aaa")));
}

TEST_P(FileSystemTest, ReplacesWhatHasTheVersionThatWasRead) {
  EXPECT_EQ(files_->ReadVersioned(Path("a"), 10).status().code(), absl::StatusCode::kNotFound);
  const auto first = files_->ReplaceIf(Path("a"), "", "one");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto read = files_->ReadVersioned(Path("a"), 10);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->content, "one");
  EXPECT_EQ(read->version, *first);
  const auto second = files_->ReplaceIf(Path("a"), *first, "two");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(*second, *first);
  for (const std::string& old : {std::string(), *first}) {
    const absl::Status status = files_->ReplaceIf(Path("a"), old, "three").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
  }
  EXPECT_EQ(*ReadFile(Path("a"), files_), "two");
  EXPECT_THAT(*files_->List(directory_), ElementsAre("a"));
  EXPECT_EQ(files_->ReadVersioned(Path("a"), 2).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(files_->Remove(Path("a")), absl::OkStatus());
  EXPECT_EQ(files_->ReplaceIf(Path("a"), *second, "three").status().code(),
            absl::StatusCode::kAborted);
  EXPECT_FALSE(*files_->Exists(Path("a")));
  EXPECT_EQ(files_->ReplaceIf(Path("none/a"), "", "1").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(FileSystemTest, OneOfSeveralReplacesAVersion) {
  constexpr int kThreads = 4;
  constexpr int kIncrements = 25;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int done = 0; done < kIncrements;) {
        const auto read = files_->ReadVersioned(Path("counter"), 100);
        int count = 0;
        if (read.ok()) {
          EXPECT_TRUE(read->content.empty() || absl::SimpleAtoi(read->content, &count));
        }
        const auto replaced = files_->ReplaceIf(Path("counter"), read.ok() ? read->version : "",
                                                absl::StrCat(count + 1));
        if (replaced.ok()) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*ReadFile(Path("counter"), files_), absl::StrCat(kThreads * kIncrements));
  EXPECT_THAT(*files_->List(directory_), ElementsAre("counter"));
}

TEST_P(FileSystemTest, ALockHasOneHolder) {
  auto first = files_->TryLock(Path("lock"));
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = files_->TryLock(Path("lock")).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr(Path("lock")));
  EXPECT_TRUE(files_->TryLock(Path("other")).ok());
  const std::string identity = (*first)->identity();
  *first = nullptr;
  const auto third = files_->TryLock(Path("lock"));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ((*third)->identity(), identity);
  EXPECT_EQ(files_->TryLock(Path("none/lock")).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(FileSystemTest, ResolvesWhatExists) {
  Write(Path("a"), "1");
  const auto root = files_->Resolve(directory_);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(*files_->Resolve(Path("a")), JoinPath(*root, "a"));
  EXPECT_EQ(files_->Resolve(Path("none")).status().code(), absl::StatusCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest,
                         testing::Values(Kind::kReal, Kind::kMemory, Kind::kConfined,
                                         Kind::kConfinedByComponent));

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST(ModesTest, WhatIsMadeIsNotForTheWorldWhateverTheUmask) {
  const std::string directory = FreshDirectory();
  ConfinedFileSystem confined(directory);
  ConfinedFileSystem by_component(directory, ConfinedFileSystem::Walk::kByComponent);
  const mode_t umask_before = umask(0);
  int round = 0;
  for (FileSystem* files : {FileSystem::Real(), static_cast<FileSystem*>(&confined),
                            static_cast<FileSystem*>(&by_component)}) {
    const std::string made = JoinPath(directory, absl::StrCat(round++, "/below"));
    EXPECT_EQ(files->CreateDirectories(made), absl::OkStatus());
    EXPECT_TRUE(files->CreateExclusive(made + "/exclusive").ok());
    EXPECT_TRUE(files->OpenForAppend(made + "/appended", /*truncate=*/false).ok());
    EXPECT_TRUE(files->OpenForAppend(made + "/truncated", /*truncate=*/true).ok());
    EXPECT_EQ(ModeOf(made), 0770);
    for (const char* name : {"/exclusive", "/appended", "/truncated"}) {
      EXPECT_EQ(ModeOf(made + name), 0640) << made << name;
    }
  }
  umask(umask_before);
}

class MemoryFileSystemTest : public testing::Test {
 protected:
  MemoryFileSystemTest() { EXPECT_EQ(files_.CreateDirectories("/d"), absl::OkStatus()); }

  // "/d/a": "synced" is durable, "+more" is not; "/d/b" has no durable name.
  void WriteHalfDurably() {
    files_.SetContent("/d/a", "");
    file_ = *files_.OpenForAppend("/d/a", /*truncate=*/false);
    ASSERT_EQ(file_->Append("synced"), absl::OkStatus());
    ASSERT_EQ(file_->Sync(), absl::OkStatus());
    ASSERT_EQ(file_->Append("+more"), absl::OkStatus());
    const auto other = *files_.OpenForAppend("/d/b", true);
    ASSERT_EQ(other->Append("b"), absl::OkStatus());
  }

  MemoryFileSystem files_;
  std::unique_ptr<AppendFile> file_;
};

TEST_F(MemoryFileSystemTest, ACrashKeepsWhatWasSyncedAndWhatItIsTold) {
  WriteHalfDurably();
  files_.Restart(Unsynced::kLost);
  EXPECT_EQ(*ReadFile("/d/a", &files_), "synced");
  EXPECT_FALSE(*files_.Exists("/d/b"));
  WriteHalfDurably();
  files_.Restart(Unsynced::kNamesKept);
  EXPECT_EQ(*ReadFile("/d/a", &files_), "synced");
  EXPECT_EQ(*ReadFile("/d/b", &files_), "");
  ASSERT_EQ(files_.Remove("/d/b"), absl::OkStatus());
  ASSERT_EQ(files_.SyncDirectory("/d"), absl::OkStatus());
  WriteHalfDurably();
  files_.Restart(Unsynced::kBytesKept);
  EXPECT_EQ(*ReadFile("/d/a", &files_), "synced+more");
  EXPECT_FALSE(*files_.Exists("/d/b"));
  WriteHalfDurably();
  files_.Restart(Unsynced::kKept);
  EXPECT_EQ(*ReadFile("/d/b", &files_), "b");
}

TEST_F(MemoryFileSystemTest, ACrashMayKeepALaterChangeOfNamesWithoutAnEarlierOne) {
  for (const char* path : {"/d/a", "/d/b", "/d/c"}) files_.SetContent(path, path);
  ASSERT_EQ(files_.Remove("/d/a"), absl::OkStatus());
  ASSERT_EQ(files_.Remove("/d/b"), absl::OkStatus());
  files_.Restart(Unsynced::kLastNameKept);
  EXPECT_THAT(*files_.List("/d"), ElementsAre("a", "c"));
  ASSERT_EQ(files_.Remove("/d/a"), absl::OkStatus());
  ASSERT_EQ(files_.Rename("/d/c", "/d/e"), absl::OkStatus());
  files_.Restart(Unsynced::kLastNameKept);
  EXPECT_THAT(*files_.List("/d"), ElementsAre("a", "e"));
  EXPECT_EQ(*ReadFile("/d/e", &files_), "/d/c");
}

TEST_F(MemoryFileSystemTest, ARestartEndsFilesThatAreOpen) {
  WriteHalfDurably();
  files_.Restart(Unsynced::kKept);
  EXPECT_FALSE(file_->Append("x").ok());
  EXPECT_EQ(*ReadFile("/d/a", &files_), "synced+more");
}

TEST_F(MemoryFileSystemTest, FromACrashOnEverythingFailsUntilTheRestart) {
  WriteHalfDurably();
  files_.CrashAt(files_.operations());
  EXPECT_EQ(file_->Append("1234").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(files_.crashed());
  EXPECT_EQ(*ReadFile("/d/a", &files_), "synced+more12");
  EXPECT_EQ(file_->Sync().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(files_.Remove("/d/a").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(files_.OpenForAppend("/d/c", true).status().code(), absl::StatusCode::kUnavailable);
  files_.Restart(Unsynced::kLost);
  EXPECT_FALSE(files_.crashed());
  EXPECT_EQ(files_.Remove("/d/a"), absl::OkStatus());
}

TEST_F(MemoryFileSystemTest, AFullDiskTakesWhatFits) {
  files_.SetCapacity(4);
  const auto file = *files_.OpenForAppend("/d/a", true);
  EXPECT_EQ(file->Append("123"), absl::OkStatus());
  EXPECT_EQ(file->Append("456").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*ReadFile("/d/a", &files_), "1234");
  EXPECT_EQ(files_.used_bytes(), 4);
  ASSERT_EQ(files_.Remove("/d/a"), absl::OkStatus());
  EXPECT_EQ(files_.used_bytes(), 0);
}

TEST_F(MemoryFileSystemTest, AFaultIsReturnedInsteadOfTheOperation) {
  files_.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "rename" ? absl::PermissionDeniedError("no") : absl::OkStatus();
  });
  EXPECT_EQ(WriteFileAtomically("/d/a", "1", &files_).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(*files_.List("/d"), IsEmpty());
}

TEST(RealFileSystemTest, ALockEndsWithItsProcess) {
  const std::string path = FreshDirectory() + "/lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FileSystem::Real()->TryLock(path);
    const char held = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &held, 1) == 1) pause();
    _exit(0);
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_EQ(FileSystem::Real()->TryLock(path).status().code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(FileSystem::Real()->TryLock(path).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(MemoryFileSystemTest, AFaultMayHideWhatIsThere) {
  files_.SetContent("/d/a", "1");
  files_.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "look" ? absl::UnavailableError("away") : absl::OkStatus();
  });
  EXPECT_EQ(files_.Exists("/d/a").status().code(), absl::StatusCode::kUnavailable);
  files_.SetFault(nullptr);
  EXPECT_TRUE(*files_.Exists("/d/a"));
}

TEST_F(MemoryFileSystemTest, AnAtomicWriteIsDurable) {
  ASSERT_EQ(WriteFileAtomically("/d/a", "1", &files_), absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically("/d/a", "2", &files_), absl::OkStatus());
  files_.Restart(Unsynced::kLost);
  EXPECT_EQ(*ReadFile("/d/a", &files_), "2");
  files_.RemoveTree("/d");
  EXPECT_EQ(WriteFileAtomically("/d/a", "3", &files_).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace keelson
