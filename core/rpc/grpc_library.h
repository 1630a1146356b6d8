// Keeps the gRPC library initialized in the process.
#ifndef KEELSON_CORE_RPC_GRPC_LIBRARY_H_
#define KEELSON_CORE_RPC_GRPC_LIBRARY_H_

namespace keelson {

// Starts gRPC and keeps it until the process ends. Otherwise the destructor of the last channel,
// queue or server shuts it down, and waits for up to 10 seconds for a thread that polls a
// connection whose writes once filled the socket. What gRPC logs comes into the program's log, with
// log_limit.h. Code that makes gRPC objects calls it first.
// Thread-safe.
void KeepGrpcRunning();

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_GRPC_LIBRARY_H_
