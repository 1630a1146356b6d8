#include "core/rpc/memory_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/sealed_memory.h"
#include "core/rpc/local_socket.h"
#include "core/rpc/memory_call.h"
#include "core/rpc/memory_client.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kServed[] = "/keelson.v1.ParameterService/Push";
constexpr size_t kBytes = 64 * 1024;

ByteRope RopeOf(const std::string& bytes) {
  ByteRope rope;
  rope.AppendCopy(bytes);
  return rope;
}

Claim Worker() {
  Claim claim;
  claim.role = "worker";
  return claim;
}

class MemoryServerTest : public testing::Test {
 protected:
  void Serve(std::function<absl::StatusOr<ByteRope>(ByteRope)> handle,
             const AccessGuard* guard = nullptr,
             std::function<bool(const ByteRope&, std::function<void()>)> may_answer = nullptr,
             std::vector<ByteMethod> byte_methods = {}) {
    static std::atomic<int> number{0};
    address_ = absl::StrCat("unix-abstract:keelson-test-", getpid(), "-", ++number);
    auto server = MemoryServer::Listen(address_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Start({{{kServed, std::move(handle), std::move(may_answer)}}, std::move(byte_methods)},
                   guard);
  }

  std::unique_ptr<MemoryClient> Connect(size_t calls = 2, const Claim& claim = Worker()) {
    auto client = MemoryClient::Connect(address_, claim, calls, kBytes);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  static absl::StatusOr<MemoryClient::Completion> Await(MemoryClient* client) {
    while (true) {
      auto next = client->Next();
      if (!next.ok()) return next.status();
      if (next->has_value()) return **std::move(next);
      std::this_thread::yield();
    }
  }
  static std::string Call(MemoryClient* client, const std::string& request) {
    EXPECT_TRUE(client->Start(kServed, RopeOf(request), 7).ok());
    const auto answer = Await(client);
    if (!answer.ok()) return answer.status().ToString();
    EXPECT_EQ(answer->tag, 7u);
    return answer->status.ok() ? answer->response.ToString() : answer->status.ToString();
  }

  // A connection without a MemoryClient.
  int Raw() const { return ConnectLocally(address_, LocalSocketKind::kPackets); }
  // The server's answer on it.
  static std::string RawAnswer(int fd) {
    Packet packet;
    if (!ReceivePacket(fd, &packet).ok()) return "gone";
    absl::string_view rest = packet.bytes;
    MemoryAnswer answer;
    EXPECT_TRUE(TakeHead(&rest, &answer));
    return answer.code == 0 ? "OK" : std::string(rest);
  }

  std::string address_;
  std::unique_ptr<MemoryServer> server_;
};

TEST_F(MemoryServerTest, AnswersWhatLiesInTheMemory) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> {
    ByteRope answer = RopeOf("seen: ");
    answer.Append(std::move(request));
    return answer;
  });
  const auto client = Connect();
  EXPECT_EQ(Call(client.get(), "a"), "seen: a");
  const std::string large(50'000, 'x');
  EXPECT_EQ(Call(client.get(), large), "seen: " + large);
  EXPECT_EQ(Call(client.get(), ""), "seen: ");
}

TEST_F(MemoryServerTest, ACallThatWaitsIsAnsweredWhenItIsWoken) {
  Mutex mu;
  CondVar changed;
  std::function<void()> wakes;
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; }, nullptr,
        [&, asked = 0](const ByteRope&, std::function<void()> wake) mutable {
          if (++asked == 3) return true;
          MutexLock lock(&mu);
          wakes = std::move(wake);
          changed.NotifyAll();
          return false;
        });
  const auto client = Connect();
  EXPECT_TRUE(client->Start(kServed, RopeOf("a"), 7).ok());
  for (int i = 0; i < 2; ++i) {
    std::function<void()> wake;
    {
      MutexLock lock(&mu);
      while (wakes == nullptr) changed.Wait(&mu);
      wake = std::exchange(wakes, nullptr);
    }
    wake();
  }
  EXPECT_EQ(Await(client.get())->response.ToString(), "a");
}

TEST_F(MemoryServerTest, AServerThatStopsDoesNotWait) {
  std::atomic<bool> waits{false};
  Serve([](ByteRope) { return absl::UnavailableError("not yet"); }, nullptr,
        [&](const ByteRope&, std::function<void()>) {
          waits = true;
          return false;
        });
  const auto client = Connect();
  EXPECT_TRUE(client->Start(kServed, RopeOf("a"), 7).ok());
  while (!waits) std::this_thread::yield();
  server_->Stop();
  const auto answer = Await(client.get());
  const absl::Status ended = answer.ok() ? answer->status : answer.status();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
}

