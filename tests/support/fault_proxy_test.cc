#include "tests/support/fault_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(20);
// Long enough for a byte to cross this machine twice; only used where nothing is to arrive.
constexpr absl::Duration kMoment = absl::Milliseconds(50);

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A blocking socket.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }

  static Socket To(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return Socket(fd);
  }

  void Send(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t size = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (size < 0) return;  // The reader finds out.
      sent += size;
    }
  }
  void EndSending() const { shutdown(fd_, SHUT_WR); }

  // What arrives within `limit`, at most `wanted` bytes; less: the end, a reset or the limit.
  struct Received {
    std::string bytes;
    bool ended = false;
    bool reset = false;
  };
  Received Receive(size_t wanted, absl::Duration limit = kLimit) const {
    Received received;
    const absl::Time deadline = absl::Now() + limit;
    while (received.bytes.size() < wanted) {
      pollfd event = {fd_, POLLIN, 0};
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration() ||
          poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) == 0) {
        return received;
      }
      std::string part(wanted - received.bytes.size(), '\0');
      const ssize_t size = recv(fd_, part.data(), part.size(), 0);
      received.ended = size == 0;
      received.reset = size < 0 && errno == ECONNRESET;
      if (size <= 0) return received;
      received.bytes.append(part, 0, size);
    }
    return received;
  }

 private:
  int fd_;
};

// Sends back what it gets, one thread per caller.
class EchoServer {
 public:
  EchoServer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  // The callers have ended.
  ~EchoServer() {
    shutdown(fd_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    close(fd_);
  }

  int port() const { return port_; }

 private:
  void Accept() {
    while (true) {
      const int caller = accept(fd_, nullptr, nullptr);
      if (caller < 0) return;
      threads_.emplace_back([caller] {
        const Socket socket(caller);
        while (true) {
          const Socket::Received received = socket.Receive(1);
          if (received.bytes.empty()) return;
          socket.Send(received.bytes);
        }
      });
    }
  }

  const int fd_;
  int port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> threads_;
};

class FaultProxyTest : public testing::Test {
 protected:
  FaultProxyTest() : proxy_(*FaultProxy::Start(echo_.port())) {}

  std::string Echo(const Socket& socket, const std::string& bytes) {
    socket.Send(bytes);
    return socket.Receive(bytes.size()).bytes;
  }

  EchoServer echo_;
  // Goes first, and with it all connections.
  std::unique_ptr<FaultProxy> proxy_;
};

TEST_F(FaultProxyTest, ForwardsInBothDirections) {
  const Socket a = Socket::To(proxy_->port());
  const Socket b = Socket::To(proxy_->port());
  EXPECT_EQ(Echo(a, "one"), "one");
  EXPECT_EQ(Echo(b, "two"), "two");
  EXPECT_EQ(Echo(a, "three"), "three");
  EXPECT_EQ(proxy_->connections(), 2);
  EXPECT_EQ(proxy_->resets(), 0);
  EXPECT_EQ(proxy_->forwarded_bytes(), 22);
}

TEST_F(FaultProxyTest, PassesTheEndOfAStreamOn) {
  const Socket socket = Socket::To(proxy_->port());
  socket.Send("last words");
  socket.EndSending();
  const Socket::Received received = socket.Receive(100);
  EXPECT_EQ(received.bytes, "last words");
  EXPECT_TRUE(received.ended);
}

TEST_F(FaultProxyTest, DelaysEachDirection) {
  proxy_->Set({.delay = absl::Milliseconds(40)});
  const Socket socket = Socket::To(proxy_->port());
  const absl::Time start = absl::Now();
  EXPECT_EQ(Echo(socket, "late"), "late");
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(80));
}

TEST_F(FaultProxyTest, LimitsTheBytesPerSecond) {
  proxy_->Set({.bytes_per_second = 1'000'000});
  const Socket socket = Socket::To(proxy_->port());
  const absl::Time start = absl::Now();
  const std::string bytes(100'000, 'x');
  EXPECT_EQ(Echo(socket, bytes), bytes);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(100));
}

