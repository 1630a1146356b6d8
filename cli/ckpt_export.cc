#include "cli/ckpt_export.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/element.h"
#include "cli/npz.h"
#include "cli/safetensors.h"
#include "cli/tensor_source.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr char kSafetensors[] = "safetensors";
constexpr char kNpz[] = "npz";

absl::Status CheckOptions(const ExportOptions& options) {
  if (options.format != kSafetensors && options.format != kNpz) {
    return absl::InvalidArgumentError(absl::StrCat("--format: expected ", kSafetensors, " or ",
                                                   kNpz, ", found \"", options.format, "\""));
  }
  if (!options.force && FileExists(options.out)) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.out, ": exists already; --force replaces it"));
  }
  return absl::OkStatus();
}

// For people who wonder where a file came from.
absl::StatusOr<std::map<std::string, std::string>> Metadata(const ExportOptions& options,
                                                            TensorSource* source) {
  std::map<std::string, std::string> metadata = {{"source", BaseName(options.source)}};
  for (const TensorInfo& tensor : source->List()) {
    if (tensor.name != "global_step" || tensor.shape.num_elements() != 1) continue;
    ASSIGN_OR_RETURN(const std::string bytes, source->Read(tensor.name));
    metadata["global_step"] = ElementText(tensor.dtype, bytes.data());
  }
  return metadata;
}

int64_t BytesOf(const std::vector<TensorInfo>& tensors) {
  int64_t bytes = 0;
  for (const TensorInfo& tensor : tensors) {
    bytes += tensor.shape.num_elements() * DtypeSize(tensor.dtype);
  }
  return bytes;
}

}  // namespace

absl::Status ExportTensors(const ExportOptions& options, std::ostream* out) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> source,
                   OpenTensorSource(options.source, options.foreign));
  const std::vector<TensorInfo> all = source->List();
  std::vector<TensorInfo> tensors = all;
  if (!options.slots) {
    ASSIGN_OR_RETURN(tensors, source->Variables());
  }
  if (tensors.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.source, ": has no tensors to export"));
  }
  if (options.format == kSafetensors) {
    ASSIGN_OR_RETURN(const auto metadata, Metadata(options, source.get()));
    RETURN_IF_ERROR(WriteSafetensors(options.out, tensors, metadata, source.get()));
  } else {
    RETURN_IF_ERROR(WriteNpz(options.out, tensors, source.get()));
  }
  *out << "wrote " << options.out << ": " << tensors.size() << " of " << all.size() << " tensors, "
       << BytesOf(tensors) << " bytes in " << options.source << "\n";
  const auto narrow = std::count_if(tensors.begin(), tensors.end(), [](const TensorInfo& tensor) {
    return tensor.dtype == BundleDtype::kBfloat16;
  });
  if (options.format == kNpz && narrow > 0) {
    *out << "note: numpy has no bfloat16: " << narrow << " tensors are written as float32\n";
  }
  return absl::OkStatus();
}

}  // namespace keelson
