#include "core/tensor_files/tensor_source_testing.h"

#include "core/base/file.h"
#include "core/checkpoint/bundle_testing.h"
#include "gtest/gtest.h"

namespace keelson {

void MemoryTensors::Add(const std::string& name, BundleDtype dtype, Shape shape,
                        std::string bytes) {
  tensors_[name] = {{name, dtype, std::move(shape)}, std::move(bytes)};
}

void MemoryTensors::AddStrings(const std::string& name, std::vector<std::string> strings) {
  Add(name, BundleDtype::kString, Shape({static_cast<int64_t>(strings.size())}), "");
  strings_[name] = std::move(strings);
}

absl::StatusOr<std::vector<std::string>> MemoryTensors::ReadStrings(absl::string_view name) {
  return strings_[std::string(name)];
}

std::vector<TensorInfo> MemoryTensors::List() const {
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : tensors_) infos.push_back(tensor.first);
  return infos;
}

absl::StatusOr<std::string> MemoryTensors::Read(absl::string_view name) {
  const std::string key(name);
  if (broken_.count(key) > 0) return broken_[key];
  if (tensors_.count(key) == 0) return absl::NotFoundError(key);
  return tensors_[key].second;
}

MemoryTensors OneOfEachType() {
  MemoryTensors tensors;
  const std::vector<BundleDtype> dtypes = {
      BundleDtype::kFloat32, BundleDtype::kFloat64,  BundleDtype::kFloat16, BundleDtype::kBfloat16,
      BundleDtype::kInt8,    BundleDtype::kInt16,    BundleDtype::kInt32,   BundleDtype::kInt64,
      BundleDtype::kUint8,   BundleDtype::kUint16,   BundleDtype::kUint32,  BundleDtype::kUint64,
      BundleDtype::kBool,    BundleDtype::kComplex64};
  for (const BundleDtype dtype : dtypes) {
    std::string bytes(6 * DtypeSize(dtype), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 100 + 1);
    tensors.Add("of/" + DtypeName(dtype), dtype, Shape({2, 3}), bytes);
  }
  tensors.AddValues<float>("scalar", BundleDtype::kFloat32, Shape(), {0.5f});
  tensors.AddValues<float>("empty", BundleDtype::kFloat32, Shape({0, 3}), {});
  return tensors;
}

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  return names;
}

void ReplaceRawFile(const std::string& path, const std::string& content) {
  EXPECT_TRUE(RemoveFile(path).ok());
  WriteRawFile(path, content);
}

}  // namespace keelson
