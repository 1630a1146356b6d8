#include "evaluator/snapshot_scorer.h"

#include "core/device/device_factory.h"
#include "evaluator/evaluator_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using absl::StatusCode;

class SnapshotScorerTest : public testing::Test {
 protected:
  SnapshotScorerTest()
      : device_(*CreateDevice("cpu", {.threads = 1})),
        prefix_(FreshDirectory() + "/model.ckpt-7") {}

  std::unique_ptr<SnapshotScorer> Scorer(const Dataset* eval) {
    auto scorer =
        SnapshotScorer::Create(TinyConfig("unused"), device_.get(), eval, &clock_, &stop_);
    EXPECT_TRUE(scorer.ok()) << scorer.status();
    return *std::move(scorer);
  }
  absl::StatusOr<EvaluationRecord> Score() {
    return Scorer(&records_)->Score({7, prefix_, absl::Time()});
  }
  // A bundle with only these tensors, all zeros.
  void WriteZeros(const std::vector<std::pair<std::string, Shape>>& tensors) {
    std::vector<BundleIndexEntry> entries;
    auto writer = NewWriter(prefix_, 0, 1);
    for (const auto& [name, shape] : tensors) {
      const std::vector<float> zeros(static_cast<size_t>(shape.num_elements()));
      ASSERT_TRUE(writer->AddTensor(name, shape, zeros).ok());
    }
    AppendEntries(writer.get(), &entries);
    ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, std::move(entries)).ok());
  }

  const std::unique_ptr<Device> device_;
  const std::string prefix_;
  const TinyDataset records_ = FiveRecords();
  ManualClock clock_;
  StopSignal stop_;
};

TEST_F(SnapshotScorerTest, ScoresAllRecords) {
  WriteTinyBundle(prefix_, 3);
  const auto record = Score();
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->step, 7);
  EXPECT_EQ(record->wall_time, clock_.Now());
  EXPECT_EQ(record->examples, 5);
  EXPECT_EQ(record->seconds, 0);
  ASSERT_EQ(record->metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(record->metrics.at("accuracy"), 0.8);
  EXPECT_NEAR(record->metrics.at("loss"), FiveRecordsLoss(3), 1e-5);
}

TEST_F(SnapshotScorerTest, EachSnapshotHasItsOwnVariables) {
  const auto scorer = Scorer(&records_);
  for (const float scale : {2.0f, -2.0f}) {
    WriteTinyBundle(prefix_, scale);
    const auto record = scorer->Score({7, prefix_, absl::Time()});
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_NEAR(record->metrics.at("loss"), FiveRecordsLoss(scale), 1e-5);
  }
}

TEST_F(SnapshotScorerTest, KeepsItsLeaseUpWhileItReads) {
  WriteTinyBundle(prefix_, 1);
  const auto lease = SnapshotLease::Take(FileSystem::Real(), prefix_, "evaluator-0", &clock_);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const absl::Time first_end = (*lease)->expires();
  ASSERT_TRUE(Scorer(&records_)->Score({7, prefix_, absl::Time()}, lease->get()).ok());
  EXPECT_EQ((*lease)->expires(), first_end) << "it is young";
  clock_.Advance(SnapshotLease::kDuration / 2);
  ASSERT_TRUE(Scorer(&records_)->Score({7, prefix_, absl::Time()}, lease->get()).ok());
  EXPECT_EQ((*lease)->expires(), clock_.Now() + SnapshotLease::kDuration);
}

TEST_F(SnapshotScorerTest, NoRecords) {
  const TinyDataset none({});
  for (const Dataset* eval :
       {static_cast<const Dataset*>(nullptr), static_cast<const Dataset*>(&none)}) {
    const auto scorer =
        SnapshotScorer::Create(TinyConfig("unused"), device_.get(), eval, &clock_, &stop_);
    EXPECT_EQ(scorer.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(scorer.status().message(), "evaluation: expected at least one record, found none");
  }
}

TEST_F(SnapshotScorerTest, AMissingVariableIsNamed) {
  WriteZeros({{"scores/kernel", Shape({2, 2})}});
  const absl::Status status = Score().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), prefix_ +
                                  ": variable 'scores/bias': the model expects float32 [2], "
                                  "found none");
}

TEST_F(SnapshotScorerTest, AVariableOfAnotherShapeIsNamed) {
  WriteZeros({{"scores/kernel", Shape({3, 2})}, {"scores/bias", Shape({2})}});
  const absl::Status status = Score().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            prefix_ +
                ": variable 'scores/kernel': the model expects float32 [2, 2], found float32 "
                "[3, 2]");
}

TEST_F(SnapshotScorerTest, MissingFiles) {
  EXPECT_EQ(Score().status().code(), StatusCode::kNotFound);
  WriteTinyBundle(prefix_, 1);
  ASSERT_TRUE(RemoveFile(DataPath(prefix_, 0, 1)).ok());
  EXPECT_EQ(Score().status().code(), StatusCode::kNotFound);
}

TEST_F(SnapshotScorerTest, Damage) {
  WriteTinyBundle(prefix_, 1);
  DamageSnapshot(prefix_);
  EXPECT_EQ(Score().status().code(), StatusCode::kDataLoss);
}

TEST_F(SnapshotScorerTest, StopsBetweenBatches) {
  WriteTinyBundle(prefix_, 1);
  stop_.Raise();
  EXPECT_EQ(Score().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace keelson
