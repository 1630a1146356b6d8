#include "core/rpc/access.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/auth_token.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/credentials.h"
#include "core/rpc/protocol.h"
#include "core/wire/bulk_messages.h"

namespace keelson {
namespace {

using enum CallerKind;

constexpr CallerKind kChiefOnly[] = {kChief};
constexpr CallerKind kWorkers[] = {kWorker};
constexpr CallerKind kEvaluators[] = {kEvaluator};
constexpr CallerKind kMembers[] = {kWorker, kEvaluator};
constexpr CallerKind kNobody[] = {kOperator};
constexpr CallerKind kAnyone[] = {kStranger};

// What a request holds at most: a few numbers and names; a worker's report, or the addresses of a
// bulk message's blocks; a placement, which grows severalfold when it is decoded; a job's state, or
// a block with its slots.
constexpr size_t kFewBytes = 64 << 10;
constexpr size_t kReportBytes = 1 << 20;
constexpr size_t kPlacementBytes = 8 << 20;
constexpr size_t kStateBytes = 64 << 20;
constexpr size_t kPushBytes = kBulkPayloadBytes + kReportBytes;

constexpr AccessRow kTable[] = {
    {"/keelson.v1.ParameterService/Initialize", kChiefOnly, kPlacementBytes},
    {"/keelson.v1.ParameterService/InitializeStreamed", kChiefOnly, kStateBytes},
    {"/keelson.v1.ParameterService/ChiefHeartbeat", kChiefOnly, kStateBytes},
    {"/keelson.v1.ParameterService/Attend", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/CommitRound", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/PrepareCut", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/WriteSnapshot", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/StreamSnapshot", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/Finish", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/ReplicateShard", kChiefOnly, kPlacementBytes},
    {"/keelson.v1.ParameterService/ReplicateRound", kChiefOnly, kFewBytes},
    {"/keelson.v1.ParameterService/ReadShard", kWorkers, kFewBytes},
    {"/keelson.v1.ParameterService/ReadRound", kWorkers, kFewBytes},
    {"/keelson.v1.ParameterService/Pull", kWorkers, kReportBytes},
    {"/keelson.v1.ParameterService/Push", kWorkers, kPushBytes},
    {"/keelson.v1.ParameterService/PushPull", kWorkers, kPushBytes},
    {"/keelson.v1.ParameterService/FindChief", kMembers, kFewBytes},
    {"/keelson.v1.ParameterService/GetStatus", kAnyone, kFewBytes},
    {"/keelson.v1.ChiefService/Register", kMembers, kReportBytes},
    {"/keelson.v1.ChiefService/GetModel", kMembers, kFewBytes},
    {"/keelson.v1.ChiefService/Heartbeat", kMembers, kReportBytes},
    {"/keelson.v1.ChiefService/Leave", kMembers, kReportBytes},
    {"/keelson.v1.ChiefService/AcquireWork", kWorkers, kReportBytes},
    {"/keelson.v1.ChiefService/Admit", kWorkers, kFewBytes},
    {"/keelson.v1.ChiefService/AcknowledgeEvaluation", kEvaluators, kReportBytes},
    {"/keelson.v1.ChiefService/EndTraining", kMembers, kFewBytes, OperatorAccess::kToken},
    {"/keelson.v1.ChiefService/SaveSnapshot", kMembers, kFewBytes, OperatorAccess::kToken},
    {"/keelson.v1.ChiefService/SetMode", kNobody, kFewBytes, OperatorAccess::kTokenIfAny},
    {"/keelson.v1.ChiefService/ProposeJob", kMembers, kPlacementBytes},
    {"/keelson.v1.ChiefService/AnnounceHost", kWorkers, kFewBytes},
    {"/keelson.v1.ChiefService/GetJobStatus", kAnyone, kFewBytes},
    {"/grpc.health.v1.Health/Check", kAnyone, kFewBytes},
    {"/grpc.health.v1.Health/Watch", kAnyone, kFewBytes},
};

const AccessRow* FindRow(absl::string_view method) {
  const auto* const row = std::find_if(std::begin(kTable), std::end(kTable),
                                       [&](const AccessRow& r) { return r.method == method; });
  return row == std::end(kTable) ? nullptr : row;
}

CallerKind KindOf(absl::string_view role) {
  if (role == "chief") return kChief;
  if (role == "worker") return kWorker;
  if (role == "evaluator") return kEvaluator;
  if (role == "operator") return kOperator;
  return kStranger;
}

bool Allows(const AccessRow& row, CallerKind kind) {
  return std::find(row.allowed.begin(), row.allowed.end(), kind) != row.allowed.end();
}

absl::string_view NameOf(absl::string_view method) { return method.substr(method.rfind('/') + 1); }

// A caller chooses what it claims: what is logged of it is short and printable.
std::string Shown(absl::string_view text) {
  std::string shown(text.substr(0, 20));
  for (char& c : shown) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) c = '?';
  }
  return shown.empty() ? "nobody" : shown;
}

absl::string_view Metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

}  // namespace

