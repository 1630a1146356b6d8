#include "testing/tiny_model.h"

#include <google/protobuf/text_format.h>

#include <cmath>

#include "core/base/file_system.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/job_state.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

v1::TrainConfig TinyConfig(const std::string& model_dir) {
  v1::TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(model {
           input_shape: 2
           layers { name: "scores" dense { units: 2 } }
           loss { kind: SOFTMAX_CROSS_ENTROPY }
         }
         evaluation { batch_size: 2 metrics { accuracy {} } })",
      &config));
  config.mutable_checkpoint()->set_model_dir(model_dir);
  return config;
}

absl::Status TinyDataset::Read(absl::Span<const int64_t> records, Batch* batch) const {
  const auto n = static_cast<int64_t>(records.size());
  *batch = MakeBatch(Tensor(Shape({n, 2})), Tensor(Shape({n})));
  for (size_t i = 0; i < records.size(); ++i) {
    batch->features.front().numbers.span()[2 * i] = 1;
    batch->labels.front().span()[i] = labels_[records[i]];
  }
  return absl::OkStatus();
}

TinyDataset FiveRecords() { return TinyDataset({0, 0, 1, 0, 0}); }

double FiveRecordsLoss(double scale) {
  return (4 * std::log1p(std::exp(-scale)) + std::log1p(std::exp(scale))) / 5;
}

void WriteTinyBundle(const std::string& prefix, float scale, uint64_t snapshot_id) {
  std::vector<BundleIndexEntry> entries;
  auto writer = NewWriter(prefix, 0, 1);
  const std::vector<float> kernel = {scale, 0, 0, scale};
  ASSERT_TRUE(writer->AddTensor("scores/kernel", Shape({2, 2}), kernel).ok());
  ASSERT_TRUE(writer->AddTensor("scores/bias", Shape({2}), std::vector<float>{0, 0}).ok());
  if (snapshot_id != 0) {
    v1::JobState state;
    state.set_snapshot_id(snapshot_id);
    ASSERT_TRUE(writer->AddString(kJobStateName, state.SerializeAsString()).ok());
  }
  AppendEntries(writer.get(), &entries);
  const absl::Status status = WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries));
  ASSERT_TRUE(status.ok()) << status;
}

void CommitTinySnapshot(CheckpointDirectory* directory, int64_t step, float scale,
                        uint64_t snapshot_id) {
  WriteTinyBundle(directory->SnapshotPrefix(step), scale, snapshot_id);
  const absl::Status status = directory->Commit(step, RetentionPolicy());
  ASSERT_TRUE(status.ok()) << status;
}

void DamageSnapshot(const std::string& prefix) {
  const std::string path = DataPath(prefix, 0, 1);
  WriteRawFile(path, Flipped(ReadRawFile(path), 1));
}

}  // namespace keelson
