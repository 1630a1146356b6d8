#include "tests/support/model_difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/checkpoint/bundle_reader.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

std::map<std::string, Tensor> FinalModel(const v1::TrainConfig& config) {
  std::map<std::string, Tensor> tensors;
  const auto bundle = BundleReader::Open(
      absl::StrCat(config.checkpoint().model_dir(), "/model.ckpt-", config.train().max_steps()));
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  if (!bundle.ok()) return tensors;
  for (const TensorInfo& info : (*bundle)->List()) {
    if (info.dtype != BundleDtype::kFloat32) continue;
    auto tensor = (*bundle)->ReadTensor(info.name);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    if (tensor.ok()) tensors.emplace(info.name, *std::move(tensor));
  }
  return tensors;
}

ModelDifference DifferenceOf(const Tensor& found, const Tensor& expected) {
  ModelDifference difference;
  double magnitude = 0;
  for (int64_t i = 0; i < expected.shape().num_elements(); ++i) {
    const double element = expected.data()[i];
    magnitude = std::max(magnitude, std::abs(element));
    difference.absolute = std::max(difference.absolute, std::abs(found.data()[i] - element));
  }
  if (difference.absolute > 0) difference.relative = difference.absolute / magnitude;
  return difference;
}

}  // namespace

ModelDifference DifferenceOf(const v1::TrainConfig& found, const v1::TrainConfig& expected) {
  const auto tensors = FinalModel(found);
  const auto wanted = FinalModel(expected);
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(tensors.size(), wanted.size());
  ModelDifference largest;
  for (const auto& [name, tensor] : wanted) {
    const auto other = tensors.find(name);
    EXPECT_NE(other, tensors.end()) << name;
    if (other == tensors.end()) continue;
    EXPECT_EQ(other->second.shape(), tensor.shape()) << name;
    if (other->second.shape() != tensor.shape()) continue;
    const ModelDifference difference = DifferenceOf(other->second, tensor);
    largest.absolute = std::max(largest.absolute, difference.absolute);
    largest.relative = std::max(largest.relative, difference.relative);
  }
  return largest;
}

}  // namespace keelson
