// Reads files of named tensors in several formats: lists the tensors, and reads one at a time.
#ifndef KEELSON_CORE_TENSOR_FILES_TENSOR_SOURCE_H_
#define KEELSON_CORE_TENSOR_FILES_TENSOR_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/checkpoint/stored_tables.h"

namespace keelson {

// Not thread-safe, but for ReadFloats.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // All tensors, sorted by name.
  virtual std::vector<TensorInfo> List() const = 0;

  // The elements of one of them, row-major and little-endian: DtypeSize bytes each, or as they lie
  // in the file where that is 0.
  // NOT_FOUND: no such tensor. DATA_LOSS: the file is damaged. INVALID_ARGUMENT: strings.
  // UNIMPLEMENTED: a type that cannot be read. Otherwise as core/base/file_system.h.
  virtual absl::StatusOr<std::string> Read(absl::string_view name) = 0;
  // Likewise the elements of a tensor of strings. INVALID_ARGUMENT: it has another type.
  virtual absl::StatusOr<std::vector<std::string>> ReadStrings(absl::string_view name);

  // Whether elements can be read without all others of their tensor, by ReadFloats.
  virtual bool reads_parts() const { return false; }
  // Reads elements [first, first + out.size()) of a numeric tensor (IsNumeric), row-major, as
  // float32 (ConvertToFloat). Thread-safe. INVALID_ARGUMENT: the tensor has no such elements, or is
  // not numeric. UNIMPLEMENTED: reads_parts() is false. Otherwise as Read.
  virtual absl::Status ReadFloats(absl::string_view name, int64_t first, absl::Span<float> out);

  // The embedding tables of a snapshot, whose columns are among List (TableTensorNames); null:
  // there are none. The source's. Errors of StoredTables::Open.
  virtual absl::StatusOr<const StoredTables*> Tables() { return nullptr; }

  // Those of List that are variables of a model, as far as names tell: see VariablesByName.
  virtual absl::StatusOr<std::vector<TensorInfo>> Variables();
};

// The tensors of types of a fixed size without those that optimizers and training loops keep beside
// a model in TensorFlow's and Keelson's checkpoints: "global_step", "save_counter", "beta1_power"
// and the like, and slots, which are named "<variable>/<Slot>" and have the variable's shape.
std::vector<TensorInfo> VariablesByName(const std::vector<TensorInfo>& tensors);

// "float32 [3, 2]".
std::string TypeAndShape(const TensorInfo& tensor);

// The path that OpenTensorSource opens: of a directory that of its newest snapshot. Errors of
// ResolveSnapshot.
absl::StatusOr<std::string> ResolveTensorSource(const std::string& path,
                                                ForeignPaths foreign = ForeignPaths::kRefused);

// `path`: a snapshot or TensorFlow bundle (ResolveSnapshot, with `foreign`), FILE.safetensors or
// FILE.npz. INVALID_ARGUMENT: none of these. Otherwise the errors of ResolveSnapshot,
// BundleReader::Open, SafetensorsFile::Open or NpzFile::Open.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource(
    const std::string& path, ForeignPaths foreign = ForeignPaths::kRefused);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_TENSOR_SOURCE_H_
