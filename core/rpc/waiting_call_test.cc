#include "core/rpc/waiting_call.h"

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/rpc/channel.h"
#include "core/rpc/credentials.h"
#include "core/rpc/protocol.h"
#include "core/rpc/raw_client.h"
#include "core/rpc/server.h"
#include "core/rpc/stalled_call_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::SizeIs;

constexpr char kWaitingMethod[] = "/keelson.v1.ChiefService/GetJobStatus";
constexpr char kCheckedMethod[] = "/keelson.v1.ChiefService/Register";
constexpr absl::Duration kLongestCall = absl::Seconds(60);

std::ptrdiff_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Keeps calls until the test answers them.
class WaitingService : public v1::ChiefService::Service {
 public:
  using Done = std::function<void(absl::StatusOr<v1::JobStatus>)>;

  WaitingService(const AccessGuard* guard, const Clock* clock) : calls_(guard, clock) {
    Serve<v1::GetJobStatusRequest>("GetJobStatus");
    Serve<v1::RegisterRequest>("Register");
  }

  void AwaitCalls(size_t number) {
    MutexLock lock(&mu_);
    while (waiting_.size() < number) changed_.Wait(&mu_);
  }
  void AwaitCancellations(int number) {
    MutexLock lock(&mu_);
    while (cancelled_ < number) changed_.Wait(&mu_);
  }
  void AnswerAll(const absl::StatusOr<v1::JobStatus>& answer) {
    std::vector<Done> waiting;
    {
      MutexLock lock(&mu_);
      waiting = std::exchange(waiting_, {});
    }
    for (const Done& done : waiting) done(answer);
  }
  size_t waiting() const {
    MutexLock lock(&mu_);
    return waiting_.size();
  }

 private:
  // The calls are answered with a JobStatus, whatever the method.
  template <typename Request>
  void Serve(const std::string& method) {
    const char* const service = v1::ChiefService::service_full_name();
    const auto handler = [&] {
      return WaitingUnary<Request, v1::JobStatus>(
          &calls_, FullMethodName(service, method),
          [this](const Request&, CallerKind, Done done) { return Keep(std::move(done)); });
    };
    MarkMethodStreamed(MethodIndex(service, method), handler());
    MarkMethodRawCallback(MethodIndex(service, method), handler());
  }
  CancelWait Keep(Done done) {
    MutexLock lock(&mu_);
    waiting_.push_back(std::move(done));
    changed_.NotifyAll();
    return [this] {
      MutexLock cancel_lock(&mu_);
      ++cancelled_;
      changed_.NotifyAll();
    };
  }

  GuardedCalls calls_;
  mutable Mutex mu_;
  CondVar changed_;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mu_);
  int cancelled_ ABSL_GUARDED_BY(mu_) = 0;
};

// Calls of GetJobStatus that run at a time. Awaits them at its end.
class Callers {
 public:
  Callers(v1::ChiefService::Stub* stub, std::string role) : stub_(stub), role_(std::move(role)) {}
  ~Callers() { Await(); }

  void Start() {
    auto call = std::make_unique<Call>();
    AddClaim({role_, "", ""}, &call->context);
    call->context.set_wait_for_ready(true);
    Call* const begun = call.get();
    {
      MutexLock lock(&mu_);
      ++running_;
      calls_.push_back(std::move(call));
    }
    stub_->async()->GetJobStatus(&begun->context, &begun->request, &begun->response,
                                 [this, begun](const grpc::Status& status) {
                                   MutexLock lock(&mu_);
                                   begun->status = status;
                                   --running_;
                                   changed_.NotifyAll();
                                 });
  }
  void Cancel() {
    MutexLock lock(&mu_);
    for (const auto& call : calls_) call->context.TryCancel();
  }
  // How the calls ended, each once, in the order of their starts.
  std::vector<grpc::StatusCode> Await() {
    MutexLock lock(&mu_);
    while (running_ > 0) changed_.Wait(&mu_);
    std::vector<grpc::StatusCode> codes;
    for (const auto& call : calls_) codes.push_back(call->status.error_code());
    return codes;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::GetJobStatusRequest request;
    v1::JobStatus response;
    grpc::Status status;
  };

  v1::ChiefService::Stub* const stub_;
  const std::string role_;
  Mutex mu_;
  CondVar changed_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mu_);
};

class WaitingCallTest : public testing::Test {
 protected:
  WaitingCallTest() {
    RawServing serving;
    serving.guard = &guard_;
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                   std::move(serving));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                             grpc::InsecureChannelCredentials());
    stub_ = v1::ChiefService::NewStub(channel_);
  }
  // A call of Register that does not wait.
  grpc::Status Register(const std::string& role, std::string bytes) {
    RawCallQueue calls({role, "", ""});
    ByteRope request;
    request.AppendCopy(bytes);
    calls.Start(channel_, kCheckedMethod, std::move(request), kLongestCall, 1);
    const auto done = calls.Next(kLongestCall);
    return done.has_value() ? done->status : grpc::Status(grpc::StatusCode::UNKNOWN, "no answer");
  }

  const AccessGuard guard_;
  ManualClock clock_;
  WaitingService service_{&guard_, &clock_};
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ChiefService::Stub> stub_;
};

