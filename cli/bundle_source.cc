#include "cli/bundle_source.h"

#include <set>

#include "cli/keelson_state.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<BundleSource>> BundleSource::Open(const std::string& prefix) {
  ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  return std::unique_ptr<BundleSource>(new BundleSource(std::move(bundle)));
}

std::vector<TensorInfo> BundleSource::List() const {
  std::vector<TensorInfo> tensors;
  for (TensorInfo& tensor : bundle_->List()) {
    if (DtypeSize(tensor.dtype) > 0) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<std::string> BundleSource::Read(absl::string_view name) {
  return bundle_->ReadBytes(name);
}

absl::StatusOr<std::vector<TensorInfo>> BundleSource::Variables() {
  ASSIGN_OR_RETURN(const KeelsonState state, ReadKeelsonState(*bundle_));
  if (state.shards.empty()) return VariablesByName(List());
  std::set<std::string> names;
  for (const auto& [name, shard] : state.shards) {
    names.insert(shard.variables().begin(), shard.variables().end());
  }
  std::vector<TensorInfo> variables;
  for (TensorInfo& tensor : List()) {
    if (names.count(tensor.name) > 0) variables.push_back(std::move(tensor));
  }
  return variables;
}

}  // namespace keelson
