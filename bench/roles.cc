#include "bench/roles.h"

#include "absl/strings/str_cat.h"
#include "bench/baseline_roles.h"
#include "bench/limit_roles.h"
#include "bench/parameter_server_role.h"
#include "bench/rows/row_roles.h"
#include "bench/worker_role.h"
#include "core/base/allocator.h"

namespace keelson::bench {

absl::StatusOr<std::unique_ptr<PeerRole>> MakeRole(const nlohmann::json& spec) {
  const auto role = spec.value("role", "");
  if (spec.value("tuned", true)) TuneAllocator();
  if (role == "raw_receiver") return MakeRawReceiver(spec);
  if (role == "raw_sender") return MakeRawSender(spec);
  if (role == "memory_copier") return MakeMemoryCopier(spec);
  if (role == "baseline_server") return MakeBaselineServer(spec);
  if (role == "baseline_client") return MakeBaselineClient(spec);
  if (role == "parameter_server") return MakeParameterServer(spec);
  if (role == "worker") return MakeWorker(spec);
  if (role == "row_worker") return MakeRowWorker(spec);
  if (role == "redis_server") return MakeRedisServer(spec);
  return absl::InvalidArgumentError(absl::StrCat("no role \"", role, "\""));
}

}  // namespace keelson::bench
