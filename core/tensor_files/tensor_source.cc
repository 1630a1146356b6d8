#include "core/tensor_files/tensor_source.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/bundle_source.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/object_graph.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/snapshot_name.h"

namespace keelson {
namespace {

// The last part of a name; object-based checkpoints of TensorFlow 2 add a suffix of their own.
absl::string_view LastPart(absl::string_view name) {
  name = PathOfKey(name);
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

bool IsBookkeeping(absl::string_view name) {
  for (const absl::string_view known :
       {"global_step", "save_counter", "beta1_power", "beta2_power"}) {
    if (LastPart(name) == known) return true;
  }
  return absl::StrContains(name, "/.OPTIMIZER_SLOT/");
}

bool IsSafetensors(const std::string& path) { return absl::EndsWith(path, ".safetensors"); }

bool IsNpz(const std::string& path) { return absl::EndsWith(path, ".npz"); }

}  // namespace

std::string TypeAndShape(const TensorInfo& tensor) {
  return absl::StrCat(DtypeName(tensor.dtype), " ", tensor.shape.ToString());
}

std::vector<TensorInfo> VariablesByName(const std::vector<TensorInfo>& tensors) {
  std::map<absl::string_view, const Shape*> shapes;
  for (const TensorInfo& tensor : tensors) shapes[tensor.name] = &tensor.shape;
  std::vector<TensorInfo> variables;
  for (const TensorInfo& tensor : tensors) {
    const absl::string_view name = tensor.name;
    const size_t slash = name.rfind('/');
    const auto owner = shapes.find(name.substr(0, slash));
    const bool is_slot =
        slash != absl::string_view::npos && owner != shapes.end() && *owner->second == tensor.shape;
    if (DtypeSize(tensor.dtype) > 0 && !is_slot && !IsBookkeeping(name)) {
      variables.push_back(tensor);
    }
  }
  return variables;
}

absl::StatusOr<std::vector<std::string>> TensorSource::ReadStrings(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' has no strings"));
}

absl::Status TensorSource::ReadFloats(absl::string_view name, int64_t, absl::Span<float>) {
  return absl::UnimplementedError(
      absl::StrCat("tensor '", name, "': its elements are read all at once"));
}

absl::StatusOr<std::vector<TensorInfo>> TensorSource::Variables() {
  return VariablesByName(List());
}

absl::StatusOr<std::string> ResolveTensorSource(const std::string& path, ForeignPaths foreign) {
  if (IsSafetensors(path) || IsNpz(path)) return path;
  return ResolveSnapshot(path, foreign);
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource(const std::string& path,
                                                               ForeignPaths foreign) {
  if (IsSafetensors(path)) return SafetensorsFile::Open(path);
  if (IsNpz(path)) return NpzFile::Open(path);
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(path, foreign));
  return BundleSource::Open(prefix);
}

}  // namespace keelson