TEST_F(FaultProxyTest, HoldsEverythingUntilHealed) {
  const Socket old = Socket::To(proxy_->port());
  EXPECT_EQ(Echo(old, "before"), "before");
  proxy_->Set({.flow = LinkConditions::Flow::kHold});
  const Socket fresh = Socket::To(proxy_->port());
  old.Send("held");
  fresh.Send("too");
  for (const Socket* socket : {&old, &fresh}) {
    const Socket::Received received = socket->Receive(1, kMoment);
    EXPECT_TRUE(received.bytes.empty() && !received.ended && !received.reset);
  }
  proxy_->Heal();
  EXPECT_EQ(old.Receive(4).bytes, "held");
  EXPECT_EQ(fresh.Receive(3).bytes, "too");
}

TEST_F(FaultProxyTest, PartitionResetsNewConnectionsAndKeepsOldOnes) {
  const Socket old = Socket::To(proxy_->port());
  EXPECT_EQ(Echo(old, "before"), "before");
  proxy_->Set({.flow = LinkConditions::Flow::kPartition});
  old.Send("held");
  EXPECT_TRUE(old.Receive(1, kMoment).bytes.empty());
  EXPECT_TRUE(Socket::To(proxy_->port()).Receive(1).reset);
  proxy_->Heal();
  EXPECT_EQ(old.Receive(4).bytes, "held");
  EXPECT_EQ(Echo(Socket::To(proxy_->port()), "after"), "after");
}

TEST_F(FaultProxyTest, ResetsAllConnections) {
  const Socket a = Socket::To(proxy_->port());
  const Socket b = Socket::To(proxy_->port());
  EXPECT_EQ(Echo(a, "x"), "x");
  EXPECT_EQ(Echo(b, "x"), "x");
  proxy_->Reset();
  EXPECT_TRUE(a.Receive(1).reset);
  EXPECT_TRUE(b.Receive(1).reset);
  EXPECT_EQ(proxy_->resets(), 2);
  EXPECT_EQ(Echo(Socket::To(proxy_->port()), "again"), "again");
}

TEST_F(FaultProxyTest, ACallerWhoseTargetDoesNotListenIsReset) {
  int free_port = 0;
  { free_port = (*FaultProxy::Start(1))->port(); }
  const auto proxy = *FaultProxy::Start(free_port);
  EXPECT_TRUE(Socket::To(proxy->port()).Receive(1).reset);
  EXPECT_EQ(proxy->resets(), 0);
}

TEST_F(FaultProxyTest, LaterCallersAreConnectedToAnotherTarget) {
  const auto proxy = *FaultProxy::Start(1);
  EXPECT_TRUE(Socket::To(proxy->port()).Receive(1).reset);
  proxy->LeadTo(echo_.port());
  EXPECT_EQ(Echo(Socket::To(proxy->port()), "there"), "there");
}

TEST_F(FaultProxyTest, APortThatIsTakenIsAnError) {
  const auto second = FaultProxy::Start(echo_.port(), 1, proxy_->port());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(std::to_string(proxy_->port())), std::string::npos);
}

// Bytes that five connections carry, one after the other, until they are reset.
std::vector<int64_t> Lifetimes(int target_port, uint64_t seed) {
  const auto proxy = *FaultProxy::Start(target_port, seed);
  proxy->Set({.mean_bytes_to_reset = 10'000});
  std::vector<int64_t> lifetimes;
  int64_t before = 0;
  for (int i = 0; i < 5; ++i) {
    const Socket socket = Socket::To(proxy->port());
    const std::string bytes(500, 'x');
    bool reset = false;
    while (!reset) {
      socket.Send(bytes);
      reset = socket.Receive(bytes.size()).bytes.size() < bytes.size();
    }
    lifetimes.push_back(proxy->forwarded_bytes() - before);
    before = proxy->forwarded_bytes();
  }
  EXPECT_EQ(proxy->resets(), 5);
  return lifetimes;
}

TEST_F(FaultProxyTest, TheSeedDecidesWhenConnectionsAreReset) {
  const std::vector<int64_t> lifetimes = Lifetimes(echo_.port(), 7);
  EXPECT_EQ(Lifetimes(echo_.port(), 7), lifetimes);
  EXPECT_NE(Lifetimes(echo_.port(), 8), lifetimes);
}

TEST_F(FaultProxyTest, AResetMayBeSetWhileConnectionsAreOpen) {
  const Socket socket = Socket::To(proxy_->port());
  EXPECT_EQ(Echo(socket, "before"), "before");
  proxy_->Set({.mean_bytes_to_reset = 1});
  socket.Send(std::string(1000, 'x'));
  EXPECT_TRUE(socket.Receive(1000).reset);
}

}  // namespace
}  // namespace keelson
