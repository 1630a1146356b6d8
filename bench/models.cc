#include "bench/models.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace keelson::bench {
namespace {

constexpr int64_t kFlatShardBytes = 64 << 20;
constexpr int64_t kFlatShardMessages = 4096;
// More than caches hold; a larger walk changes nothing.
constexpr int64_t kMostWalkedBytes = 256 << 20;

constexpr int64_t kFloatBytes = sizeof(float);

class VariableList {
 public:
  VariableList& Layer(const std::string& name, Shape kernel, int64_t units) {
    variables_.push_back({absl::StrCat(name, "/kernel"), std::move(kernel), {}});
    variables_.push_back({absl::StrCat(name, "/bias"), Shape({units}), {}});
    return *this;
  }
  VariableList& Dense(const std::string& name, int64_t inputs, int64_t units) {
    return Layer(name, Shape({inputs, units}), units);
  }
  std::vector<VariableSpec> Take() { return std::move(variables_); }

 private:
  std::vector<VariableSpec> variables_;
};

std::vector<VariableSpec> DenseTower(int layers) {
  VariableList list;
  for (int i = 0; i < layers; ++i) list.Dense(absl::StrCat("dense_", i), 2048, 2048);
  return list.Take();
}

}  // namespace

std::vector<VariableSpec> ModelVariables(const std::string& model) {
  if (model == "180KB") {
    return VariableList()
        .Layer("conv_1", Shape({5, 5, 1, 6}), 6)
        .Layer("conv_2", Shape({5, 5, 6, 16}), 16)
        .Dense("hidden_1", 256, 120)
        .Dense("hidden_2", 120, 84)
        .Dense("scores", 84, 10)
        .Take();
  }
  if (model == "2.7MB") {
    return VariableList()
        .Dense("hidden_1", 784, 512)
        .Dense("hidden_2", 512, 512)
        .Dense("scores", 512, 10)
        .Take();
  }
  return DenseTower(model == "100MB" ? 6 : 60);
}

int64_t ModelBytes(const std::string& model) {
  int64_t bytes = 0;
  for (const VariableSpec& variable : ModelVariables(model)) bytes += variable.bytes();
  return bytes;
}

std::vector<VariableSpec> FlatVariables(int64_t message_bytes, int shards) {
  const int64_t messages = std::min(kFlatShardBytes / message_bytes, kFlatShardMessages) * shards;
  return {{"flat", Shape({messages, message_bytes / kFloatBytes}), {}}};
}

Placement PlaceModel(const std::string& model, int64_t message_bytes, int shards) {
  if (model != "flat") return Placement::Compute(ModelVariables(model), shards);
  return Placement::Compute(
      FlatVariables(message_bytes, shards), shards,
      std::min(message_bytes / kFloatBytes, Placement::kDefaultBlockElements));
}

int64_t WalkedBytes(const std::string& model, int64_t message_bytes) {
  if (model == "flat") return FlatVariables(message_bytes, 1)[0].bytes();
  return std::min(ModelBytes(model), kMostWalkedBytes);
}

}  // namespace keelson::bench
