#include "core/rpc/grpc_library.h"

#include <grpc/grpc.h>

namespace keelson {

void KeepGrpcRunning() {
  static const bool running = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(running);
}

}  // namespace keelson