TEST_F(WaitingCallTest, CallsThatWaitHoldNoThread) {
  constexpr size_t kCalls = 100;
  Callers callers(stub_.get(), "worker");
  callers.Start();
  service_.AwaitCalls(1);
  const std::ptrdiff_t before = Threads();
  for (size_t call = 1; call < kCalls; ++call) callers.Start();
  service_.AwaitCalls(kCalls);
  EXPECT_LT(Threads(), before + static_cast<std::ptrdiff_t>(kCalls / 2));
  service_.AnswerAll(v1::JobStatus());
  EXPECT_THAT(callers.Await(), AllOf(SizeIs(kCalls), Each(grpc::StatusCode::OK)));
}

TEST_F(WaitingCallTest, AnAnswerOrAnErrorArrivesWithTheProtocol) {
  for (const bool fails : {false, true}) {
    std::thread answerer([&] {
      service_.AwaitCalls(1);
      v1::JobStatus answer;
      answer.set_step(7);
      if (fails) return service_.AnswerAll(absl::AbortedError("go away"));
      service_.AnswerAll(answer);
    });
    grpc::ClientContext context;
    AddClaim({"worker", "", ""}, &context);
    v1::JobStatus status;
    const grpc::Status result = stub_->GetJobStatus(&context, {}, &status);
    answerer.join();
    EXPECT_EQ(result.error_code(), fails ? grpc::StatusCode::ABORTED : grpc::StatusCode::OK);
    EXPECT_EQ(status.step(), fails ? 0 : 7);
    EXPECT_EQ(CheckAnswer(context, "the service"), absl::OkStatus());
  }
}

TEST_F(WaitingCallTest, CallersAndRequestsAreCheckedBeforeAnythingWaits) {
  EXPECT_EQ(Register("chief", "").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status large = Register("worker", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(large.error_message(),
              HasSubstr("expected a request of at most 1048576 bytes, found 1048577"));
  const grpc::Status none = Register("worker", "\xff\xff\xff");
  EXPECT_EQ(none.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(none.error_message(), HasSubstr("expected a keelson.v1.RegisterRequest"));
  EXPECT_EQ(service_.waiting(), 0);
}

TEST_F(WaitingCallTest, TheWaitOfACallerThatIsGoneIsCancelled) {
  Callers callers(stub_.get(), "worker");
  callers.Start();
  service_.AwaitCalls(1);
  callers.Cancel();
  service_.AwaitCancellations(1);
  EXPECT_THAT(callers.Await(), ElementsAre(grpc::StatusCode::CANCELLED));
  service_.AnswerAll(absl::CancelledError("the caller is gone"));
}

TEST_F(WaitingCallTest, AServerThatIsShutDownCancelsTheWaits) {
  Callers callers(stub_.get(), "worker");
  callers.Start();
  service_.AwaitCalls(1);
  std::thread answerer([&] {
    service_.AwaitCancellations(1);
    service_.AnswerAll(absl::CancelledError("the server ends"));
  });
  server_->Shutdown(absl::ZeroDuration());
  answerer.join();
  EXPECT_THAT(callers.Await(), ElementsAre(Ne(grpc::StatusCode::OK)));
}

TEST_F(WaitingCallTest, RequestsThatDoNotEndGiveWay) {
  std::vector<std::unique_ptr<StalledCall>> silent;
  for (size_t i = 0; i < GuardedCalls::kPendingStrangers; ++i) {
    silent.push_back(std::make_unique<StalledCall>(channel_, kWaitingMethod));
  }
  // One more, again and again, until the server has seen the others for long enough. They have a
  // connection of their own, since it takes only so many bytes of strangers on one.
  const auto other = CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                   grpc::InsecureChannelCredentials());
  std::atomic<bool> gone = false;
  std::thread others([&] {
    std::deque<StalledCall> later;
    while (!gone) {
      clock_.Advance(GuardedCalls::kPatience);
      later.emplace_back(other, kWaitingMethod);
      if (later.size() > 8) later.pop_front();
    }
  });
  EXPECT_EQ(silent[0]->Await().error_code(), grpc::StatusCode::CANCELLED);
  gone = true;
  others.join();
}

// They wait for an answer: their requests are whole.
TEST_F(WaitingCallTest, CallsThatWaitDoNotGiveWay) {
  constexpr size_t kCalls = GuardedCalls::kPendingStrangers + 10;
  Callers callers(stub_.get(), "");
  for (size_t call = 0; call < kCalls; ++call) callers.Start();
  service_.AwaitCalls(kCalls);
  service_.AnswerAll(v1::JobStatus());
  EXPECT_THAT(callers.Await(), AllOf(SizeIs(kCalls), Each(grpc::StatusCode::OK)));
}

}  // namespace
}  // namespace keelson