absl::Span<const AccessRow> AccessTable() { return kTable; }

size_t MaxRequestBytes(absl::string_view method) {
  const AccessRow* const row = FindRow(method);
  return row == nullptr ? 0 : row->max_request_bytes;
}

absl::Status CheckRequestSize(absl::string_view method, size_t bytes) {
  const size_t most = MaxRequestBytes(method);
  if (bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(NameOf(method), ": expected a request of at most ",
                                                 most, " bytes, found ", bytes));
}

absl::Status AccessGuard::CheckSize(absl::string_view method, size_t bytes,
                                    const grpc::ServerContextBase& context) const {
  absl::Status status = CheckRequestSize(method, bytes);
  if (!status.ok()) {
    Audit(method, {Metadata(context, kRoleKey), {}, {}, context.peer(), {}}, status);
  }
  return status;
}

absl::StatusOr<CallerKind> AccessGuard::Check(absl::string_view method,
                                              const Caller& caller) const {
  absl::StatusOr<CallerKind> kind = Decide(method, caller);
  if (!kind.ok()) Audit(method, caller, kind.status());
  return kind;
}

absl::StatusOr<CallerKind> AccessGuard::Check(absl::string_view method,
                                              const grpc::ServerContextBase& context) const {
  Caller caller = {Metadata(context, kRoleKey), Metadata(context, kJobTokenKey),
                   Metadata(context, kAuthorizationKey), "", Metadata(context, kProtocolKey)};
  absl::StatusOr<CallerKind> kind = Decide(method, caller);
  ConnectionGate* const gate = gate_;
  if (kind.ok()) {
    if (gate != nullptr && gate->has_unknown() && Belongs(*kind, caller)) {
      gate->Know(context.peer());
    }
    return kind;
  }
  caller.peer = context.peer();
  Audit(method, caller, kind.status());
  return kind;
}

absl::StatusOr<CallerKind> AccessGuard::Decide(absl::string_view method,
                                               const Caller& caller) const {
  const AccessRow* const row = FindRow(method);
  if (row == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat(NameOf(method), ": nobody may call it"));
  }
  if (Allows(*row, kStranger)) return kStranger;
  // First: a caller of another build may also show its secrets in another way.
  RETURN_IF_ERROR(CheckProtocol(caller.protocol, "the caller"));
  // The evaluator makes its page's calls too, with the token that the page's visitor has shown.
  if (row->operators != OperatorAccess::kNone && ShowsAuthToken(caller)) return kOperator;
  const CallerKind kind = KindOf(caller.role);
  if (kind != kOperator && Allows(*row, kind)) {
    RETURN_IF_ERROR(CheckMember(caller));
    return kind;
  }
  if (row->operators == OperatorAccess::kNone) {
    return absl::PermissionDeniedError(
        absl::StrCat(NameOf(method), ": not for \"", Shown(caller.role), "\""));
  }
  RETURN_IF_ERROR(CheckOperator(*row, caller));
  return kOperator;
}

bool AccessGuard::Belongs(CallerKind kind, const Caller& caller) const {
  // What anyone may call is called by members too.
  return kind != kStranger || (KindOf(caller.role) != kStranger && CheckMember(caller).ok());
}

bool AccessGuard::ShowsAuthToken(const Caller& caller) const {
  absl::string_view token = caller.authorization;
  return absl::ConsumePrefix(&token, "Bearer ") && SameToken(token, secrets_.auth_token);
}

absl::Status AccessGuard::CheckMember(const Caller& caller) const {
  if (secrets_.job_token.empty() || SameToken(caller.job_token, secrets_.job_token)) {
    return absl::OkStatus();
  }
  if (caller.job_token.empty()) {
    return absl::PermissionDeniedError(
        "the job's token is needed (--job_token_file), the call has none");
  }
  return absl::PermissionDeniedError("the call's --job_token_file is not that of the job");
}

absl::Status AccessGuard::CheckOperator(const AccessRow& row, const Caller& caller) const {
  if (secrets_.job_token.empty() && secrets_.auth_token.empty()) {
    if (row.operators == OperatorAccess::kTokenIfAny) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat(NameOf(row.method),
                     " needs --auth_token_file or --job_token_file: this chief runs without"));
  }
  if (SameToken(caller.job_token, secrets_.job_token)) return absl::OkStatus();
  if (caller.authorization.empty() && caller.job_token.empty()) {
    return absl::PermissionDeniedError(
        "the job's token is needed (--auth_token_file or --job_token_file), the call has none");
  }
  return absl::PermissionDeniedError("the call's token is not that of the job");
}

void AccessGuard::Audit(absl::string_view method, const Caller& caller,
                        const absl::Status& refusal) const {
  const std::optional<int64_t> unlogged = audit_.Admit();
  if (!unlogged.has_value()) return;
  LogWarning("refused ", NameOf(method), " of ", caller.peer, " as ", Shown(caller.role), ": ",
             refusal.message(),
             *unlogged == 0 ? "" : absl::StrCat(" (and ", *unlogged, " calls before it)"));
}

}  // namespace keelson