TEST_F(MemoryServerTest, AMethodThatIsNotServedIsUnimplemented) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  const auto client = Connect();
  ASSERT_TRUE(client->Start("/keelson.v1.ParameterService/Pull", RopeOf("a"), 1).ok());
  EXPECT_EQ(Await(client.get())->status,
            absl::UnimplementedError("/keelson.v1.ParameterService/Pull is not served here"));
  EXPECT_EQ(Call(client.get(), "a"), "a");
}

// A method that keeps its callers waiting.
class ByteMethodsTest : public MemoryServerTest {
 protected:
  struct Call {
    std::string request;
    ByteMethod::Answer answer;
    bool cancelled = false;
  };

  void ServeWaiting() {
    Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; }, nullptr, nullptr,
          {{kWaiting, [this](absl::string_view request, CallerKind, ByteMethod::Answer answer) {
              MutexLock lock(&mu_);
              const size_t i = calls_.size();
              calls_.push_back({std::string(request), std::move(answer)});
              changed_.NotifyAll();
              return [this, i] {
                MutexLock cancelling(&mu_);
                calls_[i].cancelled = true;
                changed_.NotifyAll();
              };
            }}});
  }
  void AwaitCalls(size_t count) {
    MutexLock lock(&mu_);
    while (calls_.size() < count) changed_.Wait(&mu_);
  }
  void AwaitCancelled(size_t call) {
    MutexLock lock(&mu_);
    while (!calls_[call].cancelled) changed_.Wait(&mu_);
  }
  ByteMethod::Answer AnswerOf(size_t call) {
    MutexLock lock(&mu_);
    return calls_[call].answer;
  }

  static constexpr char kWaiting[] = "/keelson.v1.ChiefService/AcquireWork";
  Mutex mu_;
  CondVar changed_;
  std::vector<Call> calls_;
};

TEST_F(ByteMethodsTest, AnswersComeInAnyOrderAndByAnyThread) {
  ServeWaiting();
  const auto client = Connect(2);
  ASSERT_TRUE(client->Start(kWaiting, RopeOf("first"), 1).ok());
  ASSERT_TRUE(client->Start(kWaiting, RopeOf("second"), 2).ok());
  AwaitCalls(2);
  EXPECT_EQ(calls_[0].request, "first");
  AnswerOf(1)(std::string("the second's"));
  const auto second = Await(client.get());
  EXPECT_EQ(second->tag, 2u);
  EXPECT_EQ(second->response.ToString(), "the second's");
  AnswerOf(0)(absl::AbortedError("not a member"));
  EXPECT_EQ(Await(client.get())->status, absl::AbortedError("not a member"));
}

TEST_F(ByteMethodsTest, OneThatIsAnsweredAtOnceDoesNotWait) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; }, nullptr, nullptr,
        {{kWaiting, [](absl::string_view request, CallerKind, const ByteMethod::Answer& answer) {
            answer(std::string(request));
            return CancelWait();
          }}});
  const auto client = Connect();
  ASSERT_TRUE(client->Start(kWaiting, RopeOf("a"), 1).ok());
  EXPECT_EQ(Await(client.get())->response.ToString(), "a");
}

TEST_F(ByteMethodsTest, TheWaitOfAClientThatIsGoneIsCancelled) {
  ServeWaiting();
  auto client = Connect();
  ASSERT_TRUE(client->Start(kWaiting, RopeOf("a"), 1).ok());
  AwaitCalls(1);
  client.reset();
  AwaitCancelled(0);
  AnswerOf(0)(absl::CancelledError("gone"));  // reaches nobody
  EXPECT_EQ(MemoryServerTest::Call(Connect().get(), "a"), "a");
}

TEST_F(ByteMethodsTest, AServerThatStopsCancelsWaitsAndIsAnsweredLater) {
  ServeWaiting();
  const auto client = Connect();
  ASSERT_TRUE(client->Start(kWaiting, RopeOf("a"), 1).ok());
  AwaitCalls(1);
  server_->Stop();
  AwaitCancelled(0);
  server_.reset();
  AnswerOf(0)(std::string("late"));
  EXPECT_TRUE(absl::IsUnavailable(Await(client.get()).status()));
}

