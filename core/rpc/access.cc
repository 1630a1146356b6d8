#include "core/rpc/access.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/auth_token.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/credentials.h"

namespace keelson {
namespace {

using enum CallerKind;

constexpr CallerKind kChiefOnly[] = {kChief};
constexpr CallerKind kWorkers[] = {kWorker};
constexpr CallerKind kEvaluators[] = {kEvaluator};
constexpr CallerKind kMembers[] = {kWorker, kEvaluator};
constexpr CallerKind kNobody[] = {kOperator};
constexpr CallerKind kAnyone[] = {kStranger};

constexpr AccessRow kTable[] = {
    {"/keelson.v1.ParameterService/Initialize", kChiefOnly},
    {"/keelson.v1.ParameterService/InitializeStreamed", kChiefOnly},
    {"/keelson.v1.ParameterService/ChiefHeartbeat", kChiefOnly},
    {"/keelson.v1.ParameterService/CommitRound", kChiefOnly},
    {"/keelson.v1.ParameterService/WriteSnapshot", kChiefOnly},
    {"/keelson.v1.ParameterService/StreamSnapshot", kChiefOnly},
    {"/keelson.v1.ParameterService/Finish", kChiefOnly},
    {"/keelson.v1.ParameterService/Pull", kWorkers},
    {"/keelson.v1.ParameterService/Push", kWorkers},
    {"/keelson.v1.ParameterService/PushPull", kWorkers},
    {"/keelson.v1.ParameterService/FindChief", kMembers},
    {"/keelson.v1.ParameterService/GetStatus", kAnyone},
    {"/keelson.v1.ChiefService/Register", kMembers},
    {"/keelson.v1.ChiefService/GetModel", kMembers},
    {"/keelson.v1.ChiefService/Heartbeat", kMembers},
    {"/keelson.v1.ChiefService/Leave", kMembers},
    {"/keelson.v1.ChiefService/AcquireWork", kWorkers},
    {"/keelson.v1.ChiefService/Admit", kWorkers},
    {"/keelson.v1.ChiefService/AcknowledgeEvaluation", kEvaluators},
    {"/keelson.v1.ChiefService/EndTraining", kEvaluators, OperatorAccess::kToken},
    {"/keelson.v1.ChiefService/SetMode", kNobody, OperatorAccess::kTokenIfAny},
    {"/keelson.v1.ChiefService/GetJobStatus", kAnyone},
    {"/grpc.health.v1.Health/Check", kAnyone},
    {"/grpc.health.v1.Health/Watch", kAnyone},
};

// Refusals that are logged one by one before a flood is summed up.
constexpr int64_t kLoggedOneByOne = 20;

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

absl::string_view Metadata(const grpc::ServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

}  // namespace

absl::Span<const AccessRow> AccessTable() { return kTable; }

absl::StatusOr<CallerKind> AccessGuard::Check(absl::string_view method,
                                              const Caller& caller) const {
  absl::StatusOr<CallerKind> kind = Decide(method, caller);
  if (!kind.ok()) Audit(method, caller, kind.status());
  return kind;
}

absl::StatusOr<CallerKind> AccessGuard::Check(absl::string_view method,
                                              const grpc::ServerContext& context) const {
  Caller caller = {Metadata(context, kRoleKey), Metadata(context, kJobTokenKey),
                   Metadata(context, kAuthorizationKey), ""};
  absl::StatusOr<CallerKind> kind = Decide(method, caller);
  if (kind.ok()) return kind;
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
  int64_t unlogged = 0;
  {
    MutexLock lock(&mu_);
    const absl::Duration now = clock_->Monotonic();
    if (++refusals_ > kLoggedOneByOne && now < logged_at_ + absl::Seconds(1)) {
      ++unlogged_;
      return;
    }
    logged_at_ = now;
    std::swap(unlogged, unlogged_);
  }
  LogWarning("refused ", NameOf(method), " of ", caller.peer, " as ", Shown(caller.role), ": ",
             refusal.message(),
             unlogged == 0 ? "" : absl::StrCat(" (and ", unlogged, " calls before it)"));
}

}  // namespace keelson
