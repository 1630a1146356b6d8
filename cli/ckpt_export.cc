#include "cli/ckpt_export.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/element.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/tensor_names.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {
namespace {

constexpr char kSafetensors[] = "safetensors";
constexpr char kNpz[] = "npz";

absl::Status CheckOptions(const ExportOptions& options) {
  if (options.format != kSafetensors && options.format != kNpz) {
    return absl::InvalidArgumentError(absl::StrCat("--format: expected ", kSafetensors, " or ",
                                                   kNpz, ", found \"", options.format, "\""));
  }
  ASSIGN_OR_RETURN(const bool exists, FileSystem::Real()->Exists(options.out));
  if (!options.force && exists) {
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

BundleDtype WrittenDtype(const std::string& format, BundleDtype dtype) {
  return format == kNpz ? NpzDtype(dtype) : SafetensorsDtype(dtype);
}

// No format holds strings, and a safetensors file no complex128.
bool CanHold(const std::string& format, const TensorInfo& tensor) {
  const bool complex128 = tensor.dtype == BundleDtype::kComplex128;
  return DtypeSize(tensor.dtype) > 0 && !(complex128 && format == kSafetensors);
}

// Removes from `tensors` those that the format cannot hold, and returns them as text.
std::vector<std::string> TakeUnwritable(const std::string& format,
                                        std::vector<TensorInfo>* tensors) {
  const auto first =
      std::stable_partition(tensors->begin(), tensors->end(),
                            [&](const TensorInfo& tensor) { return CanHold(format, tensor); });
  std::vector<std::string> unwritable;
  for (auto it = first; it != tensors->end(); ++it) {
    unwritable.push_back(absl::StrCat(it->name, " of type ", DtypeName(it->dtype)));
  }
  tensors->erase(first, tensors->end());
  return unwritable;
}

// "note: numpy has no bfloat16: 2 tensors are written as float32".
void SayStandIns(const std::string& format, const std::vector<TensorInfo>& tensors,
                 std::ostream* out) {
  std::map<BundleDtype, int64_t> counts;
  for (const TensorInfo& tensor : tensors) {
    if (WrittenDtype(format, tensor.dtype) != tensor.dtype) ++counts[tensor.dtype];
  }
  for (const auto& [dtype, count] : counts) {
    *out << "note: " << (format == kNpz ? "numpy" : format) << " has no " << DtypeName(dtype)
         << ": " << count << " tensors are written as " << DtypeName(WrittenDtype(format, dtype))
         << "\n";
  }
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
  std::vector<TensorInfo> all = source->List();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const TensorInfo& tensor) { return IsRecord(tensor.name); }),
            all.end());
  std::vector<TensorInfo> tensors = all;
  if (!options.slots) {
    ASSIGN_OR_RETURN(tensors, source->Variables());
  }
  const std::vector<std::string> unwritable = TakeUnwritable(options.format, &tensors);
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
  SayStandIns(options.format, tensors, out);
  if (!unwritable.empty()) {
    *out << "left out, " << options.format
         << " cannot hold them: " << absl::StrJoin(unwritable, ", ") << "\n";
  }
  return absl::OkStatus();
}

}  // namespace keelson