TEST_F(ByteMethodsTest, AClientThatDoesNotReadLosesItsConnection) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; }, nullptr, nullptr,
        {{kWaiting, [](absl::string_view, CallerKind, const ByteMethod::Answer& answer) {
            answer(absl::InternalError(std::string(kMostPacketBytes, 'x')));
            return CancelWait();
          }}});
  const auto memory = SealedMemory::Create(kBytes, SealedMemory::Touch::kLater);
  ASSERT_TRUE(memory.ok());
  const MemoryGreeting greeting;
  const int raw = Raw();
  ASSERT_TRUE(SendPacket(raw, &greeting, sizeof(greeting), "worker\n\n\n", (*memory)->fd()).ok());
  EXPECT_EQ(RawAnswer(raw), "OK");
  const MemoryRequest request = {1, 0, 0, 0, 0};
  while (SendPacket(raw, &request, sizeof(request), kWaiting).ok()) {
  }
  close(raw);
}

TEST_F(MemoryServerTest, ErrorsAreTheHandlers) {
  Serve([](ByteRope) { return absl::FailedPreconditionError("round 3 is over"); });
  EXPECT_EQ(Call(Connect().get(), "a"), "FAILED_PRECONDITION: round 3 is over");
}

TEST_F(MemoryServerTest, AnswersThatAreHeldKeepTheirRoomAndTheConnectionsMemory) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  auto client = Connect(2);
  ASSERT_TRUE(client->Start(kServed, RopeOf("first"), 1).ok());
  ASSERT_TRUE(client->Start(kServed, RopeOf("second"), 2).ok());
  EXPECT_FALSE(client->has_room());
  auto first = Await(client.get());
  auto second = Await(client.get());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(client->has_room());
  second->response = ByteRope();
  EXPECT_TRUE(client->has_room());
  EXPECT_EQ(Call(client.get(), "third"), "third");
  EXPECT_EQ(first->response.ToString(), "first");
  client.reset();
  EXPECT_EQ(first->response.ToString(), "first");
}

TEST_F(MemoryServerTest, WhatHasNoRoomIsRefused) {
  Serve([](ByteRope) -> absl::StatusOr<ByteRope> { return RopeOf(std::string(70'000, 'x')); });
  const auto client = Connect();
  EXPECT_EQ(client->Start(kServed, RopeOf(std::string(70'000, 'x')), 1),
            absl::InvalidArgumentError("expected a request of at most 65536 bytes, found 70000"));
  EXPECT_EQ(Call(client.get(), "a"),
            "RESOURCE_EXHAUSTED: expected room for an answer of 70000 bytes, found 65536");
}

TEST_F(MemoryServerTest, TheGuardIsAskedAboutEachCall) {
  const AccessGuard guard({"the job's token", ""});
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; }, &guard);
  Claim claim = Worker();
  EXPECT_THAT(Call(Connect(2, claim).get(), "a"), HasSubstr("PERMISSION_DENIED"));
  claim.job_token = "the job's token";
  EXPECT_EQ(Call(Connect(2, claim).get(), "a"), "a");
  claim.role = "evaluator";
  EXPECT_THAT(Call(Connect(2, claim).get(), "a"), HasSubstr("PERMISSION_DENIED"));
  claim.role = "worker";
  claim.protocol = "0";
  EXPECT_THAT(Call(Connect(2, claim).get(), "a"), HasSubstr("expected message protocol"));
}

TEST_F(MemoryServerTest, ItsEndIsTheClients) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  const auto client = Connect();
  server_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(Await(client.get()).status()));
  EXPECT_TRUE(absl::IsUnavailable(MemoryClient::Connect(address_, Worker(), 1, kBytes).status()));
}

TEST_F(MemoryServerTest, StoppingWaitsForTheCallThatIsHandled) {
  Mutex mu;
  CondVar changed;
  bool entered = false, open = false;
  Serve([&](ByteRope request) -> absl::StatusOr<ByteRope> {
    MutexLock lock(&mu);
    entered = true;
    changed.NotifyAll();
    while (!open) changed.Wait(&mu);
    return request;
  });
  const auto client = Connect();
  ASSERT_TRUE(client->Start(kServed, RopeOf("a"), 1).ok());
  {
    MutexLock lock(&mu);
    while (!entered) changed.Wait(&mu);
  }
  std::thread stopping([&] { server_->Stop(); });
  {
    MutexLock lock(&mu);
    open = true;
    changed.NotifyAll();
  }
  const auto answer = Await(client.get());
  stopping.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->response.ToString(), "a");
}

TEST_F(MemoryServerTest, ClientsThatComeAndGoLeaveNoConnectionBehind) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  for (size_t i = 0; i < 2 * MemoryServer::kMostConnections; ++i) {
    auto client = MemoryClient::Connect(address_, Worker(), 1, kBytes);
    while (!client.ok()) {  // The ends of those before are still on their way.
      ASSERT_TRUE(absl::IsUnavailable(client.status())) << client.status();
      client = MemoryClient::Connect(address_, Worker(), 1, kBytes);
    }
    EXPECT_EQ(Call(client->get(), "a"), "a");
  }
}

TEST_F(MemoryServerTest, GreetingsThatAreNoneAreRefused) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  const auto memory = SealedMemory::Create(kBytes, SealedMemory::Touch::kLater);
  ASSERT_TRUE(memory.ok());
  const int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, kBytes), 0);
  MemoryGreeting greeting;
  const std::string claim = "worker\n\n\n6";
  const auto refusal = [&](int fd, const std::string& shown) {
    const int raw = Raw();
    EXPECT_TRUE(SendPacket(raw, &greeting, sizeof(greeting), shown, fd).ok());
    const std::string answer = RawAnswer(raw);
    EXPECT_EQ(answer == "OK", RawAnswer(raw) != "gone");
    close(raw);
    return answer;
  };
  EXPECT_THAT(refusal(unsealed, claim), HasSubstr("expected a memfd that is sealed"));
  EXPECT_THAT(refusal(-1, claim), HasSubstr("expected a memfd that is sealed"));
  EXPECT_THAT(refusal((*memory)->fd(), "worker"), HasSubstr("expected a claim of four parts"));
  greeting.format = 99;
  EXPECT_THAT(refusal((*memory)->fd(), claim), HasSubstr("expected another greeting"));
  close(unsealed);
}

