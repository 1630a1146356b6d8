#include "bench/peer_role.h"

#include <signal.h>
#include <sys/prctl.h>

#include <iostream>
#include <string>

#include "core/base/exit_code.h"
#include "core/base/log.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

void Answer(const json& answer) { std::cout << answer.dump() << std::endl; }

void Answer(const absl::StatusOr<json>& answer) {
  Answer(answer.ok() ? *answer : json{{"error", std::string(answer.status().message())}});
}

}  // namespace

int RunPeer(const char* spec_text, PeerRoleFactory make_role) {
  // If the parent is killed, no process closes the input of its other children.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const json spec = json::parse(spec_text, nullptr, /*allow_exceptions=*/false);
  if (!spec.is_object()) {
    LogError("peer: expected a specification, found ", spec_text);
    return kExitPermanent;
  }
  const absl::StatusOr<std::unique_ptr<PeerRole>> role = make_role(spec);
  if (!role.ok()) {
    Answer(absl::StatusOr<json>(role.status()));
    return kExitPermanent;
  }
  Answer((*role)->Ready());
  for (std::string line; std::getline(std::cin, line);) {
    Answer((*role)->Do(json::parse(line, nullptr, /*allow_exceptions=*/false)));
  }
  return kExitDone;
}

}  // namespace keelson::bench
