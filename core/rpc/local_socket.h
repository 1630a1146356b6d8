// The unix socket beside a server's TCP port, for clients on the same host: it takes less of the
// processor than TCP's loopback (ADR 0041), where the kernel buffers a message or a good part of
// it. By default that is 208 KiB (net.core.wmem_default), and both ends take turns; so each end
// asks for more.
//
// It is an abstract socket named after the port. Like the port it exists once in a network
// namespace, the same processes can reach both, and no file is left behind.
#ifndef KEELSON_CORE_RPC_LOCAL_SOCKET_H_
#define KEELSON_CORE_RPC_LOCAL_SOCKET_H_

#include <string>

namespace keelson {

// gRPC's name of the socket: "unix-abstract:keelson-2222".
std::string LocalSocket(int port);
// That of the socket beside it, for calls through memory (memory_call.h):
// "unix-abstract:keelson-2222-memory".
std::string MemorySocket(int port);

// The port of "host:port" when a server that listens there has the port for itself on loopback
// (0.0.0.0, [::], localhost, 127.0.0.1), so that its LocalSocket is its own; else, or when the port
// is 0, 0.
int LocalSocketPort(const std::string& listen_address);

// Whether the address is the name of a LocalSocket, or of another abstract one.
bool IsLocalSocket(const std::string& address);

// Has the kernel buffer up to 1 MiB of what is sent, or as much as net.core.wmem_max allows.
void GrowSendBuffer(int fd);

enum class LocalSocketKind {
  kStream,
  kPackets,  // that keeps the bounds of messages: SOCK_SEQPACKET
};

// A socket that listens on the abstract one of this address, or that is connected to it, with
// GrowSendBuffer done; -1: errno says why there is none.
int ListenLocally(const std::string& address, LocalSocketKind kind = LocalSocketKind::kStream);
int ConnectLocally(const std::string& address, LocalSocketKind kind = LocalSocketKind::kStream);

// Where bulk traffic for the server at "host:port" may go: to its LocalSocket when the host is
// localhost or 127.0.0.1, if it listens there; else to the address itself.
std::string BulkAddress(const std::string& address);
// The MemorySocket of the server at "host:port" when the host is localhost or 127.0.0.1; else "".
std::string MemoryAddress(const std::string& address);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_LOCAL_SOCKET_H_
