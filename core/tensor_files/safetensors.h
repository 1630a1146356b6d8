// Safetensors, the tensor format of Hugging Face: the length of the header (8 bytes), the header as
// JSON, then the tensors' bytes without gaps.
// Format: github.com/huggingface/safetensors, README "Format" and safetensors/src/tensor.rs.
#ifndef KEELSON_CORE_TENSOR_FILES_SAFETENSORS_H_
#define KEELSON_CORE_TENSOR_FILES_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

class SafetensorsFile : public TensorSource {
 public:
  // Reads and checks the header. DATA_LOSS, with the file and the tensor: truncated, a header that
  // is not such JSON or larger than 100 MB, a tensor listed twice, bytes that do not fit the shape,
  // overlap, leave a gap or are not all described. UNIMPLEMENTED: a type of elements that
  // BundleDtype has not (floats of 4 bits). Otherwise as core/base/file_system.h.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);

  std::vector<TensorInfo> List() const override;
  absl::StatusOr<std::string> Read(absl::string_view name) override;
  bool reads_parts() const override { return true; }
  absl::Status ReadFloats(absl::string_view name, int64_t first, absl::Span<float> out) override;

  struct Entry {
    BundleDtype dtype;
    Shape shape;
    uint64_t begin;  // in the file
    uint64_t size;
  };

 private:
  SafetensorsFile(std::unique_ptr<RandomAccessFile> file,
                  std::map<std::string, Entry, std::less<>> entries)
      : file_(std::move(file)), entries_(std::move(entries)) {}

  absl::StatusOr<const Entry*> Find(absl::string_view name) const;

  const std::unique_ptr<RandomAccessFile> file_;
  const std::map<std::string, Entry, std::less<>> entries_;
};

// The type that a tensor of this type has in such a file: StandInType where the format has not the
// type itself.
BundleDtype SafetensorsDtype(BundleDtype dtype);

// Writes `tensors` of `source` to `path`, one at a time, and `metadata` for readers to show. The
// file appears complete or not at all. As safetensors does, the widest elements come first, so that
// all are aligned. UNIMPLEMENTED: a type of elements that the format has not (complex128, strings).
// INVALID_ARGUMENT: a name that is not UTF-8, or that the format keeps for itself. Otherwise as
// TensorSource::Read and core/base/file_system.h.
absl::Status WriteSafetensors(const std::string& path, std::vector<TensorInfo> tensors,
                              const std::map<std::string, std::string>& metadata,
                              TensorSource* source);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_SAFETENSORS_H_
