// Plain blocking stream sockets within this host, for the limit that the others are compared to.
#ifndef KEELSON_BENCH_SOCKET_H_
#define KEELSON_BENCH_SOCKET_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace keelson::bench {

// kMemory: that of Keelson's own messages; all others take unix sockets then.
enum class Transport { kTcp, kUnix, kMemory };

// "tcp", "unix", "memory".
std::string TransportName(Transport transport);
Transport TransportFromName(const std::string& name);

// Closes its descriptor.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~Socket();

  int descriptor() const { return descriptor_; }

  // False when the other side has closed.
  bool Send(const char* data, size_t size) const;
  // Fills `data`; returns the bytes received, less than `size` at the end of the stream.
  size_t Receive(char* data, size_t size) const;

 private:
  int descriptor_;
};

// A listening socket on a free port of the loopback interface, or on an abstract unix socket of
// this process. INTERNAL: the system's error.
absl::StatusOr<Socket> Listen(Transport transport);
// "127.0.0.1:port" or "unix-abstract:name", as gRPC writes them.
std::string AddressOf(const Socket& listener);
absl::StatusOr<Socket> Accept(const Socket& listener);
// INVALID_ARGUMENT: `address` is none of AddressOf's.
absl::StatusOr<Socket> Connect(const std::string& address);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_SOCKET_H_
