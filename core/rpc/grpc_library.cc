#include "core/rpc/grpc_library.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_limit.h"

namespace keelson {
namespace {

// A peer can make gRPC write a line with each call, by a compression that is switched off for one.
void LogOfGrpc(gpr_log_func_args* args) {
  static LogLimit limit(Clock::Real());
  const std::optional<int64_t> left_out = limit.Admit();
  if (!left_out.has_value()) return;
  LogWarning("gRPC: ", args->message,
             *left_out == 0 ? "" : absl::StrCat(" (and ", *left_out, " lines before it)"));
}

}  // namespace

void KeepGrpcRunning() {
  static const bool running = [] {
    gpr_set_log_function(&LogOfGrpc);
    grpc_init();
    return true;
  }();
  static_cast<void>(running);
}

}  // namespace keelson
