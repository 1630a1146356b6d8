#include "core/tensor_files/tensor_names.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/object_graph.h"

namespace keelson {
namespace {

using Keys = std::vector<std::string>;

absl::StatusOr<std::map<std::string, TrackedTensor>> ReadTracked(const BundleReader& bundle) {
  ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(kObjectGraphTensor));
  v1::ObjectGraph graph;
  if (!graph.ParseFromString(bytes)) {
    return absl::DataLossError(
        absl::StrCat(bundle.prefix(), ": ", kObjectGraphTensor, ": not an object graph"));
  }
  return TrackedTensors(graph);
}

bool SameTensor(const BundleReader& bundle, const std::string& a, const std::string& b) {
  const auto first = bundle.Info(a);
  const auto second = bundle.Info(b);
  if (!first.ok() || !second.ok() || first->dtype != second->dtype ||
      first->shape != second->shape) {
    return false;
  }
  const auto first_bytes = bundle.ReadBytes(a);
  const auto second_bytes = bundle.ReadBytes(b);
  return first_bytes.ok() && second_bytes.ok() && *first_bytes == *second_bytes;
}

bool AllSame(const BundleReader& bundle, const Keys& keys) {
  for (size_t i = 1; i < keys.size(); ++i) {
    if (!SameTensor(bundle, keys[0], keys[i])) return false;
  }
  return true;
}

class Namer {
 public:
  Namer(const BundleReader& bundle, std::map<std::string, TrackedTensor> tracked)
      : bundle_(bundle), tracked_(std::move(tracked)) {}

  TensorNames Run() && {
    std::map<std::string, Keys> by_name;
    Keys unnamed;
    for (const TensorInfo& tensor : bundle_.List()) {
      const auto found = tracked_.find(tensor.name);
      const bool named = found != tracked_.end() && !found->second.name.empty();
      (named ? by_name[found->second.name] : unnamed).push_back(tensor.name);
    }
    for (const auto& [name, keys] : by_name) {
      if (AllSame(bundle_, keys)) {
        Take(name, keys[0]);
      } else {
        unnamed.insert(unnamed.end(), keys.begin(), keys.end());
      }
    }
    for (const std::string& key : unnamed) Take(std::string(PathOfKey(key)), key);
    names_.tracked = true;
    return std::move(names_);
  }

 private:
  // Gives the tensor its name in the bundle where another one has `name`.
  void Take(const std::string& name, const std::string& key) {
    const bool is_new = names_.in_bundle.emplace(name, key).second;
    const std::string& taken = is_new ? name : key;
    if (!is_new) names_.in_bundle.emplace(key, key);
    const auto found = tracked_.find(key);
    if (found != tracked_.end() && found->second.is_state) names_.state.insert(taken);
  }

  const BundleReader& bundle_;
  const std::map<std::string, TrackedTensor> tracked_;
  TensorNames names_;
};

}  // namespace

std::string TensorNames::InBundle(absl::string_view name) const {
  const auto found = in_bundle.find(name);
  return found == in_bundle.end() ? std::string(name) : found->second;
}

bool IsRecord(absl::string_view name) {
  return absl::StartsWith(name, "_keelson/") || name == kObjectGraphTensor;
}

absl::StatusOr<TensorNames> TensorNamesOf(const BundleReader& bundle) {
  if (bundle.Contains(kObjectGraphTensor)) {
    ASSIGN_OR_RETURN(auto tracked, ReadTracked(bundle));
    return Namer(bundle, std::move(tracked)).Run();
  }
  TensorNames names;
  for (const TensorInfo& tensor : bundle.List()) names.in_bundle.emplace(tensor.name, tensor.name);
  return names;
}

}  // namespace keelson
