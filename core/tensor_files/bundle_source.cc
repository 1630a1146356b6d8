#include "core/tensor_files/bundle_source.h"

#include <set>

#include "core/base/status_macros.h"
#include "core/tensor_files/keelson_state.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<BundleSource>> BundleSource::Open(const std::string& prefix) {
  ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  ASSIGN_OR_RETURN(TensorNames names, TensorNamesOf(*bundle));
  return std::unique_ptr<BundleSource>(new BundleSource(std::move(bundle), std::move(names)));
}

std::vector<TensorInfo> BundleSource::List() const {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, in_bundle] : names_.in_bundle) {
    absl::StatusOr<TensorInfo> info = bundle_->Info(in_bundle);
    if (info.ok()) tensors.push_back({name, info->dtype, std::move(info->shape)});
  }
  return tensors;
}

absl::StatusOr<std::string> BundleSource::Read(absl::string_view name) {
  return bundle_->ReadBytes(names_.InBundle(name));
}

absl::StatusOr<std::vector<std::string>> BundleSource::ReadStrings(absl::string_view name) {
  return bundle_->ReadStrings(names_.InBundle(name));
}

absl::Status BundleSource::ReadFloats(absl::string_view name, int64_t first,
                                      absl::Span<float> out) {
  return bundle_->ReadElements(names_.InBundle(name), first, out);
}

absl::StatusOr<const StoredTables*> BundleSource::Tables() {
  if (!tables_.has_value()) {
    ASSIGN_OR_RETURN(StoredTables tables, StoredTables::Open(bundle_.get()));
    tables_.emplace(std::move(tables));
  }
  return tables_->tables().empty() ? nullptr : &*tables_;
}

absl::StatusOr<std::vector<TensorInfo>> BundleSource::Variables() {
  ASSIGN_OR_RETURN(const KeelsonState state, ReadKeelsonState(*bundle_));
  if (state.shards.empty() && !names_.tracked) return VariablesByName(List());
  std::set<std::string> recorded;
  for (const auto& [name, shard] : state.shards) {
    recorded.insert(shard.variables().begin(), shard.variables().end());
  }
  std::vector<TensorInfo> variables;
  for (TensorInfo& tensor : List()) {
    const bool is_variable =
        names_.tracked ? names_.state.count(tensor.name) == 0 && DtypeSize(tensor.dtype) > 0
                       : recorded.count(tensor.name) > 0;
    if (is_variable) variables.push_back(std::move(tensor));
  }
  return variables;
}

}  // namespace keelson
