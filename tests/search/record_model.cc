#include "tests/search/record_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "core/tensor/tensor.h"

namespace keelson {
namespace {

class HostFloats : public DeviceMemory {
 public:
  explicit HostFloats(std::vector<float> floats)
      : DeviceMemory(floats.data(), static_cast<int64_t>(floats.size())),
        floats_(std::move(floats)) {}

 private:
  const std::vector<float> floats_;
};

class HostBytes : public HostMemory {
 public:
  explicit HostBytes(std::vector<uint8_t> bytes)
      : HostMemory(absl::MakeSpan(bytes)), bytes_(std::move(bytes)) {}

 private:
  const std::vector<uint8_t> bytes_;
};

class NoEvent : public DeviceEvent {};
class Plain : public GradientEncoder {};

// What the model does not use ends the program.
class RecordDevice : public Device {
 public:
  explicit RecordDevice(RecordWork work) : work_(std::move(work)) {}

  std::string name() const override { return "records"; }
  bool asynchronous() const override { return false; }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override {
    return std::make_unique<HostFloats>(std::vector<float>(static_cast<size_t>(floats)));
  }
  absl::StatusOr<std::unique_ptr<HostMemory>> AllocateHost(size_t bytes) override {
    return std::make_unique<HostBytes>(std::vector<uint8_t>(bytes));
  }
  absl::Span<float> HostSpan(DeviceMemory* memory) override {
    return absl::MakeSpan(memory->data(), static_cast<size_t>(memory->size()));
  }
  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override {
    if (from.data() != to->data()) std::copy(from.begin(), from.end(), to->data());
  }
  void CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) override {
    std::memcpy(to->data(), from.data(), from.size() * sizeof(int32_t));
  }
  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override {
    if (from.data() != to.data()) std::copy_n(from.data(), to.size(), to.data());
    return absl::OkStatus();
  }
  void Fill(float value, int64_t n, DeviceMemory* x) override { std::fill_n(x->data(), n, value); }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::Status status() const override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent() override {
    return std::make_unique<NoEvent>();
  }
  void Record(DeviceEvent*) override {}
  void WaitFor(const DeviceEvent&) override {}
  bool Passed(const DeviceEvent&) override { return true; }
  absl::Status Await(const DeviceEvent&) override { return absl::OkStatus(); }
  double MillisecondsBetween(const DeviceEvent&, const DeviceEvent&) override { return 0; }

  absl::StatusOr<std::unique_ptr<GradientEncoder>> NewGradientEncoder(const WireLayout&) override {
    return std::make_unique<Plain>();
  }
  absl::StatusOr<std::unique_ptr<ValueDecoder>> NewValueDecoder(WireFormat, int64_t) override {
    std::abort();
  }
  void Download(const DeviceMemory& gradient, const DeviceMemory*, GradientEncoder*,
                absl::Span<uint8_t> to, DeviceEvent*) override {
    std::memcpy(to.data(), gradient.data(), to.size());
  }
  void Upload(absl::Span<const uint8_t>, const DeviceEvent*, ValueDecoder*, DeviceMemory*,
              DeviceEvent*) override {
    std::abort();
  }
  void Repeat(uint64_t, absl::FunctionRef<void()> operations) override { operations(); }

