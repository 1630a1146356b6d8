// model_values MODEL IN.npz OUT.npz: one forward and backward pass of a model on the CPU device,
// for tests/interop to compare with other implementations. MODEL is a ModelConfig in text form.
//
// IN: "variables/NAME" of every variable; "features/NAME" of every feature, its numbers or ids,
// and of a bag "features/NAME/offsets" and, where it has weights, "features/NAME/weights" (see
// FeatureValues); "labels/NAME". Ids and offsets are int64, all else float32.
// OUT: "loss", in training; "scores" of the main loss, as Model::Predict has them;
// "gradients/NAME" of every variable, of one that is not trained the batch's sample.
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/model.h"
#include "core/model/spec/batch.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {
namespace {

template <typename T>
absl::StatusOr<std::vector<T>> ReadArray(const std::string& name, BundleDtype dtype,
                                         NpzFile* file) {
  for (const TensorInfo& tensor : file->List()) {
    if (tensor.name != name) continue;
    if (tensor.dtype != dtype) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": found ", TypeAndShape(tensor)));
    }
    ASSIGN_OR_RETURN(const std::string bytes, file->Read(name));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  return absl::NotFoundError(absl::StrCat("no array ", name));
}

absl::StatusOr<std::vector<int64_t>> ReadIntegers(const std::string& name, NpzFile* file) {
  return ReadArray<int64_t>(name, BundleDtype::kInt64, file);
}

absl::StatusOr<std::vector<float>> ReadFloats(const std::string& name, NpzFile* file) {
  return ReadArray<float>(name, BundleDtype::kFloat32, file);
}

// The array's records, each of this shape.
absl::StatusOr<Tensor> ReadRecords(const std::string& name, const Shape& shape, NpzFile* file) {
  ASSIGN_OR_RETURN(const std::vector<float> values, ReadFloats(name, file));
  Tensor tensor;
  Resize(static_cast<int64_t>(values.size()) / shape.num_elements(), shape, &tensor);
  if (static_cast<size_t>(tensor.size()) != values.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected records of ", shape.ToString(),
                                                   ", found ", values.size(), " numbers"));
  }
  std::memcpy(tensor.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

absl::StatusOr<FeatureValues> ReadFeature(const FeatureSpec& feature, NpzFile* file) {
  const std::string name = absl::StrCat("features/", feature.name);
  FeatureValues values;
  if (feature.kind == FeatureKind::kNumbers) {
    ASSIGN_OR_RETURN(values.numbers, ReadRecords(name, feature.shape, file));
    return values;
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids, ReadIntegers(name, file));
  values.ids.assign(ids.begin(), ids.end());
  if (feature.kind == FeatureKind::kBag) {
    ASSIGN_OR_RETURN(values.offsets, ReadIntegers(absl::StrCat(name, "/offsets"), file));
  }
  if (feature.weighted) {
    ASSIGN_OR_RETURN(values.weights, ReadFloats(absl::StrCat(name, "/weights"), file));
  }
  return values;
}

absl::StatusOr<Batch> ReadBatch(const RecordSchema& records, NpzFile* file) {
  Batch batch;
  for (const FeatureSpec& feature : records.features) {
    ASSIGN_OR_RETURN(FeatureValues values, ReadFeature(feature, file));
    batch.features.push_back(std::move(values));
  }
  for (const LabelSpec& label : records.labels) {
    ASSIGN_OR_RETURN(Tensor values,
                     ReadRecords(absl::StrCat("labels/", label.name), Shape(), file));
    batch.labels.push_back(std::move(values));
  }
  return batch;
}

absl::Status LoadVariables(NpzFile* file, Model* model) {
  for (size_t i = 0; i < model->variables().size(); ++i) {
    const VariableSpec& variable = model->variables()[i];
    const std::string name = absl::StrCat("variables/", variable.name);
    ASSIGN_OR_RETURN(const std::vector<float> values, ReadFloats(name, file));
    if (values.size() != static_cast<size_t>(variable.shape.num_elements())) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": expected ", variable.shape.ToString(),
                                                     ", found ", values.size(), " numbers"));
    }
    RETURN_IF_ERROR(model->SetVariable(i, values));
  }
  return absl::OkStatus();
}

absl::Status AddGradients(const Batch& batch, Model* model, MemoryTensors* out) {
  std::vector<std::vector<float>> gradients;
  for (const VariableSpec& variable : model->variables()) {
    gradients.emplace_back(static_cast<size_t>(variable.shape.num_elements()));
  }
  const std::vector<absl::Span<float>> arrays(gradients.begin(), gradients.end());
  ASSIGN_OR_RETURN(const StepResult step, model->ComputeGradients(batch, {.dropout_seed = 1},
                                                                  {.arrays = arrays}, nullptr));
  if (!step.has_gradients) {
    return absl::InvalidArgumentError(absl::StrCat("the loss is ", step.loss));
  }
  out->AddValues<double>("loss", BundleDtype::kFloat64, Shape(), {step.loss});
  for (size_t i = 0; i < gradients.size(); ++i) {
    const VariableSpec& variable = model->variables()[i];
    out->AddValues(absl::StrCat("gradients/", variable.name), BundleDtype::kFloat32, variable.shape,
                   gradients[i]);
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& model_path, const std::string& in_path,
                 const std::string& out_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(model_path));
  v1::ModelConfig config;
  if (!google::protobuf::TextFormat::ParseFromString(text, &config)) {
    return absl::InvalidArgumentError(absl::StrCat(model_path, ": malformed"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateCpuDevice(/*threads=*/1));
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Create(config, device.get()));
  ASSIGN_OR_RETURN(const std::unique_ptr<NpzFile> in, NpzFile::Open(in_path));
  RETURN_IF_ERROR(LoadVariables(in.get(), model.get()));
  ASSIGN_OR_RETURN(const Batch batch, ReadBatch(model->spec().records, in.get()));

  MemoryTensors out;
  RETURN_IF_ERROR(AddGradients(batch, model.get(), &out));
  std::vector<float> scores;
  RETURN_IF_ERROR(model->Predict(batch, &scores));
  out.AddValues("scores", BundleDtype::kFloat32, {batch.size(), model->spec().main_loss().outputs},
                scores);
  return WriteNpz(out_path, out.List(), &out);
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: model_values MODEL IN.npz OUT.npz\n";
    return keelson::kExitPermanent;
  }
  const absl::Status status = keelson::Run(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::cerr << status << "\n";
  return keelson::ExitCodeFor(status);
}
