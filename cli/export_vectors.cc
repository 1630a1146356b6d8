#include "cli/export_vectors.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/output_file.h"
#include "cli/snapshot_config.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/data/dataset.h"
#include "core/device/factory/device_factory.h"
#include "core/model/evaluation_pass.h"
#include "core/stored_model/stored_model.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/snapshot_name.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {
namespace {

constexpr char kIds[] = "ids";
constexpr char kVectors[] = "vectors";

template <typename T>
std::string ElementBytes(const std::vector<T>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

// Ids with a vector each, as tensors of a file.
class VectorTensors : public TensorSource {
 public:
  VectorTensors(size_t feature, bool queries, int64_t dim)
      : feature_(feature), queries_(queries), dim_(dim) {}

  size_t size() const { return ids_.size(); }

  // Takes the vectors of the ids that are new.
  void Add(const Batch& batch, const PairVectors& pairs) {
    const std::vector<uint64_t>& ids = batch.features[feature_].ids;
    const std::vector<float>& vectors = queries_ ? pairs.queries : pairs.items;
    for (size_t row = 0; row < ids.size(); ++row) {
      if (!known_.insert(ids[row]).second) continue;
      ids_.push_back(static_cast<int64_t>(ids[row]));
      const auto first = vectors.begin() + static_cast<int64_t>(row) * dim_;
      vectors_.insert(vectors_.end(), first, first + dim_);
    }
  }

  std::vector<TensorInfo> List() const override {
    const auto n = static_cast<int64_t>(ids_.size());
    return {{kIds, BundleDtype::kInt64, Shape({n})},
            {kVectors, BundleDtype::kFloat32, Shape({n, dim_})}};
  }

  absl::StatusOr<std::string> Read(absl::string_view name) override {
    return name == kIds ? ElementBytes(ids_) : ElementBytes(vectors_);
  }

 private:
  const size_t feature_;
  const bool queries_;
  const int64_t dim_;
  absl::flat_hash_set<uint64_t> known_;
  std::vector<int64_t> ids_;
  std::vector<float> vectors_;
};

absl::StatusOr<size_t> FeatureOf(const VectorOptions& options, const ModelSpec& model) {
  if (model.main_loss().kind != LossKind::kInBatchSoftmax) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a model with the loss IN_BATCH_SOFTMAX, found ",
                     LossKindName(model.main_loss().kind)));
  }
  std::vector<std::string> ids;
  for (size_t i = 0; i < model.records.features.size(); ++i) {
    const FeatureSpec& feature = model.records.features[i];
    if (feature.kind != FeatureKind::kId) continue;
    if (feature.name == options.feature) return i;
    ids.push_back(feature.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--feature: expected a feature of the kind id (",
                                                 absl::StrJoin(ids, ", "), "), found \"",
                                                 options.feature, "\""));
}

absl::Status AddAll(const Dataset& records, int64_t batch_size, StoredModel* model,
                    VectorTensors* tensors) {
  const int64_t end = records.num_records();
  std::vector<int64_t> numbers;
  Batch batch;
  PairVectors pairs;
  for (int64_t begin = 0; begin < end; begin += batch_size) {
    numbers.resize(std::min(batch_size, end - begin));
    std::iota(numbers.begin(), numbers.end(), begin);
    RETURN_IF_ERROR(records.Read(numbers, &batch));
    RETURN_IF_ERROR(model->PredictPairs(&batch, &pairs));
    tensors->Add(batch, pairs);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportVectors(const VectorOptions& options, std::ostream* out) {
  RETURN_IF_ERROR(CheckOutput(options.out, options.force));
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(options.snapshot, options.foreign));
  ASSIGN_OR_RETURN(const v1::TrainConfig config, ReadConfigOf(prefix, options.config_path));
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateDevice("cpu", DeviceOptions()));
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredModel> model,
                   StoredModel::Create(config, device.get()));
  ASSIGN_OR_RETURN(const size_t feature, FeatureOf(options, model->spec()));
  CommandRecords without_labels = options.records;
  without_labels.no_labels = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> records,
                   OpenRecords(without_labels, config, model->spec().records));
  RETURN_IF_ERROR(model->Load(prefix, FileSystem::Real()));
  const int64_t dim = model->spec().main_loss().dim;
  VectorTensors tensors(feature, options.queries, dim);
  RETURN_IF_ERROR(AddAll(*records, options.batch_size, model.get(), &tensors));
  if (absl::EndsWith(options.out, ".npz")) {
    RETURN_IF_ERROR(WriteNpz(options.out, tensors.List(), &tensors));
  } else {
    RETURN_IF_ERROR(
        WriteSafetensors(options.out, tensors.List(), {{"source", BaseName(prefix)}}, &tensors));
  }
  *out << "wrote " << options.out << ": " << tensors.size() << " vectors of " << dim << "\n";
  return absl::OkStatus();
}

}  // namespace keelson
