#include "tests/stranger/crowd.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace keelson {
namespace {

constexpr absl::Duration kTrickle = absl::Seconds(1);
constexpr absl::Duration kPause = absl::Milliseconds(100);
// No more connections are opened between two pauses, so that those that stay are looked at too.
constexpr size_t kMostOpened = 1000;

// What a connection says: all at once, or a byte at a time.
struct Manner {
  std::string bytes;
  bool trickles = false;
};

std::vector<Manner> Manners() {
  std::vector<Manner> manners = {{""}, {Preface()}};
  for (const char* method :
       {"/keelson.v1.ParameterService/GetStatus", "/keelson.v1.ChiefService/GetJobStatus",
        "/keelson.v1.ParameterService/Push", "/grpc.health.v1.Health/Watch"}) {
    const std::string call =
        absl::StrCat(Preface(), HeaderFrames(1, HeaderBlock(CallHeaders(method, {}))));
    const std::string message = GrpcMessage(std::string(100, '\x0a'));
    const std::string data = Frame(FrameType::kData, 0, 1, message);
    manners.push_back({call});
    manners.push_back({absl::StrCat(call, data.substr(0, 20))});
    manners.push_back({absl::StrCat(call, data), true});
  }
  return manners;
}

class Bystander {
 public:
  Bystander(const std::string& source, int port, const Manner* manner)
      : manner_(manner), socket_(ConnectFrom(source, port).value_or(-1)) {}
  ~Bystander() {
    if (socket_ >= 0) close(socket_);
  }
  Bystander(Bystander&& other) noexcept
      : manner_(other.manner_), socket_(std::exchange(other.socket_, -1)), said_(other.said_) {}
  Bystander& operator=(Bystander&& other) noexcept {
    std::swap(manner_, other.manner_);
    std::swap(socket_, other.socket_);
    std::swap(said_, other.said_);
    return *this;
  }

  // Says what is due. False: the server has closed the connection, or there is none.
  bool Stays(bool trickle) {
    if (socket_ < 0) return false;
    char taken[4096];
    const ssize_t size = recv(socket_, taken, sizeof(taken), MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != ENOTCONN)) return false;
    const absl::string_view left = absl::string_view(manner_->bytes).substr(said_);
    if (left.empty() || (manner_->trickles && !trickle)) return true;
    const ssize_t sent = send(socket_, left.data(), manner_->trickles ? 1 : left.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    said_ += sent > 0 ? static_cast<size_t>(sent) : 0;
    return true;
  }

 private:
  const Manner* manner_;
  int socket_;
  size_t said_ = 0;
};

}  // namespace

CrowdTally StandAround(const Assault& assault, const std::vector<int>& ports, size_t size) {
  const std::vector<Manner> manners = Manners();
  std::vector<Bystander> crowd;
  CrowdTally tally;
  absl::Time trickled = absl::Now();
  while (assault.Goes()) {
    const bool trickle = absl::Now() >= trickled + kTrickle;
    if (trickle) trickled = absl::Now();
    const size_t before = crowd.size();
    std::erase_if(crowd, [trickle](Bystander& one) { return !one.Stays(trickle); });
    tally.closed_by_servers += static_cast<int64_t>(before - crowd.size());
    for (size_t i = 0; i < kMostOpened && crowd.size() < size; ++i) {
      const auto number = static_cast<size_t>(tally.opened++);
      crowd.emplace_back(assault.source, ports[number % ports.size()],
                         &manners[number / ports.size() % manners.size()]);
    }
    tally.most_at_once = std::max(tally.most_at_once, static_cast<int64_t>(crowd.size()));
    absl::SleepFor(kPause);
  }
  return tally;
}

}  // namespace keelson
