// A job's model directory for tests: a tiny model, records to score it on, snapshots of it.
#ifndef KEELSON_TESTING_TINY_MODEL_H_
#define KEELSON_TESTING_TINY_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint_directory.h"
#include "core/data/dataset.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Two inputs, two classes; evaluated two records at a time.
v1::TrainConfig TinyConfig(const std::string& model_dir);

// Records [1, 0]; their labels are given.
class TinyDataset : public Dataset {
 public:
  explicit TinyDataset(std::vector<float> labels) : labels_(std::move(labels)) {}

  int64_t num_records() const override { return static_cast<int64_t>(labels_.size()); }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;

 private:
  const std::vector<float> labels_;
};

// Four records of class 0 and one of class 1.
TinyDataset FiveRecords();

// The mean loss of FiveRecords under scores [scale, 0].
double FiveRecordsLoss(double scale);

// A bundle whose scores are [scale, 0] for every record. Without an id (JobState.snapshot_id) it
// has no state of a job.
void WriteTinyBundle(const std::string& prefix, float scale, uint64_t snapshot_id = 0);

void CommitTinySnapshot(CheckpointDirectory* directory, int64_t step, float scale = 1,
                        uint64_t snapshot_id = 0);

// Changes a value in the snapshot's data file.
void DamageSnapshot(const std::string& prefix);

}  // namespace keelson

#endif  // KEELSON_TESTING_TINY_MODEL_H_
