// The unix socket beside a server's TCP port, for clients on the same host: it is faster than TCP's
// loopback for small messages. For large ones it is not, since the kernel buffers no more than 208
// KiB (net.core.wmem_default) and both ends take turns.
//
// It is an abstract socket named after the port. Like the port it exists once in a network
// namespace, the same processes can reach both, and no file is left behind.
#ifndef KEELSON_CORE_RPC_LOCAL_SOCKET_H_
#define KEELSON_CORE_RPC_LOCAL_SOCKET_H_

#include <string>

namespace keelson {

// gRPC's name of the socket: "unix-abstract:keelson-2222".
std::string LocalSocket(int port);

// The port of "host:port" when a server that listens there has the port for itself on loopback
// (0.0.0.0, [::], localhost, 127.0.0.1), so that its LocalSocket is its own; else, or when the port
// is 0, 0.
int LocalSocketPort(const std::string& listen_address);

// Whether a process listens on LocalSocket(port) now.
bool LocalSocketListens(int port);

// Where to send bulk traffic for the server at "host:port": its LocalSocket when the host is
// localhost or 127.0.0.1 and it listens there now, else the address itself.
std::string BulkAddress(const std::string& address);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_LOCAL_SOCKET_H_
