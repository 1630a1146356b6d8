// A model whose values count: training on a record adds 1 to the record's element of every
// variable, and to the rows that it has in a table.
#ifndef KEELSON_TESTS_SEARCH_RECORD_MODEL_H_
#define KEELSON_TESTS_SEARCH_RECORD_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "core/device/device_group.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/search/record_rows.h"

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
  // The model has a table of embeddings (record_rows.h), too.
  bool table = false;
  // The steps after which its rows expire; 0: they do not.
  int64_t expire_after = 0;
  // CheckpointConfig.full_every.
  int64_t full_every = 0;
  // The optimizer keeps a slot of each element. Of synchronous jobs without a table.
  bool slots = false;
  // A step adds twice as much to each variable as to the one before it, in the order of
  // RecordVariables, so that none can be taken for another one.
  bool distinct = false;
  // Tables are placed on servers, all else on workers.
  bool hybrid = false;
  // Of clusters whose workers host shards.
  v1::CollectiveConfig::Replicas copies = v1::CollectiveConfig::AUTO;
};

// The final configuration: dense layers, whose six variables have an element for each record. The
// values begin at zero.
v1::TrainConfig RecordConfig(const RecordJob& job, const std::string& model_dir);

// The feature of a record is its number; with a table, the ids of its rows, of which the last has
// the number as its weight.
class RecordDataset : public Dataset {
 public:
  RecordDataset(int64_t records, bool table);

  int64_t num_records() const override { return records_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;

 private:
  const int64_t records_;
  const std::optional<RecordRows> rows_;  // of the table
};

// What a worker does with the record of a step.
struct RecordWork {
  // Computes.
  std::function<void(int64_t record)> compute;
  // Has read the rows of RecordRows::IdsOf, [ids, kRecordTableDim].
  std::function<void(const std::vector<float>& rows)> read;
};

// A device that carries the record's number from layer to layer and computes the gradient that the
// servers' step of learning makes 1. Each function of the work is called once in a step.
std::unique_ptr<DeviceGroup> RecordDevices(RecordWork work);

// A device for evaluations, which finds for every record the loss that LossOf says. `compute` is
// called once for each.
std::unique_ptr<Device> ScoringDevice(std::function<void()> compute);

// The sum of the elements of all kernels, and, with a table, of the first ones of the rows of the
// only record that is evaluated. Errors of BundleReader and RecordRows::ReadCounts.
absl::StatusOr<double> LossOf(const BundleReader& snapshot, const RecordJob& job);

// How often a record counts in a job in which its element of the variable has this value.
float CountOf(const RecordJob& job, const std::string& variable, float value);

// The value that every element of a variable, and of its slot, has at the end of a synchronous job
// with slots to which nothing has happened, by the tensor's name: each record is in one step, and
// changes its own element alone.
std::map<std::string, float> UndisturbedState(const RecordJob& job, const std::string& variable);

// What a step adds to an element in all: the learning rate.
int64_t RecordRate(const RecordJob& job);

// The names of the variables.
std::vector<std::string> RecordVariables();

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_RECORD_MODEL_H_
