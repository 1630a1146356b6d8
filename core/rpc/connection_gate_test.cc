#include "core/rpc/connection_gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// A client's socket, on which a byte has been sent.
class Client {
 public:
  explicit Client(int port, const char* from = "127.0.0.1") : Client(port, from, 1) {}
  static std::unique_ptr<Client> Silent(int port) {
    return std::unique_ptr<Client>(new Client(port, "127.0.0.1", 0));
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& name() const { return name_; }
  void Send(size_t bytes) const {
    const std::string data(bytes, 'x');
    for (size_t sent = 0; sent < bytes;) {
      const ssize_t piece = send(fd_, data.data() + sent, bytes - sent, MSG_NOSIGNAL);
      if (piece <= 0) return;
      sent += static_cast<size_t>(piece);
    }
  }
  // Waits until the server closes the connection, or answers "ok".
  std::string Receive() const {
    char bytes[2] = {};
    return recv(fd_, bytes, sizeof(bytes), MSG_WAITALL) == 2 ? std::string(bytes, 2) : "closed";
  }

 private:
  Client(int port, const char* from, size_t bytes) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    name_ = absl::StrCat("ipv4:", from, ":", ntohs(address.sin_port));
    Send(bytes);
  }

  const int fd_;
  std::string name_;
};

// Keeps the sockets that it is given, as gRPC does.
class ConnectionGateTest : public testing::Test {
 protected:
  ~ConnectionGateTest() override {
    gate_.reset();
    MutexLock lock(&mu_);
    for (const int fd : sockets_) close(fd);
  }

