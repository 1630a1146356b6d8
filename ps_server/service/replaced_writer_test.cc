// A server whose storage hangs while it writes its part of a snapshot, and whose chief is replaced
// meanwhile.
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file_system_testing.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "gmock/gmock.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kModelDir[] = "/model";

class ReplacedWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(files_.CreateDirectories(kModelDir), absl::OkStatus());
    v1::InitializeShardResponse response;
    ASSERT_EQ(handler_.Initialize(InitializeRequest(TestPlacement(1), 0), &response),
              absl::OkStatus());
  }
  // From now on `operation` hangs before it is done. Its thread waits, and so does all use of
  // files.
  void Hang(const std::string& operation) {
    files_.SetFault([this, operation](absl::string_view found, const std::string&) {
      if (found != operation) return absl::OkStatus();
      MutexLock lock(&mu_);
      ++hanging_;
      changed_.NotifyAll();
      while (!released_) changed_.Wait(&mu_);
      return absl::OkStatus();
    });
  }
  void AwaitHanging() {
    MutexLock lock(&mu_);
    while (hanging_ == 0) changed_.Wait(&mu_);
  }
  void Release() {
    MutexLock lock(&mu_);
    released_ = true;
    changed_.NotifyAll();
  }
  // Operations that have begun.
  int hanging() {
    MutexLock lock(&mu_);
    return hanging_;
  }
  absl::Status Write(uint64_t chief) {
    v1::WriteSnapshotRequest request = SnapshotRequest(3);
    *request.mutable_header() = HeaderOf(chief);
    v1::WriteSnapshotResponse response;
    return handler_.WriteSnapshot(request, &response);
  }
  // A chief of this term calls.
  void Call(uint64_t chief) {
    v1::ChiefHeartbeatRequest request;
    *request.mutable_header() = HeaderOf(chief);
    v1::ShardStatus status;
    ASSERT_EQ(handler_.ChiefHeartbeat(request, &status), absl::OkStatus());
  }
  std::vector<std::string> Names() { return *files_.List(kModelDir); }

  MemoryFileSystem files_;
  ManualClock clock_;
  StopSignal end_;
  ParameterHandler handler_{{.incarnation = 9,
                             .config_hash = kTestConfigHash,
                             .model_dir = kModelDir,
                             .file_system = &files_},
                            &clock_,
                            &end_};

 private:
  Mutex mu_;
  CondVar changed_;
  int hanging_ ABSL_GUARDED_BY(mu_) = 0;
  bool released_ ABSL_GUARDED_BY(mu_) = false;
};

TEST_F(ReplacedWriterTest, StopsAndLeavesNoFile) {
  Hang("append");
  absl::Status status;
  std::thread writes([&] { status = Write(kTestChief); });
  AwaitHanging();
  Call(kTestChief + 1);
  Release();
  writes.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("WriteSnapshot: another chief has taken the caller's place"));
  EXPECT_EQ(hanging(), 1) << "it writes nothing more";
  EXPECT_THAT(Names(), IsEmpty());
}

// When the storage hangs in the last step, the file gets a name that only the replaced chief would
// have committed.
TEST_F(ReplacedWriterTest, HasNoFinalNameEvenIfItWasAboutToEnd) {
  Hang("rename");
  absl::Status status;
  std::thread writes([&] { status = Write(kTestChief); });
  AwaitHanging();
  Call(kTestChief + 1);
  Release();
  writes.join();
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(Names(), ElementsAre(HasSubstr(".tempstate")));
}

TEST_F(ReplacedWriterTest, GivesWayToItsSuccessorsPart) {
  Hang("append");
  absl::Status before, after;
  std::thread writes([&] { before = Write(kTestChief); });
  AwaitHanging();
  std::thread next([&] { after = Write(kTestChief + 1); });
  while (StatusOf(&handler_).chief_term() != kTestChief + 1) std::this_thread::yield();
  Release();
  writes.join();
  next.join();
  EXPECT_EQ(before.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(after, absl::OkStatus());
  EXPECT_THAT(Names(), ElementsAre(HasSubstr(absl::StrCat(".tempstate", kTestChief + 1, "-"))));
}

}  // namespace
}  // namespace keelson
