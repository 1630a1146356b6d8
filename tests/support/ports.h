// Ports for servers that tests start, stop and start again.
#ifndef KEELSON_TESTS_SUPPORT_PORTS_H_
#define KEELSON_TESTS_SUPPORT_PORTS_H_

#include <vector>

namespace keelson {

// Free ports of 127.0.0.1, below the range that the kernel gives to outgoing connections, so that
// no client takes one while its server is down. Jobs that run at the same time keep out of each
// other's way by sockets of the ports' names in the abstract namespace, as deploy/tfjob_local does.
class ReservedPorts {
 public:
  // Fewer are there when the machine has no more; tests need only a few.
  explicit ReservedPorts(int count);
  ~ReservedPorts();
  ReservedPorts(const ReservedPorts&) = delete;
  ReservedPorts& operator=(const ReservedPorts&) = delete;

  int operator[](int i) const { return ports_.at(i); }

 private:
  bool Reserve(int port);

  std::vector<int> ports_;
  std::vector<int> reservations_;  // file descriptors
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_PORTS_H_
