#include "cli/ckpt_export.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/element.h"
#include "cli/exported_tables.h"
#include "cli/output_file.h"
#include "cli/table_text.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/stored_tables.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/tensor_names.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {
namespace {

constexpr char kSafetensors[] = "safetensors";
constexpr char kNpz[] = "npz";
constexpr char kText[] = "text";

absl::Status CheckOptions(const ExportOptions& options) {
  if (options.format != kSafetensors && options.format != kNpz && options.format != kText) {
    return absl::InvalidArgumentError(absl::StrCat("--format: expected ", kSafetensors, ", ", kNpz,
                                                   " or ", kText, ", found \"", options.format,
                                                   "\""));
  }
  if (!options.table.empty() && options.format != kText) {
    return absl::InvalidArgumentError("--table: expected with --format=text alone");
  }
  return CheckOutput(options.out, options.force);
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

// The one that the options mean.
absl::StatusOr<const StoredTable*> ChooseTable(const ExportOptions& options,
                                               const StoredTables* stored) {
  std::vector<std::string> names;
  if (stored != nullptr) {
    for (const StoredTable& table : stored->tables()) names.push_back(table.spec.name);
  }
  const bool one = options.table.empty() && names.size() == 1;
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.source, ": has no embedding tables"));
  }
  const StoredTable* const table = stored->Find(one ? names[0] : options.table);
  if (table != nullptr) return table;
  return absl::InvalidArgumentError(absl::StrCat(
      "--table: expected one of ", absl::StrJoin(names, ", "), ", found \"", options.table, "\""));
}

absl::Status ExportText(const ExportOptions& options, TensorSource* source, std::ostream* out) {
  ASSIGN_OR_RETURN(const StoredTables* const stored, source->Tables());
  ASSIGN_OR_RETURN(const StoredTable* const table, ChooseTable(options, stored));
  RETURN_IF_ERROR(WriteTableText(options.out, *stored, *table));
  *out << "wrote " << options.out << ": the rows of table " << table->spec.name << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportTensors(const ExportOptions& options, std::ostream* out) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> source,
                   OpenTensorSource(options.source, options.foreign));
  if (options.format == kText) return ExportText(options, source.get(), out);
  ASSIGN_OR_RETURN(source, ExportedTables::Create(std::move(source), options.slots));
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
