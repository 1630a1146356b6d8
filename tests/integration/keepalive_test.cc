// A server and peers that are silent: those that are lost, and those that have nothing to say.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"
#include "keelson/v1/chief_service.grpc.pb.h"
#include "tests/stranger/http2_connection.h"
#include "tests/stranger/http2_frames.h"
#include "tests/support/fault_proxy.h"

namespace keelson {
namespace {

// GetJobStatus lasts until its call is cancelled, or all are released.
class WaitingService : public v1::ChiefService::Service {
 public:
  grpc::Status GetJobStatus(grpc::ServerContext* context, const v1::GetJobStatusRequest*,
                            v1::JobStatus*) override {
    ++begun;
    while (!context->IsCancelled() && !released) std::this_thread::yield();
    if (context->IsCancelled()) ++cancelled;
    return grpc::Status::OK;
  }

  std::atomic<int> begun{0};
  std::atomic<int> cancelled{0};
  std::atomic<bool> released{false};
};

// A caller without gRPC, which decides itself whether it answers pings.
class Peer {
 public:
  explicit Peer(int port) {
    const absl::StatusOr<int> connected = ConnectFrom("127.0.0.1", port);
    EXPECT_TRUE(connected.ok()) << connected.status();
    fd_ = connected.value_or(-1);
    AwaitEvent(POLLOUT);
    Send(Preface());
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Receives until the server has sent so many pings, and answers each.
  void AnswerPings(int count) {
    while (pings_ < count) {
      ASSERT_TRUE(Receive()) << "closed after " << pings_ << " pings";
      while (TakeFrame(/*answers=*/true)) {
      }
    }
  }
  // Receives without an answer until the server closes the connection. Returns its pings.
  int AwaitClose() {
    while (Receive()) {
      while (TakeFrame(/*answers=*/false)) {
      }
    }
    return pings_;
  }

 private:
  void AwaitEvent(int16_t event) const {
    pollfd waits = {fd_, event, 0};
    poll(&waits, 1, -1);
  }
  void Send(const std::string& bytes) const {
    ASSERT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  // False: the connection is closed.
  bool Receive() {
    AwaitEvent(POLLIN);
    char bytes[4096];
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    if (got > 0) received_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }
  // False: there is none that is whole.
  bool TakeFrame(bool answers) {
    if (received_.size() < kFrameHeaderBytes) return false;
    size_t size = 0;
    for (int i = 0; i < 3; ++i) size = size << 8 | static_cast<uint8_t>(received_[i]);
    if (received_.size() < kFrameHeaderBytes + size) return false;
    const auto type = static_cast<FrameType>(received_[3]);
    const bool ack = (received_[4] & kAck) != 0;
    const std::string payload = received_.substr(kFrameHeaderBytes, size);
    received_.erase(0, kFrameHeaderBytes + size);
    if (type == FrameType::kSettings && !ack) Send(Frame(FrameType::kSettings, kAck, 0, ""));
    if (type == FrameType::kPing && !ack) {
      ++pings_;
      if (answers) Send(Frame(FrameType::kPing, kAck, 0, payload));
    }
    return true;
  }

  int fd_ = -1;
  std::string received_;
  int pings_ = 0;
};

class KeepaliveTest : public testing::Test {
 protected:
  void Start(absl::Duration silence, absl::Duration patience) {
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                   {}, ConnectionGate::Limits::OfProcess(), {silence, patience});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    service_.released = true;
    server_.reset();
  }

  WaitingService service_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(KeepaliveTest, AnIdlePeerThatAnswersNoPingLosesItsConnection) {
  Start(absl::Milliseconds(100), absl::Milliseconds(200));
  Peer peer(server_->port());
  EXPECT_GT(peer.AwaitClose(), 0);
}

TEST_F(KeepaliveTest, AnIdlePeerThatAnswersKeepsItsConnection) {
  Start(absl::Milliseconds(100), absl::Seconds(60));
  Peer peer(server_->port());
  peer.AnswerPings(5);
}

TEST_F(KeepaliveTest, TheCallsOfALostPeerAreCancelled) {
  Start(absl::Milliseconds(500), absl::Seconds(1));
  const auto proxy = FaultProxy::Start(server_->port());
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  const auto lost = v1::ChiefService::NewStub(
      CreateChannel((*proxy)->address(), grpc::InsecureChannelCredentials()));
  const auto live = v1::ChiefService::NewStub(CreateChannel(
      absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()));
  const auto call = [](v1::ChiefService::Stub* stub, grpc::Status* result) {
    return std::thread([stub, result] {
      grpc::ClientContext context;
      v1::JobStatus status;
      *result = stub->GetJobStatus(&context, {}, &status);
    });
  };
  grpc::Status of_lost, of_live;
  std::thread lost_call = call(lost.get(), &of_lost), live_call = call(live.get(), &of_live);
  while (service_.begun < 2) std::this_thread::yield();
  LinkConditions held;
  held.flow = LinkConditions::Flow::kHold;
  (*proxy)->Set(held);
  while (service_.cancelled < 1) std::this_thread::yield();
  EXPECT_EQ(service_.cancelled, 1);
  service_.released = true;
  live_call.join();
  EXPECT_TRUE(of_live.ok()) << of_live.error_message();
  (*proxy)->Heal();
  lost_call.join();
  EXPECT_EQ(of_lost.error_code(), grpc::StatusCode::UNAVAILABLE) << of_lost.error_message();
}

}  // namespace
}  // namespace keelson
