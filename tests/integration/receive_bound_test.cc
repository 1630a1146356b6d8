// How many bytes of pushes a server receives at a time, as those see it who send them.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/rpc/access.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"
#include "keelson/v1/parameter_service.grpc.pb.h"
#include "tests/stranger/http2_connection.h"
#include "tests/stranger/http2_frames.h"

namespace keelson {
namespace {

constexpr char kPush[] = "/keelson.v1.ParameterService/Push";
constexpr size_t kWorkers = 12;
// The budget, in pushes of the greatest size.
constexpr size_t kBudget = 4;

using RawPush = v1::ParameterService::WithGenericMethod_Push<v1::ParameterService::Service>;

// A connection with one push of the greatest size, of which the last byte is not sent before End: a
// server answers a message that is whole, even if its call may go on.
class Worker {
 public:
  explicit Worker(int port) {
    auto opened = Http2Connection::Open("127.0.0.1", port);
    EXPECT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
    const size_t bytes = MaxRequestBytes(kPush);
    stream_ =
        connection_->Call(kPush, {},
                          {GrpcMessage("", /*compressed=*/false, static_cast<uint32_t>(bytes)),
                           static_cast<int64_t>(bytes) - 1},
                          /*ends=*/false);
  }

  void Pump() { ASSERT_TRUE(connection_->Pump(absl::ZeroDuration())); }
  // The server's windows have let all other bytes through, so it is receiving this push.
  bool received() const { return connection_->sent_all() && connection_->ended() == 0; }
  bool answered() const { return connection_->answered() == 1 && connection_->ended() == 1; }
  bool over() const { return connection_->ended() == 1; }
  void End() { connection_->Send(Frame(FrameType::kData, kEndStream, stream_, "x")); }

 private:
  std::unique_ptr<Http2Connection> connection_;
  uint32_t stream_ = 0;
};

class ReceiveBoundTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    RawServing raw;
    raw.methods = {{kPush, [this](const ByteRope& request) -> absl::StatusOr<ByteRope> {
                      handled_bytes_ += request.size();
                      ByteRope answer;
                      answer.AppendCopy("done");
                      return answer;
                    }}};
    raw.threads = GetParam();
    raw.receive_budget_bytes = kBudget * MaxRequestBytes(kPush);
    raw.receive_limit = absl::Minutes(10);
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                   std::move(raw));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    for (size_t i = 0; i < kWorkers; ++i) {
      workers_.push_back(std::make_unique<Worker>(server_->port()));
    }
  }

  size_t Count(bool (Worker::*what)() const) const {
    return static_cast<size_t>(std::count_if(
        workers_.begin(), workers_.end(),
        [&](const std::unique_ptr<Worker>& worker) { return (worker.get()->*what)(); }));
  }
  // All move what they can, while a call that needs no room is answered.
  void Move() {
    auto probe = Http2Connection::Open("127.0.0.1", server_->port());
    ASSERT_TRUE(probe.ok()) << probe.status();
    (*probe)->Call("/keelson.v1.ParameterService/Nothing", {}, {});
    while ((*probe)->ended() == 0) {
      ASSERT_TRUE((*probe)->Pump(absl::Milliseconds(1)));
      for (const auto& worker : workers_) worker->Pump();
    }
  }
  void EndOne() {
    for (const auto& worker : workers_) {
      if (!worker->received()) continue;
      worker->End();
      while (!worker->over()) worker->Pump();
      return;
    }
  }

  std::atomic<size_t> handled_bytes_{0};
  RawPush service_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<RpcServer> server_;
};

TEST_P(ReceiveBoundTest, HoldsWhateverTheNumberOfWorkers) {
  size_t most = 0;
  while (Count(&Worker::over) < kWorkers) {
    Move();
    const size_t received = Count(&Worker::received);
    ASSERT_LE(received, kBudget);
    most = std::max(most, received);
    // One thread's budget is the server's.
    const size_t awaited =
        GetParam() == 1 ? std::min(kBudget, kWorkers - Count(&Worker::over)) : size_t{1};
    if (received >= awaited) EndOne();
  }
  if (GetParam() == 1) {
    EXPECT_EQ(most, kBudget);
  }
  EXPECT_EQ(Count(&Worker::answered), kWorkers);
  EXPECT_EQ(handled_bytes_, kWorkers * MaxRequestBytes(kPush));
}

INSTANTIATE_TEST_SUITE_P(Threads, ReceiveBoundTest, testing::Values(1, 2, 4));

}  // namespace
}  // namespace keelson