  void Start(const ConnectionGate::Limits& limits) {
    auto gate = ConnectionGate::Listen("127.0.0.1:0", limits);
    ASSERT_TRUE(gate.ok()) << gate.status();
    gate_ = *std::move(gate);
    gate_->Start([this](int fd) {
      MutexLock lock(&mu_);
      sockets_.push_back(fd);
      more_.NotifyAll();
    });
  }
  void AwaitSockets(size_t count) {
    MutexLock lock(&mu_);
    while (sockets_.size() < count) more_.Wait(&mu_);
  }
  // Answers on all sockets.
  void Answer() {
    MutexLock lock(&mu_);
    for (const int fd : sockets_) send(fd, "ok", 2, MSG_NOSIGNAL);
  }
  // Ends the connection on the server's side, as gRPC does.
  void EndFirst() {
    MutexLock lock(&mu_);
    shutdown(sockets_[0], SHUT_RDWR);
    close(sockets_[0]);
    sockets_.erase(sockets_.begin());
  }
  // Waits, for at most half a minute.
  void AwaitConnections(size_t count) const {
    for (int i = 0; i < 3000 && gate_->counts().connections != count; ++i) usleep(10'000);
    EXPECT_EQ(gate_->counts().connections, count);
  }

  std::unique_ptr<ConnectionGate> gate_;
  Mutex mu_;
  CondVar more_;
  std::vector<int> sockets_ ABSL_GUARDED_BY(mu_);
};

TEST_F(ConnectionGateTest, StrangersDisplaceOneAnotherAndNobodyElse) {
  Start({.connections = 100, .unknown = 2});
  const Client member(gate_->port());
  AwaitSockets(1);
  EXPECT_TRUE(gate_->has_unknown());
  gate_->Know(member.name());
  EXPECT_FALSE(gate_->has_unknown());
  const Client elsewhere(gate_->port(), "127.0.0.2");
  AwaitSockets(2);
  const Client first(gate_->port());
  AwaitSockets(3);
  const Client second(gate_->port());
  AwaitSockets(4);
  const Client third(gate_->port());
  AwaitSockets(5);
  EXPECT_EQ(first.Receive(), "closed") << "the oldest of the address with the most";
  EXPECT_EQ(second.Receive(), "closed");
  Answer();
  for (const Client* client : {&member, &elsewhere, &third}) EXPECT_EQ(client->Receive(), "ok");
  EXPECT_EQ(gate_->counts().connections, 3u);
  EXPECT_EQ(gate_->counts().unknown, 2u);
  EXPECT_EQ(gate_->counts().closed, 2);
}

TEST_F(ConnectionGateTest, KnownConnectionsAreBoundedToo) {
  Start({.connections = 1, .unknown = 1});
  const Client member(gate_->port());
  AwaitSockets(1);
  gate_->Know(member.name());
  const Client another(gate_->port());
  EXPECT_EQ(another.Receive(), "closed");
  Answer();
  EXPECT_EQ(member.Receive(), "ok");
}

TEST_F(ConnectionGateTest, AnUnknownConnectionThatSendsTooMuchIsClosed) {
  Start({.unknown_bytes = 10'000, .unknown_bytes_per_second = 0, .patience = absl::ZeroDuration()});
  const Client modest(gate_->port());
  AwaitSockets(1);
  const Client member(gate_->port());
  AwaitSockets(2);
  gate_->Know(member.name());
  const Client stranger(gate_->port());
  AwaitSockets(3);
  modest.Send(9'999);
  member.Send(50'000);
  stranger.Send(10'000);
  EXPECT_EQ(stranger.Receive(), "closed");
  Answer();
  EXPECT_EQ(modest.Receive(), "ok");
  EXPECT_EQ(member.Receive(), "ok");
}

TEST_F(ConnectionGateTest, AMemberThatIsKnownALittleLateStays) {
  Start({.unknown_bytes = 10'000,
         .unknown_bytes_per_second = 0,
         .patience = absl::InfiniteDuration(),
         .all_unknown_bytes = 60'000});
  const Client member(gate_->port());
  AwaitSockets(1);
  const Client stranger(gate_->port());
  AwaitSockets(2);
  member.Send(30'000);
  stranger.Send(40'000);
  EXPECT_EQ(stranger.Receive(), "closed") << "it is the larger of the two";
  gate_->Know(member.name());
  EXPECT_FALSE(gate_->has_unknown());
  Answer();
  EXPECT_EQ(member.Receive(), "ok");
}

TEST_F(ConnectionGateTest, UnknownConnectionsThatSendTooMuchTogetherLoseTheLargest) {
  Start({.unknown_bytes_per_second = 0, .all_unknown_bytes = 12'000});
  const Client small(gate_->port());
  AwaitSockets(1);
  const Client large(gate_->port());
  AwaitSockets(2);
  small.Send(6'000);
  large.Send(7'000);
  EXPECT_EQ(large.Receive(), "closed");
  Answer();
  EXPECT_EQ(small.Receive(), "ok");
}

TEST_F(ConnectionGateTest, PatienceHasAnEnd) {
  Start({.unknown_bytes = 10'000,
         .unknown_bytes_per_second = 0,
         .patience = absl::InfiniteDuration(),
         .most_unknown_bytes = 50'000});
  const Client late(gate_->port());
  const Client stranger(gate_->port());
  AwaitSockets(2);
  late.Send(40'000);
  stranger.Send(50'000);
  EXPECT_EQ(stranger.Receive(), "closed");
  Answer();
  EXPECT_EQ(late.Receive(), "ok");
}

TEST_F(ConnectionGateTest, AnAddressThatHasSentTooMuchWaits) {
  Start({.unknown_bytes_per_second = 0,
         .most_unknown_bytes = 50'000,
         .delay = absl::InfiniteDuration()});
  const Client stranger(gate_->port(), "127.0.0.2");
  AwaitSockets(1);
  stranger.Send(50'000);
  EXPECT_EQ(stranger.Receive(), "closed");
  const Client again(gate_->port(), "127.0.0.2");
  const Client member(gate_->port());
  AwaitSockets(2);
  Answer();
  EXPECT_EQ(member.Receive(), "ok");
  EXPECT_EQ(gate_->counts().connections, 2u) << "the other one waits";
}

// Who has shown that he belongs to the job is served by other threads.
TEST_F(ConnectionGateTest, ItsThreadGivesWayToOthers) {
  Start({});
  const Client client(gate_->port());
  AwaitSockets(1);  // So the thread runs.
  int giving_way = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto id = static_cast<id_t>(std::stoi(task.path().filename()));
    if (getpriority(PRIO_PROCESS, id) > getpriority(PRIO_PROCESS, 0)) ++giving_way;
  }
  EXPECT_EQ(giving_way, 1);
}

TEST_F(ConnectionGateTest, ConnectionsThatStaySilentAreNotHandedOver) {
  Start({.unknown = 2});
  const auto silent = Client::Silent(gate_->port());
  const Client first(gate_->port());
  AwaitSockets(1);
  EXPECT_EQ(gate_->counts().connections, 2u);
  const Client second(gate_->port());
  EXPECT_EQ(silent->Receive(), "closed") << "it counts as the others do";
  AwaitSockets(2);
  Answer();
  EXPECT_EQ(first.Receive(), "ok");
  EXPECT_EQ(second.Receive(), "ok");
}

TEST_F(ConnectionGateTest, ACrowdOfOneAddressWaitsWhileOthersAreServed) {
  Start({.hand_over = {.at_once = 2, .introduction = absl::Hours(1)}});
  const Client first(gate_->port());
  AwaitSockets(1);
  const Client second(gate_->port());
  AwaitSockets(2);
  const Client waits(gate_->port());
  const Client elsewhere(gate_->port(), "127.0.0.2");
  AwaitSockets(3);
  Answer();
  EXPECT_EQ(elsewhere.Receive(), "ok");
  gate_->Know(first.name());
  AwaitSockets(4);
  Answer();
  EXPECT_EQ(waits.Receive(), "ok");
}

TEST_F(ConnectionGateTest, OfAnAddressTheOldestThatStaysUnknownIsDisplaced) {
  Start({.hand_over = {.at_once = 1, .introduction = absl::ZeroDuration(), .of_address = 2}});
  const Client member(gate_->port());
  AwaitSockets(1);
  gate_->Know(member.name());
  const Client oldest(gate_->port());
  AwaitSockets(2);
  const Client second(gate_->port());
  AwaitSockets(3);
  const Client third(gate_->port());
  EXPECT_EQ(oldest.Receive(), "closed");
  AwaitSockets(4);
  Answer();
  for (const Client* client : {&member, &second, &third}) EXPECT_EQ(client->Receive(), "ok");
}

TEST_F(ConnectionGateTest, ForgetsConnectionsThatEitherSideEnds) {
  Start({});
  {
    const Client client(gate_->port());
    AwaitSockets(1);
  }
  AwaitConnections(0);
  EndFirst();
  const Client client(gate_->port());
  AwaitSockets(1);
  EndFirst();
  AwaitConnections(0);
  EXPECT_FALSE(gate_->has_unknown());
  EXPECT_EQ(client.Receive(), "closed");
}

TEST(ConnectionGateAddressTest, ListensWhereItIsTold) {
  for (const char* address : {"127.0.0.1:0", "localhost:0", "0.0.0.0:0"}) {
    const auto gate = ConnectionGate::Listen(address, {});
    ASSERT_TRUE(gate.ok()) << address << gate.status();
    (*gate)->Start([](int fd) {
      char byte = 0;
      EXPECT_EQ(recv(fd, &byte, 1, 0), 1);
      send(fd, "ok", 2, MSG_NOSIGNAL);
      close(fd);
    });
    EXPECT_EQ(Client((*gate)->port()).Receive(), "ok") << address;
    const auto second = ConnectionGate::Listen(absl::StrCat("127.0.0.1:", (*gate)->port()), {});
    EXPECT_EQ(second.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("Address already in use"));
  }
}

TEST(ConnectionGateAddressTest, SaysWhatIsWrongWithAnAddress) {
  for (const char* address : {"nonsense", "no-such-host.invalid:1", "192.0.2.1:0"}) {
    EXPECT_EQ(ConnectionGate::Listen(address, {}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

}  // namespace
}  // namespace keelson