  void MatMul(const MatMulArgs&, const DeviceMemory& a, const DeviceMemory&, const Epilogue&,
              DeviceMemory* c) override {
    c->data()[0] = a.data()[0];
  }
  void DenseGradients(int64_t, int64_t, int64_t, const DeviceMemory& x, const DeviceMemory&,
                      DeviceMemory* kernel_gradient, DeviceMemory* bias_gradient) override {
    for (DeviceMemory* const gradient : {kernel_gradient, bias_gradient}) {
      if (gradient == nullptr) continue;
      std::fill_n(gradient->data(), gradient->size(), 0.0f);
      gradient->data()[std::lround(x.data()[0])] = -1;
    }
  }
  void BiasGradient(int64_t, int64_t, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  // The bag of the step's record, or the gradient of its rows, which are several.
  void MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x, float,
                      DeviceMemory* y) override {
    const int32_t stored = IntegerAt(*a.stored, 0);
    if (stored > 1) {
      for (int32_t k = 0; k < stored; ++k) {
        std::fill_n(y->data() + IntegerAt(*a.rows, k) * width, width, -1.0f);
      }
      return;
    }
    std::vector<float> rows;
    const int32_t entries = IntegerAt(*a.offsets, 1);
    for (int32_t i = 0; i < entries; ++i) {
      const float* const row = x.data() + IntegerAt(*a.columns, i) * width;
      rows.insert(rows.end(), row, row + width);
    }
    y->data()[0] = a.coefficients->data()[entries - 1];
    TakeRows(rows, y);
  }
  void Axpy(float, int64_t, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  void Scale(float, int64_t, DeviceMemory*) override { std::abort(); }
  void Sum(int64_t, const DeviceMemory& x, DeviceMemory* sum) override {
    sum->data()[0] = x.data()[0];
  }
  void ClipByGlobalNorm(float, absl::Span<DeviceMemory* const>) override { std::abort(); }
  void AddFromPeer(Device*, int64_t, const DeviceMemory&, DeviceMemory*) override { std::abort(); }

  void Conv2D(const ConvGeometry&, const DeviceMemory&, const DeviceMemory&, const Epilogue&,
              DeviceMemory*) override {
    std::abort();
  }
  void Conv2DBackwardData(const ConvGeometry&, const DeviceMemory&, const DeviceMemory&,
                          DeviceMemory*) override {
    std::abort();
  }
  void Conv2DBackwardFilter(const ConvGeometry&, const DeviceMemory&, const DeviceMemory&,
                            DeviceMemory*) override {
    std::abort();
  }
  void MaxPool(const PoolGeometry&, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  void MaxPoolBackward(const PoolGeometry&, const DeviceMemory&, const DeviceMemory&,
                       const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void AvgPool(const PoolGeometry&, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  void AvgPoolBackward(const PoolGeometry&, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void GlobalAveragePool(int64_t, int64_t, int64_t, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void GlobalAveragePoolBackward(int64_t, int64_t, int64_t, const DeviceMemory&,
                                 DeviceMemory*) override {
    std::abort();
  }
  void Add(int64_t, const DeviceMemory&, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void Multiply(int64_t, const DeviceMemory&, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void Activate(ActivationKind, int64_t, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void ActivateBackward(ActivationKind, int64_t, const DeviceMemory&, const DeviceMemory&,
                        DeviceMemory*) override {
    std::abort();
  }
  void Gate(GateKind, int64_t, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  void GateBackward(GateKind, int64_t, const DeviceMemory&, const DeviceMemory&,
                    DeviceMemory*) override {
    std::abort();
  }
  void SetSeed(uint64_t) override {}
  void Dropout(float, uint64_t, int64_t, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void CopyColumns(int64_t, int64_t, const DeviceMemory&, int64_t, int64_t, DeviceMemory*, int64_t,
                   int64_t) override {
    std::abort();
  }
  void ScaleRows(int64_t, int64_t, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  void AddRowVector(int64_t, int64_t, float, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void RowDots(int64_t, int64_t, float, const DeviceMemory&, const DeviceMemory&, float,
               DeviceMemory*) override {
    std::abort();
  }
  void AddScaledRows(int64_t, int64_t, float, const DeviceMemory&, const DeviceMemory&, float,
                     DeviceMemory*) override {
    std::abort();
  }
  void PairwiseDots(const PairGeometry&, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void PairwiseDotsBackward(const PairGeometry&, const DeviceMemory&, const DeviceMemory&,
                            DeviceMemory*) override {
    std::abort();
  }
  void Transpose(const TransposeGeometry&, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void InverseSquareRoot(int64_t, float, const DeviceMemory&, DeviceMemory*) override {
    std::abort();
  }
  void Softmax(int64_t, int64_t, const DeviceMemory&, DeviceMemory*) override { std::abort(); }
  void SoftmaxBackward(int64_t, int64_t, const DeviceMemory&, const DeviceMemory&,
                       DeviceMemory*) override {
    std::abort();
  }
  void BatchNorm(const BatchNormGeometry&, const DeviceMemory&, const DeviceMemory*,
                 const DeviceMemory*, DeviceMemory*, DeviceMemory*, DeviceMemory*) override {
    std::abort();
  }
  void BatchNormBackward(const BatchNormGeometry&, const DeviceMemory&, const DeviceMemory*,
                         const DeviceMemory&, const DeviceMemory&, const DeviceMemory&,
                         DeviceMemory*, DeviceMemory*, DeviceMemory*) override {
    std::abort();
  }
  void BatchNormInference(const BatchNormGeometry&, const DeviceMemory&, const DeviceMemory*,
                          const DeviceMemory*, const DeviceMemory&, const DeviceMemory&,
                          DeviceMemory*) override {
    std::abort();
  }
  void LayerNorm(const LayerNormGeometry&, const DeviceMemory&, const DeviceMemory*,
                 const DeviceMemory*, DeviceMemory*, DeviceMemory*, DeviceMemory*) override {
    std::abort();
  }
  void LayerNormBackward(const LayerNormGeometry&, const DeviceMemory&, const DeviceMemory*,
                         const DeviceMemory&, const DeviceMemory&, const DeviceMemory&,
                         DeviceMemory*, DeviceMemory*, DeviceMemory*) override {
    std::abort();
  }
  void SoftmaxCrossEntropy(int64_t, int64_t, float, const DeviceMemory& scores, const DeviceMemory&,
                           DeviceMemory* losses, DeviceMemory*) override {
    work_.compute(std::lround(scores.data()[0]));
    losses->data()[0] = 1;
  }
  void SigmoidCrossEntropy(int64_t, float, const DeviceMemory&, const DeviceMemory&, DeviceMemory*,
                           DeviceMemory*) override {
    std::abort();
  }
  void MeanSquaredError(int64_t, float, const DeviceMemory&, const DeviceMemory&, DeviceMemory*,
                        DeviceMemory*) override {
    std::abort();
  }
  void HuberLoss(int64_t, float, float, const DeviceMemory&, const DeviceMemory&, DeviceMemory*,
                 DeviceMemory*) override {
    std::abort();
  }

 protected:
  // Of the step's record, which `y` begins with.
  virtual void TakeRows(const std::vector<float>& rows, DeviceMemory* /*y*/) { work_.read(rows); }

 private:
  static int32_t IntegerAt(const DeviceMemory& integers, int32_t position) {
    int32_t value = 0;
    std::memcpy(&value, integers.data() + position, sizeof(value));
    return value;
  }

  const RecordWork work_;
};

// Adds the kernels' elements, and the first ones of rows, to what it carries.
class EvaluatingDevice : public RecordDevice {
 public:
  explicit EvaluatingDevice(std::function<void()> compute)
      : RecordDevice(RecordWork()), evaluate_(std::move(compute)) {}

  void MatMul(const MatMulArgs&, const DeviceMemory& a, const DeviceMemory& kernel, const Epilogue&,
              DeviceMemory* c) override {
    c->data()[0] = std::accumulate(kernel.data(), kernel.data() + kernel.size(), a.data()[0]);
  }
  void SoftmaxCrossEntropy(int64_t, int64_t, float, const DeviceMemory& scores, const DeviceMemory&,
                           DeviceMemory* losses, DeviceMemory*) override {
    evaluate_();
    losses->data()[0] = scores.data()[0];
  }

 protected:
  void TakeRows(const std::vector<float>& rows, DeviceMemory* y) override {
    for (size_t i = 0; i < rows.size(); i += kRecordTableDim) y->data()[0] += rows[i];
  }

 private:
  const std::function<void()> evaluate_;
};

std::string ModeOf(const RecordJob& job) {
  switch (job.mode) {
    case RecordMode::kAsynchronous:
      return "async {}";
    case RecordMode::kBoundedStaleness:
      return "bounded_staleness { staleness: 2 }";
    case RecordMode::kSynchronous:
      return absl::StrCat("synchronous { replicas_to_aggregate: ", job.replicas, " }");
  }
  std::abort();
}

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// The input of the first dense layer.
std::string InputOf(const RecordJob& job) {
  if (!job.table) return "input_shape: 1 ";
  return absl::StrCat("features { name: \"ids\" bag { weighted: true } } tables { name: \"",
                      kRecordTable, "\" dim: ", kRecordTableDim,
                      " expire_after_steps: ", job.expire_after,
                      " } layers { inputs: \"ids\" embedding_bag { combiner: SUM table: \"",
                      kRecordTable, "\" } } ");
}

constexpr float kFirstAccumulator = 0.1f;
constexpr float kEpsilon = 1e-7f;

// What a step of one record's gradient leaves in the slot of its element.
float AccumulatorOf(const RecordJob& job) {
  const float mean = 1.0f / static_cast<float>(job.replicas);
  return kFirstAccumulator + mean * mean;
}

// With it such a step changes the element by about 1.
float SlottedRate(const RecordJob& job) {
  return static_cast<float>(job.replicas) * (std::sqrt(AccumulatorOf(job)) + kEpsilon);
}

float FactorOf(const RecordJob& job, const std::string& variable) {
  const std::vector<std::string> all = RecordVariables();
  const auto number = std::find(all.begin(), all.end(), variable) - all.begin();
  return job.distinct ? static_cast<float>(1 << number) : 1.0f;
}

std::string OptimizerOf(const RecordJob& job) {
  std::string text = "sgd {}";
  if (job.slots) {
    text = absl::StrCat("adagrad { initial_accumulator: ", kFirstAccumulator,
                        " epsilon: ", kEpsilon, " }");
  }
  for (const std::string& variable : RecordVariables()) {
    const float factor = FactorOf(job, variable);
    if (factor == 1) continue;
    absl::StrAppend(&text, " groups { variables: \"", variable, "\" learning_rate_factor: ", factor,
                    " }");
  }
  return text;
}

std::string CopiesOf(const RecordJob& job) {
  if (job.copies == v1::CollectiveConfig::AUTO) return "";
  return absl::StrCat(" collective { replicas: ", v1::CollectiveConfig::Replicas_Name(job.copies),
                      " }");
}

std::string PlacementOf(const RecordJob& job) {
  if (!job.hybrid) return "";
  return absl::StrCat(" placement { groups { variables: \"", kRecordTable,
                      "\" on: PS } groups { variables: \"*\" on: WORKERS } }");
}

// The mean of a step's gradients is added as often as it has some.
std::string RateText(const RecordJob& job) {
  return job.slots ? absl::StrFormat("%.9g", SlottedRate(job)) : absl::StrCat(RecordRate(job));
}

}  // namespace

int64_t RecordRate(const RecordJob& job) {
  return job.mode == RecordMode::kSynchronous ? job.replicas : 1;
}

float CountOf(const RecordJob& job, const std::string& variable, float value) {
  const float count = value / FactorOf(job, variable);
  return job.slots ? std::round(count * 1e3f) / 1e3f : count;
}

std::map<std::string, float> UndisturbedState(const RecordJob& job, const std::string& variable) {
  const float rate = SlottedRate(job) * FactorOf(job, variable);
  const float step = rate * (1.0f / static_cast<float>(job.replicas));
  return {{variable, step / (std::sqrt(AccumulatorOf(job)) + kEpsilon)},
          {absl::StrCat(variable, "/Adagrad"), AccumulatorOf(job)}};
}

v1::TrainConfig RecordConfig(const RecordJob& job, const std::string& model_dir) {
  const int64_t per_step = RecordRate(job);
  std::string layers = InputOf(job);
  for (int i = 1; i <= 3; ++i) {
    absl::StrAppend(&layers, "layers { name: \"dense_", i, "\" dense { units: ", job.records,
                    " kernel_initializer: ZEROS } } ");
  }
  const std::string text =
      absl::StrCat("model { ", layers, "loss { kind: SOFTMAX_CROSS_ENTROPY } } optimizer { ",
                   OptimizerOf(job), " } learning_rate { base: ", RateText(job),
                   " } train { batch_size: 1 max_steps: ", job.records / per_step,
                   " seed: 7 summary_steps: 5 } checkpoint { model_dir: \"", model_dir,
                   "\" save_steps: ", job.save_steps, " keep_max: 2 full_every: ", job.full_every,
                   " } transfer { depth: ", job.depth, " } consistency { mode { ", ModeOf(job),
                   " } }", CopiesOf(job), PlacementOf(job),
                   job.table ? absl::StrCat(" initial_values { groups { variables: \"",
                                            kRecordTable, "\" constant {} } }")
                             : "");
  auto config = ParseTrainConfig(text, "the search's configuration");
  if (!config.ok()) Die(config.status());
  const absl::Status status = FinalizeTrainConfig(&*config);
  if (!status.ok()) Die(status);
  return *std::move(config);
}

RecordDataset::RecordDataset(int64_t records, bool table)
    : records_(records), rows_(table ? std::optional<RecordRows>(records) : std::nullopt) {}

absl::Status RecordDataset::Read(absl::Span<const int64_t> records, Batch* batch) const {
  const auto count = static_cast<int64_t>(records.size());
  if (rows_.has_value()) {
    FeatureValues bags;
    bags.offsets = {0};
    for (const int64_t record : records) {
      const std::vector<uint64_t> ids = rows_->IdsOf(record);
      bags.ids.insert(bags.ids.end(), ids.begin(), ids.end());
      bags.weights.resize(bags.ids.size(), 1);
      bags.weights.back() = static_cast<float>(record);
      bags.offsets.push_back(static_cast<int64_t>(bags.ids.size()));
    }
    *batch = Batch();
    batch->features.push_back(std::move(bags));
    batch->labels.emplace_back(Shape({count}));
    return absl::OkStatus();
  }
  *batch = MakeBatch(Tensor(Shape({count, 1})), Tensor(Shape({count})));
  for (size_t i = 0; i < records.size(); ++i) {
    batch->features.front().numbers.data()[i] = static_cast<float>(records[i]);
  }
  return absl::OkStatus();
}

std::unique_ptr<DeviceGroup> RecordDevices(RecordWork work) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<RecordDevice>(std::move(work)));
  return MakePeerGroup(std::move(devices));
}

std::unique_ptr<Device> ScoringDevice(std::function<void()> compute) {
  return std::make_unique<EvaluatingDevice>(std::move(compute));
}

absl::StatusOr<double> LossOf(const BundleReader& snapshot, const RecordJob& job) {
  double loss = 0;
  for (const std::string& variable : RecordVariables()) {
    if (!absl::EndsWith(variable, "kernel")) continue;
    ASSIGN_OR_RETURN(const Tensor values, snapshot.ReadTensor(variable));
    loss = std::accumulate(values.span().begin(), values.span().end(), loss);
  }
  if (!job.table) return loss;
  ASSIGN_OR_RETURN(const std::vector<RowCounts> counts,
                   RecordRows(job.records, job.expire_after)
                       .ReadCounts(snapshot, static_cast<double>(RecordRate(job))));
  for (const RowCounts& partition : counts) loss += partition.common + partition.own[0];
  return loss;
}

std::vector<std::string> RecordVariables() {
  return {"dense_1/kernel", "dense_1/bias",   "dense_2/kernel",
          "dense_2/bias",   "dense_3/kernel", "dense_3/bias"};
}

}  // namespace keelson
