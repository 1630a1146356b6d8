// Who may call which method, and how large its requests may be: one table for all services, and the
// guard that asks it before a request is decoded. What the table does not list is refused.
#ifndef KEELSON_CORE_RPC_ACCESS_H_
#define KEELSON_CORE_RPC_ACCESS_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/log_limit.h"
#include "core/rpc/connection_gate.h"

namespace keelson {

// What a caller is taken for. The first three are members of the job. An operator is a person's
// tool or the dashboard's page: it changes the job without belonging to it.
enum class CallerKind { kChief, kWorker, kEvaluator, kOperator, kStranger };

// What an operator needs besides the name.
enum class OperatorAccess { kNone, kToken, kTokenIfAny };

struct AccessRow {
  absl::string_view method;  // "/keelson.v1.ChiefService/Register"
  // Members that may call; with kStranger among them, anyone may.
  absl::Span<const CallerKind> allowed;
  // The largest request, or message of a stream of requests.
  size_t max_request_bytes = 0;
  OperatorAccess operators = OperatorAccess::kNone;
};

// Every method of Keelson's services and of gRPC's health service, each once.
absl::Span<const AccessRow> AccessTable();

// AccessRow::max_request_bytes; 0 for a method that the table does not list.
size_t MaxRequestBytes(absl::string_view method);

// INVALID_ARGUMENT: "Register: expected a request of at most 1048576 bytes, found 2000000".
absl::Status CheckRequestSize(absl::string_view method, size_t bytes);

// What the transport tells of a caller. The views live as long as the call.
struct Caller {
  absl::string_view role;           // of the metadata; empty: none
  absl::string_view job_token;      // likewise
  absl::string_view authorization;  // "Bearer TOKEN"; likewise
  std::string peer;                 // "ipv4:10.0.0.7:40210"
  absl::string_view protocol;       // of the metadata; empty: none
};

// Checks callers against the table and the job's secrets. A job without a job token takes the role
// that a caller claims for true. Thread-safe.
class AccessGuard {
 public:
  struct Secrets {
    std::string job_token;   // empty: the job has none
    std::string auth_token;  // likewise
  };

  explicit AccessGuard(Secrets secrets = {}, const Clock* clock = Clock::Real())
      : secrets_(std::move(secrets)), audit_(clock) {}

  // What the caller of `method` is. PERMISSION_DENIED: the table does not let it call, or it lacks
  // the token; the text says which and has no secret in it. FAILED_PRECONDITION: the caller speaks
  // another message protocol; the text has both versions. Refusals are logged with the peer: the
  // first ones each, and a flood of them once a second with their number.
  absl::StatusOr<CallerKind> Check(absl::string_view method, const Caller& caller) const;
  absl::StatusOr<CallerKind> Check(absl::string_view method,
                                   const grpc::ServerContextBase& context) const;

  // From now on `gate` is told of the connections of callers that belong to the job, until it is
  // taken back. It outlives the calls. One at a time.
  void ReportTo(ConnectionGate* gate) const { gate_ = gate; }
  void ReportNoMoreTo(ConnectionGate* gate) const { gate_.compare_exchange_strong(gate, nullptr); }

  // CheckRequestSize, with the refusal in the log.
  absl::Status CheckSize(absl::string_view method, size_t bytes,
                         const grpc::ServerContextBase& context) const;

 private:
  absl::StatusOr<CallerKind> Decide(absl::string_view method, const Caller& caller) const;
  // Whether the caller belongs to the job, or is its operator.
  bool Belongs(CallerKind kind, const Caller& caller) const;
  bool ShowsAuthToken(const Caller& caller) const;
  absl::Status CheckMember(const Caller& caller) const;
  // The check of a caller that does not show the token of --auth_token_file.
  absl::Status CheckOperator(const AccessRow& row, const Caller& caller) const;
  void Audit(absl::string_view method, const Caller& caller, const absl::Status& refusal) const;

  const Secrets secrets_;
  mutable LogLimit audit_;
  mutable std::atomic<ConnectionGate*> gate_{nullptr};
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_ACCESS_H_