TEST_F(MemoryServerTest, OtherUsersAreRefusedAtBothEnds) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: only root can be another user";
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  std::thread other([this] {
    // The system call changes the user of this thread alone; the library's function changes all.
    ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    EXPECT_EQ(MemoryClient::Connect(address_, Worker(), 1, kBytes).status(),
              absl::PermissionDeniedError("expected a server of this user, found another's"));
    const int raw = Raw();
    EXPECT_EQ(RawAnswer(raw), "expected a caller of the server's user, found another's");
    close(raw);
  });
  other.join();
}

// Requests that lie outside of the memory, in part or where sums would overflow.
TEST_F(MemoryServerTest, RequestsThatAreNoneEndTheConnectionAlone) {
  Serve([](ByteRope request) -> absl::StatusOr<ByteRope> { return request; });
  const auto memory = SealedMemory::Create(kBytes, SealedMemory::Touch::kLater);
  ASSERT_TRUE(memory.ok());
  constexpr uint64_t kMost = ~uint64_t{0};
  const MemoryRequest bad[] = {
      {1, kBytes, 1, 0, 10},    {1, kBytes - 1, 2, 0, 10},  {1, kMost, 2, 0, 10},
      {1, 8, kMost - 4, 0, 10}, {1, 0, 10, kBytes - 9, 10}, {1, 0, 10, kMost, 10},
      {1, 0, 10, 10, kMost},
  };
  const MemoryGreeting greeting;
  for (const MemoryRequest& request : bad) {
    const int raw = Raw();
    ASSERT_TRUE(SendPacket(raw, &greeting, sizeof(greeting), "worker\n\n\n", (*memory)->fd()).ok());
    EXPECT_EQ(RawAnswer(raw), "OK");
    ASSERT_TRUE(SendPacket(raw, &request, sizeof(request), kServed).ok());
    EXPECT_EQ(RawAnswer(raw), "gone");
    close(raw);
  }
  const int raw = Raw();
  ASSERT_TRUE(SendPacket(raw, &greeting, sizeof(greeting), "worker\n\n\n", (*memory)->fd()).ok());
  EXPECT_EQ(RawAnswer(raw), "OK");
  ASSERT_TRUE(SendPacket(raw, "short", 5, "").ok());
  EXPECT_EQ(RawAnswer(raw), "gone");
  close(raw);
  EXPECT_EQ(Call(Connect().get(), "a"), "a");
}

}  // namespace
}  // namespace keelson
