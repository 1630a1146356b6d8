// The role of a process of the benchmark: one of the servers or clients that are compared.
#ifndef KEELSON_BENCH_PEER_ROLE_H_
#define KEELSON_BENCH_PEER_ROLE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "bench/meter.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Lives in its process from its specification to the end of its input. Used by one thread.
class PeerRole {
 public:
  virtual ~PeerRole() = default;

  // The facts that others need: servers return "address".
  virtual nlohmann::json Ready() const { return nlohmann::json::object(); }

  // Executes command["do"]. Clients implement "run": work from now until the window
  // (command["begin"], command["end"], command["until"]) is over, and answer with a ClientReport.
  virtual absl::StatusOr<nlohmann::json> Do(const nlohmann::json& command) {
    return nlohmann::json::object();
  }
};

inline Window WindowOf(const nlohmann::json& command) {
  return {command.at("begin").get<double>(), command.at("end").get<double>(),
          command.at("until").get<double>()};
}

using PeerRoleFactory =
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<PeerRole>>(const nlohmann::json& spec)>;

// The whole life of a peer process: makes the role from the specification, says that it is ready,
// and follows commands until its standard input ends. Returns the exit code.
int RunPeer(const char* spec, PeerRoleFactory make_role);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_PEER_ROLE_H_
