// Tensors in memory, for tests of code that reads and writes files of tensors.
#ifndef KEELSON_CLI_TENSOR_SOURCE_TESTING_H_
#define KEELSON_CLI_TENSOR_SOURCE_TESTING_H_

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/tensor_source.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_test_util.h"
#include "gtest/gtest.h"

namespace keelson {

class MemoryTensors : public TensorSource {
 public:
  void Add(const std::string& name, BundleDtype dtype, Shape shape, std::string bytes) {
    tensors_[name] = {{name, dtype, std::move(shape)}, std::move(bytes)};
  }
  template <typename T>
  void AddValues(const std::string& name, BundleDtype dtype, Shape shape,
                 const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    Add(name, dtype, std::move(shape), std::move(bytes));
  }
  // Reading it fails with this status.
  void Break(const std::string& name, absl::Status status) { broken_[name] = std::move(status); }

  std::vector<TensorInfo> List() const override {
    std::vector<TensorInfo> infos;
    for (const auto& [name, tensor] : tensors_) infos.push_back(tensor.first);
    return infos;
  }
  absl::StatusOr<std::string> Read(absl::string_view name) override {
    const std::string key(name);
    if (broken_.count(key) > 0) return broken_[key];
    if (tensors_.count(key) == 0) return absl::NotFoundError(key);
    return tensors_[key].second;
  }

 private:
  std::map<std::string, std::pair<TensorInfo, std::string>> tensors_;
  std::map<std::string, absl::Status> broken_;
};

// A tensor of each type of a fixed size but complex128, one without elements, and a scalar.
inline MemoryTensors OneOfEachType() {
  MemoryTensors tensors;
  const std::vector<BundleDtype> dtypes = {
      BundleDtype::kFloat32, BundleDtype::kFloat64,  BundleDtype::kFloat16, BundleDtype::kBfloat16,
      BundleDtype::kInt8,    BundleDtype::kInt16,    BundleDtype::kInt32,   BundleDtype::kInt64,
      BundleDtype::kUint8,   BundleDtype::kUint16,   BundleDtype::kUint32,  BundleDtype::kUint64,
      BundleDtype::kBool,    BundleDtype::kComplex64};
  for (const BundleDtype dtype : dtypes) {
    std::string bytes(static_cast<size_t>(6 * DtypeSize(dtype)), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 100 + 1);
    tensors.Add("of/" + DtypeName(dtype), dtype, Shape({2, 3}), bytes);
  }
  tensors.AddValues<float>("scalar", BundleDtype::kFloat32, Shape(), {0.5f});
  tensors.AddValues<float>("empty", BundleDtype::kFloat32, Shape({0, 3}), {});
  return tensors;
}

// Replaces the file by a new one. Some file systems flush a file that is truncated and rewritten,
// which takes milliseconds.
inline void ReplaceRawFile(const std::string& path, const std::string& content) {
  EXPECT_TRUE(RemoveFile(path).ok());
  WriteRawFile(path, content);
}

}  // namespace keelson

#endif  // KEELSON_CLI_TENSOR_SOURCE_TESTING_H_
