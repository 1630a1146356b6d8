#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/meter.h"
#include "bench/rows/row_roles.h"
#include "bench/socket.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr char kProgram[] = "redis-server";
constexpr double kStartSeconds = 10;

class RedisServer : public PeerRole {
 public:
  RedisServer(pid_t pid, std::string address) : pid_(pid), address_(std::move(address)) {}
  ~RedisServer() override {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  nlohmann::json Ready() const override { return {{"address", address_}}; }

 private:
  const pid_t pid_;
  const std::string address_;
};

// Nothing is saved and nothing is evicted; one thread, since on two cores the client has the other:
// threads for input and output would take turns with it.
std::vector<std::string> Arguments(absl::string_view port) {
  return {kProgram,
          "--bind",
          "127.0.0.1",
          "--port",
          std::string(port),
          "--save",
          "",
          "--appendonly",
          "no",
          "--io-threads",
          "1",
          "--maxmemory",
          "0",
          "--loglevel",
          "warning",
          "--daemonize",
          "no"};
}

pid_t Spawn(absl::string_view port) {
  std::vector<std::string> arguments = Arguments(port);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Standard output belongs to the answers of this process, and Redis says nothing of use.
  dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  execvp(kProgram, argv.data());
  _exit(127);
}

// A port that was free.
absl::StatusOr<std::string> FreeAddress() {
  ASSIGN_OR_RETURN(const Socket listener, Listen(Transport::kTcp));
  return AddressOf(listener);
}

}  // namespace

bool RedisIsInstalled() {
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    if (access(absl::StrCat(folder, "/", kProgram).c_str(), X_OK) == 0) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<PeerRole>> MakeRedisServer(const nlohmann::json&) {
  if (!RedisIsInstalled()) return absl::NotFoundError("redis-server is not installed");
  ASSIGN_OR_RETURN(const std::string address, FreeAddress());
  const std::vector<std::string> parts = absl::StrSplit(address, ':');
  const pid_t pid = Spawn(parts.back());
  if (pid < 0) return absl::InternalError("redis-server cannot be started");
  auto server = std::make_unique<RedisServer>(pid, address);
  const double deadline = MonotonicSeconds() + kStartSeconds;
  while (!Connect(address).ok()) {
    if (MonotonicSeconds() > deadline || waitpid(pid, nullptr, WNOHANG) != 0) {
      return absl::InternalError("redis-server did not start");
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return server;
}

}  // namespace keelson::bench
