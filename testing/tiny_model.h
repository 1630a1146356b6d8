// A job's model directory for tests: a tiny model, records to score it on, snapshots of it.
#ifndef KEELSON_TESTING_TINY_MODEL_H_
#define KEELSON_TESTING_TINY_MODEL_H_

#include <google/protobuf/text_format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file_system.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_test_util.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/data/dataset.h"
#include "gtest/gtest.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Two inputs, two classes; evaluated two records at a time.
inline v1::TrainConfig TinyConfig(const std::string& model_dir) {
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

// Records [1, 0]; their labels are given.
class TinyDataset : public Dataset {
 public:
  explicit TinyDataset(std::vector<float> labels) : labels_(std::move(labels)) {}

  int64_t num_records() const override { return static_cast<int64_t>(labels_.size()); }
  const Shape& example_shape() const override { return shape_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto n = static_cast<int64_t>(records.size());
    *batch = {Tensor(Shape({n, 2})), Tensor(Shape({n}))};
    for (size_t i = 0; i < records.size(); ++i) {
      batch->features.span()[2 * i] = 1;
      batch->labels.span()[i] = labels_[records[i]];
    }
    return absl::OkStatus();
  }

 private:
  const Shape shape_ = {2};
  const std::vector<float> labels_;
};

// Four records of class 0 and one of class 1.
inline TinyDataset FiveRecords() { return TinyDataset({0, 0, 1, 0, 0}); }

// The mean loss of FiveRecords under scores [scale, 0].
inline double FiveRecordsLoss(double scale) {
  return (4 * std::log1p(std::exp(-scale)) + std::log1p(std::exp(scale))) / 5;
}

// A bundle whose scores are [scale, 0] for every record.
inline void WriteTinyBundle(const std::string& prefix, float scale) {
  std::vector<BundleIndexEntry> entries;
  auto writer = NewWriter(prefix, 0, 1);
  const std::vector<float> kernel = {scale, 0, 0, scale};
  ASSERT_TRUE(writer->AddTensor("scores/kernel", Shape({2, 2}), kernel).ok());
  ASSERT_TRUE(writer->AddTensor("scores/bias", Shape({2}), std::vector<float>{0, 0}).ok());
  AppendEntries(writer.get(), &entries);
  const absl::Status status = WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries));
  ASSERT_TRUE(status.ok()) << status;
}

inline void CommitTinySnapshot(CheckpointDirectory* directory, int64_t step, float scale = 1) {
  WriteTinyBundle(directory->SnapshotPrefix(step), scale);
  const absl::Status status = directory->Commit(step, RetentionPolicy());
  ASSERT_TRUE(status.ok()) << status;
}

// Changes a value in the snapshot's data file.
inline void DamageSnapshot(const std::string& prefix) {
  const std::string path = DataPath(prefix, 0, 1);
  WriteRawFile(path, Flipped(ReadRawFile(path), 1));
}

// The real file system, in which modifying operations fail from a given one on.
class FailingFileSystem : public FileSystem {
 public:
  // `operation` counts from 0, the first of those to come.
  void FailFrom(int64_t operation) {
    operations_ = 0;
    fail_from_ = operation;
  }
  bool has_failed() const { return operations_ > fail_from_; }

  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override {
    const absl::Status status = Begin(path);
    if (!status.ok()) return status;
    return Real()->OpenForAppend(path, truncate);
  }
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    return Real()->OpenForRead(path);
  }
  bool Exists(const std::string& path) override { return Real()->Exists(path); }
  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override {
    return Real()->ModificationTime(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return Real()->List(path);
  }
  absl::Status CreateDirectories(const std::string& path) override {
    const absl::Status status = Begin(path);
    return status.ok() ? Real()->CreateDirectories(path) : status;
  }
  absl::Status Remove(const std::string& path) override {
    const absl::Status status = Begin(path);
    return status.ok() ? Real()->Remove(path) : status;
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const absl::Status status = Begin(to);
    return status.ok() ? Real()->Rename(from, to) : status;
  }
  absl::Status SyncDirectory(const std::string& path) override {
    const absl::Status status = Begin(path);
    return status.ok() ? Real()->SyncDirectory(path) : status;
  }

 private:
  absl::Status Begin(const std::string& path) {
    if (operations_++ < fail_from_) return absl::OkStatus();
    return absl::PermissionDeniedError(path + ": read-only");
  }

  int64_t operations_ = 0;
  int64_t fail_from_ = std::numeric_limits<int64_t>::max();
};

}  // namespace keelson

#endif  // KEELSON_TESTING_TINY_MODEL_H_
