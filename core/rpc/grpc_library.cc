#include "core/rpc/grpc_library.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_limit.h"

namespace keelson {
namespace {

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::Utf8SafeCHexEscape(text), {{"\\'", "'"}, {"\\\"", "\""}});
}

// A peer can make gRPC write a line with each call, by a compression that is switched off for one,
// and in it what bytes it likes.
void LogOfGrpc(gpr_log_func_args* args) {
  static LogLimit limit(Clock::Real());
  const std::optional<int64_t> left_out = limit.Admit();
  if (!left_out.has_value()) return;
  LogWarning("gRPC: ", OneLine(args->message),
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
