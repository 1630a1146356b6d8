// A model whose values count: training on a record adds 1 to the record's element of every
// variable.
#ifndef KEELSON_TESTS_SEARCH_RECORD_MODEL_H_
#define KEELSON_TESTS_SEARCH_RECORD_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "core/device/device_group.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

enum class RecordMode { kAsynchronous, kBoundedStaleness, kSynchronous };

struct RecordJob {
  RecordMode mode = RecordMode::kAsynchronous;
  // Each is trained on once.
  int64_t records = 24;
  // Of a synchronous step; a power of two that divides `records`.
  int64_t replicas = 2;
  int64_t depth = 1;
  int64_t save_steps = 5;
};

// The final configuration: dense layers, whose six variables have an element for each record. The
// values begin at zero.
v1::TrainConfig RecordConfig(const RecordJob& job, const std::string& model_dir);

// The feature of a record is its number.
class RecordDataset : public Dataset {
 public:
  explicit RecordDataset(int64_t records) : records_(records) {}

  int64_t num_records() const override { return records_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;

 private:
  const int64_t records_;
};

// A device that carries the record's number from layer to layer and computes the gradient that the
// servers' step of learning makes 1. `compute` is called once in a step, with the record.
std::unique_ptr<DeviceGroup> RecordDevices(std::function<void(int64_t record)> compute);

// A device for evaluations, which finds for every record the loss that LossOf says. `compute` is
// called once for each.
std::unique_ptr<Device> ScoringDevice(std::function<void()> compute);

// The sum of the elements of all kernels. Errors of BundleReader.
absl::StatusOr<double> LossOf(const BundleReader& snapshot);

// The names of the variables.
std::vector<std::string> RecordVariables();

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_RECORD_MODEL_H_
