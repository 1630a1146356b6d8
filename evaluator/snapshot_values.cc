#include "evaluator/snapshot_values.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status WrongVariable(const BundleReader& bundle, const VariableSpec& variable,
                           absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(bundle.prefix(), ": variable '", variable.name,
                                                 "': the model expects float32 ",
                                                 variable.shape.ToString(), ", found ", found));
}

void KeepUp(SnapshotLease* lease, const Clock* clock) {
  if (lease == nullptr || lease->expires() - clock->Now() > SnapshotLease::kDuration / 2) return;
  const absl::Status status = lease->Renew();
  if (!status.ok()) LogWarning("the snapshot may be deleted: ", status.message());
}

}  // namespace

absl::Status CheckVariables(const BundleReader& bundle, absl::Span<const VariableSpec> variables) {
  std::map<std::string, TensorInfo> stored;
  for (TensorInfo& tensor : bundle.List()) stored.emplace(tensor.name, std::move(tensor));
  for (const VariableSpec& variable : variables) {
    const auto found = stored.find(variable.name);
    if (found == stored.end()) return WrongVariable(bundle, variable, "none");
    const TensorInfo& tensor = found->second;
    if (tensor.dtype != BundleDtype::kFloat32 || tensor.shape != variable.shape) {
      return WrongVariable(bundle, variable,
                           absl::StrCat(DtypeName(tensor.dtype), " ", tensor.shape.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadVariables(
    const BundleReader& bundle, absl::Span<const VariableSpec> variables, SnapshotLease* lease,
    const Clock* clock,
    absl::FunctionRef<absl::Status(size_t variable, absl::Span<const float> values)> take) {
  for (size_t i = 0; i < variables.size(); ++i) {
    KeepUp(lease, clock);
    ASSIGN_OR_RETURN(const Tensor values, bundle.ReadTensor(variables[i].name));
    RETURN_IF_ERROR(take(i, values.span()));
  }
  return absl::OkStatus();
}

}  // namespace keelson
