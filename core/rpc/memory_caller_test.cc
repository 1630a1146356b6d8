#include "core/rpc/memory_caller.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/rpc/local_socket.h"
#include "core/rpc/memory_server.h"
#include "gtest/gtest.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {
namespace {

constexpr char kMethod[] = "/keelson.v1.ChiefService/AcquireWork";
constexpr absl::Duration kPatience = absl::Seconds(60);

// Steps for messages: the answer to a step is the next one.
class MemoryCallerTest : public testing::Test {
 protected:
  using Answer = std::function<void(absl::StatusOr<v1::StepTicket>)>;
  using Begin = std::function<CancelWait(const v1::StepTicket&, CallerKind, Answer)>;

  static CancelWait Next(const v1::StepTicket& ticket, CallerKind, const Answer& answer) {
    v1::StepTicket next;
    next.set_step(ticket.step() + 1);
    answer(next);
    return nullptr;
  }
  // A server of the method at the port, which is not listened on.
  void Serve(Begin begin = Next) {
    static std::atomic<int> port{0};
    while (server_ == nullptr) {
      // Ports are below 65536, so that no other process has these.
      port_ = 100'000 + ++port;
      auto server = MemoryServer::Listen(MemorySocket(port_));
      if (server.ok()) server_ = *std::move(server);
    }
    Start(std::move(begin));
  }
  void Start(Begin begin) {
    server_->Start({{}, {ByteMethodOf<v1::StepTicket, v1::StepTicket>(kMethod, std::move(begin))}},
                   nullptr);
  }
  MemoryCaller CallerOf() const {
    return {"the chief", absl::StrCat("127.0.0.1:", port_), Claim(), &clock_};
  }
  static std::string Call(MemoryCaller* caller, absl::Duration timeout = kPatience) {
    v1::StepTicket ticket;
    ticket.set_step(6);
    v1::StepTicket answer;
    const auto status = caller->Call(kMethod, ticket, &answer, timeout);
    if (!status.has_value()) return "another way";
    return status->ok() ? absl::StrCat(answer.step()) : status->ToString();
  }

  ManualClock clock_;
  int port_ = 0;
  std::unique_ptr<MemoryServer> server_;
};

TEST_F(MemoryCallerTest, CallsAServerOfThisMachine) {
  Serve();
  MemoryCaller caller = CallerOf();
  EXPECT_EQ(Call(&caller), "7");
  EXPECT_EQ(Call(&caller), "7");
}

TEST_F(MemoryCallerTest, OtherServersAreCalledInAnotherWay) {
  MemoryCaller elsewhere("the chief", "10.0.0.7:2222", Claim());
  EXPECT_EQ(Call(&elsewhere), "another way");
  port_ = 99'999;
  MemoryCaller nobody = CallerOf();
  EXPECT_EQ(Call(&nobody), "another way");
  Serve();
  MemoryCaller caller = CallerOf();
  v1::StepTicket ticket;
  EXPECT_FALSE(
      caller.Call("/keelson.v1.ChiefService/Leave", ticket, &ticket, kPatience).has_value())
      << "the method is not served through memory";
}

TEST_F(MemoryCallerTest, AMessageWithoutRoomTravelsInAnotherWay) {
  Serve();
  MemoryCaller caller = CallerOf();
  v1::RegisterRequest large;
  for (int i = 0; i < 3'000'000; ++i) large.add_leases();
  v1::StepTicket answer;
  EXPECT_FALSE(caller.Call(kMethod, large, &answer, kPatience).has_value());
  EXPECT_EQ(Call(&caller), "7");
}

TEST_F(MemoryCallerTest, AServerThatHasGoneIsLookedForAfterASecond) {
  Serve();
  MemoryCaller caller = CallerOf();
  EXPECT_EQ(Call(&caller), "7");
  server_.reset();
  EXPECT_EQ(Call(&caller), "another way") << "the connection has ended";
  EXPECT_EQ(Call(&caller), "another way") << "and there is no other";
  server_ = *MemoryServer::Listen(MemorySocket(port_));
  Start(Next);
  EXPECT_EQ(Call(&caller), "another way");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Call(&caller), "7");
}

TEST_F(MemoryCallerTest, ErrorsAreTheServersWithItsName) {
  absl::Status refusal = absl::AbortedError("not a member");
  Serve([&](const v1::StepTicket&, CallerKind, const Answer& answer) {
    answer(refusal);
    return CancelWait();
  });
  MemoryCaller caller = CallerOf();
  EXPECT_EQ(Call(&caller), "ABORTED: not a member");
  refusal = absl::UnavailableError("it leaves");
  EXPECT_EQ(Call(&caller), "UNAVAILABLE: the chief: it leaves");
  refusal = absl::CancelledError("the server shuts down");
  EXPECT_EQ(Call(&caller), "UNAVAILABLE: the chief: the server shuts down");
}

TEST_F(MemoryCallerTest, ACallEndsInTimeOrWhenItIsCancelled) {
  std::atomic<int> waiting{0};
  std::atomic<int> cancelled{0};
  Serve([&](const v1::StepTicket&, CallerKind, const Answer&) -> CancelWait {
    ++waiting;
    return [&] { ++cancelled; };
  });
  MemoryCaller caller = CallerOf();
  EXPECT_EQ(Call(&caller, absl::Milliseconds(1)),
            "DEADLINE_EXCEEDED: the chief: no answer in time");
  std::thread calling(
      [&] { EXPECT_EQ(Call(&caller), "CANCELLED: the chief: its call was given up"); });
  while (waiting < 2) std::this_thread::yield();
  caller.Cancel();
  calling.join();
  while (cancelled < 2) std::this_thread::yield();
}

TEST_F(MemoryCallerTest, BytesThatAreHeldKeepTheirRoom) {
  Serve();
  MemoryCaller caller = CallerOf();
  v1::StepTicket ticket;
  ByteRope first;
  ASSERT_EQ(caller.Call(kMethod, ticket, &first, kPatience), absl::OkStatus());
  EXPECT_EQ(Call(&caller), "7") << "on another connection";
  v1::StepTicket answer;
  EXPECT_TRUE(answer.ParseFromString(first.ToString()));
  EXPECT_EQ(answer.step(), 1);
}

TEST_F(MemoryCallerTest, CallsSideBySideHaveConnectionsOfTheirOwn) {
  std::atomic<int> waiting{0};
  Answer first;
  Serve([&](const v1::StepTicket& ticket, CallerKind kind, const Answer& answer) -> CancelWait {
    if (waiting > 0) return Next(ticket, kind, answer);
    first = answer;
    ++waiting;
    return [] {};
  });
  MemoryCaller caller = CallerOf();
  std::thread calling([&] { EXPECT_EQ(Call(&caller), "7"); });
  while (waiting < 1) std::this_thread::yield();
  EXPECT_EQ(Call(&caller), "7");
  v1::StepTicket ticket;
  ticket.set_step(7);
  first(ticket);
  calling.join();
}

}  // namespace
}  // namespace keelson
