#include "core/rpc/protocol.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// What a peer shows may be anything; a text of it is short and printable.
std::string Readable(absl::string_view shown) {
  std::string text(shown.substr(0, 20));
  for (char& c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) c = '?';
  }
  return text.empty() ? "none" : text;
}

}  // namespace

absl::Status CheckProtocol(absl::string_view shown, absl::string_view who) {
  if (shown == kProtocol) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(who,
                                                    " is of another build: expected message "
                                                    "protocol ",
                                                    kProtocol, ", found ", Readable(shown)));
}

void ShowProtocol(grpc::ServerContextBase* context) {
  context->AddInitialMetadata(kProtocolKey, kProtocol);
}

absl::Status CheckAnswer(const grpc::ClientContext& context, absl::string_view who) {
  const auto& metadata = context.GetServerInitialMetadata();
  const auto shown = metadata.find(kProtocolKey);
  if (shown == metadata.end()) return CheckProtocol("", who);
  return CheckProtocol({shown->second.data(), shown->second.size()}, who);
}

}  // namespace keelson
