#include "evaluator/snapshot_scorer.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/device/factory/device_factory.h"
#include "gtest/gtest.h"
#include "testing/tiny_model.h"

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
  absl::StatusOr<ScoredSnapshot> Score() {
    return Scorer(&records_)->Score({7, prefix_, absl::Time()});
  }
  // A bundle with only these tensors, all zeros.
  void WriteZeros(const std::vector<std::pair<std::string, Shape>>& tensors) {
    std::vector<BundleIndexEntry> entries;
    auto writer = NewWriter(prefix_, 0, 1);
    for (const auto& [name, shape] : tensors) {
      const std::vector<float> zeros(shape.num_elements());
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
  const auto scored = Score();
  ASSERT_TRUE(scored.ok()) << scored.status();
  const EvaluationRecord& record = scored->record;
  EXPECT_EQ(record.step, 7);
  EXPECT_EQ(record.wall_time, clock_.Now());
  EXPECT_EQ(record.examples, 5);
  EXPECT_EQ(record.seconds, 0);
  ASSERT_EQ(record.metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(record.metrics.at("accuracy"), 0.8);
  EXPECT_NEAR(record.metrics.at("loss"), FiveRecordsLoss(3), 1e-5);
}

TEST_F(SnapshotScorerTest, ReportsWhatIsWrong) {
  WriteTinyBundle(prefix_, 3);
  v1::TrainConfig config = TinyConfig("unused");
  config.mutable_data()->add_class_names("sound");
  config.mutable_data()->add_class_names("broken");
  const auto scorer = SnapshotScorer::Create(config, device_.get(), &records_, &clock_, &stop_);
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const auto scored = (*scorer)->Score({7, prefix_, absl::Time()});
  ASSERT_TRUE(scored.ok()) << scored.status();
  const auto json = nlohmann::json::parse(scored->report);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["time"], absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch()));
  EXPECT_EQ(json["examples"], 5);
  EXPECT_EQ(json["classes"], nlohmann::json::parse(R"(["sound", "broken"])"));
  EXPECT_EQ(json["confusion"], nlohmann::json::parse("[[4, 0], [1, 0]]"));
  ASSERT_EQ(json["wrong"].size(), 1u);
  EXPECT_EQ(json["wrong"][0]["record"], 2);
  EXPECT_EQ(json["wrong"][0]["input"],
            nlohmann::json::parse(R"({"shape": [2], "values": [255, 0]})"));
}

// Records that are made of a column.
class NamedRecords : public Dataset {
 public:
  explicit NamedRecords(const Dataset* records) : records_(records) {}

  int64_t num_records() const override { return records_->num_records(); }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    return records_->Read(records, batch);
  }
  absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const override {
    return RecordColumns{{"name", {absl::StrCat("record ", record)}}};
  }

 private:
  const Dataset* const records_;
};

TEST_F(SnapshotScorerTest, ReportsTheColumnsOfWhatIsWrong) {
  WriteTinyBundle(prefix_, 3);
  const NamedRecords records(&records_);
  const auto scorer =
      SnapshotScorer::Create(TinyConfig("unused"), device_.get(), &records, &clock_, &stop_);
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const auto scored = (*scorer)->Score({7, prefix_, absl::Time()});
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(nlohmann::json::parse(scored->report)["wrong"][0]["columns"],
            nlohmann::json::parse(R"([{"name": "name", "count": 1, "texts": ["record 2"]}])"));
}

TEST_F(SnapshotScorerTest, ScoresAsManyBatchesAsItMay) {
  WriteTinyBundle(prefix_, 3);
  v1::TrainConfig config = TinyConfig("unused");
  for (const auto& [steps, examples] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 2}, {2, 4}, {3, 5}, {4, 5}, {std::numeric_limits<int64_t>::max(), 5}, {0, 5}}) {
    config.mutable_evaluation()->set_steps(steps);
    const auto scorer = SnapshotScorer::Create(config, device_.get(), &records_, &clock_, &stop_);
    ASSERT_TRUE(scorer.ok()) << scorer.status();
    const auto scored = (*scorer)->Score({7, prefix_, absl::Time()});
    ASSERT_TRUE(scored.ok()) << scored.status();
    EXPECT_EQ(scored->record.examples, examples) << steps;
    EXPECT_DOUBLE_EQ(scored->record.metrics.at("accuracy"), steps == 1   ? 1
                                                            : steps == 2 ? 0.75
                                                                         : 0.8);
  }
}

TEST_F(SnapshotScorerTest, ShowsTheVariables) {
  WriteTinyBundle(prefix_, 3);
  std::map<std::string, std::vector<float>> shown;
  const auto scored =
      Scorer(&records_)->Score({7, prefix_, absl::Time()}, nullptr,
                               [&](const VariableSpec& variable, absl::Span<const float> values) {
                                 shown[variable.name].assign(values.begin(), values.end());
                               });
  ASSERT_TRUE(scored.ok()) << scored.status();
  const std::map<std::string, std::vector<float>> expected = {{"scores/kernel", {3, 0, 0, 3}},
                                                              {"scores/bias", {0, 0}}};
  EXPECT_EQ(shown, expected);
}

TEST_F(SnapshotScorerTest, EachSnapshotHasItsOwnVariables) {
  const auto scorer = Scorer(&records_);
  for (const float scale : {2.0f, -2.0f}) {
    WriteTinyBundle(prefix_, scale);
    const auto scored = scorer->Score({7, prefix_, absl::Time()});
    ASSERT_TRUE(scored.ok()) << scored.status();
    EXPECT_NEAR(scored->record.metrics.at("loss"), FiveRecordsLoss(scale), 1e-5);
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
