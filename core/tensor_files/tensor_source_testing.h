// Tensors in memory, for tests of code that reads and writes files of tensors.
#ifndef KEELSON_CORE_TENSOR_FILES_TENSOR_SOURCE_TESTING_H_
#define KEELSON_CORE_TENSOR_FILES_TENSOR_SOURCE_TESTING_H_

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

class MemoryTensors : public TensorSource {
 public:
  void Add(const std::string& name, BundleDtype dtype, Shape shape, std::string bytes);
  template <typename T>
  void AddValues(const std::string& name, BundleDtype dtype, Shape shape,
                 const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    Add(name, dtype, std::move(shape), std::move(bytes));
  }
  void AddStrings(const std::string& name, std::vector<std::string> strings);
  // Reading it fails with this status.
  void Break(const std::string& name, absl::Status status) { broken_[name] = std::move(status); }

  std::vector<TensorInfo> List() const override;
  absl::StatusOr<std::string> Read(absl::string_view name) override;
  absl::StatusOr<std::vector<std::string>> ReadStrings(absl::string_view name) override;

 private:
  std::map<std::string, std::pair<TensorInfo, std::string>> tensors_;
  std::map<std::string, std::vector<std::string>> strings_;
  std::map<std::string, absl::Status> broken_;
};

// A tensor of each type of a fixed size but complex128, one without elements, and a scalar.
MemoryTensors OneOfEachType();

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& tensors);

// Replaces the file by a new one. Some file systems flush a file that is truncated and rewritten,
// which takes milliseconds.
void ReplaceRawFile(const std::string& path, const std::string& content);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_TENSOR_SOURCE_TESTING_H_
