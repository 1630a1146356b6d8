#include "evaluator/evaluation_records.h"

#include <algorithm>

#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EvaluationRecordsTest : public testing::Test {
 protected:
  std::unique_ptr<EvaluationRecords> Open(int index) {
    auto records = EvaluationRecords::Open(directory_, index);
    EXPECT_TRUE(records.ok()) << records.status();
    return *std::move(records);
  }
  static EvaluationRecord Record(int64_t step, double loss) {
    EvaluationRecord record;
    record.step = step;
    record.metrics["loss"] = loss;
    return record;
  }
  static std::vector<int64_t> Steps(const std::map<int64_t, EvaluationRecord>& records) {
    std::vector<int64_t> steps;
    for (const auto& [step, record] : records) steps.push_back(step);
    return steps;
  }
  static std::vector<int64_t> Refreshed(EvaluationRecords* records) {
    const auto fresh = records->Refresh();
    EXPECT_TRUE(fresh.ok()) << fresh.status();
    return Steps(*fresh);
  }

  const std::string directory_ = FreshDirectory();
};

TEST_F(EvaluationRecordsTest, EvaluatorsSeeOneAnothersRecords) {
  const auto first = Open(0);
  const auto second = Open(1);
  ASSERT_TRUE(first->Add(Record(100, 1)).ok());
  ASSERT_TRUE(second->Add(Record(200, 2)).ok());
  EXPECT_THAT(Refreshed(first.get()), ElementsAre(200));
  EXPECT_THAT(Refreshed(second.get()), ElementsAre(100));
  EXPECT_THAT(Refreshed(first.get()), IsEmpty());
  EXPECT_THAT(Refreshed(second.get()), IsEmpty()) << "its own comes back in the copy";
  EXPECT_EQ(first->Find(200)->metrics.at("loss"), 2);
  EXPECT_EQ(first->Find(300), nullptr);
  EXPECT_THAT(Steps(second->records()), ElementsAre(100, 200));
}

TEST_F(EvaluationRecordsTest, EvaluatorZeroCopiesThemIntoTheOneFile) {
  ASSERT_TRUE(Open(2)->Add(Record(200, 2)).ok());
  const auto first = Open(0);
  EXPECT_THAT(Steps(first->records()), ElementsAre(200));
  ASSERT_TRUE(first->Add(Record(300, 3)).ok());
  Open(0);
  const std::string text = ReadRawFile(directory_ + "/metrics.jsonl");
  EXPECT_THAT(text, HasSubstr("{\"step\":200,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST_F(EvaluationRecordsTest, WhatWasKnownFirstCounts) {
  const auto first = Open(0);
  ASSERT_TRUE(first->Add(Record(100, 1)).ok());
  ASSERT_TRUE(Open(1)->Add(Record(100, 5)).ok());
  EXPECT_THAT(Refreshed(first.get()), IsEmpty());
  EXPECT_EQ(first->Find(100)->metrics.at("loss"), 1);
}

TEST_F(EvaluationRecordsTest, OfTwoSnapshotsOfAStepTheOneThatWasScoredLastCounts) {
  const auto first = Open(0);
  const auto second = Open(1);
  EvaluationRecord old = Record(100, 1);
  old.snapshot_id = 7;
  EvaluationRecord current = Record(100, 5);
  current.snapshot_id = 8;
  current.wall_time = old.wall_time + absl::Seconds(1);
  ASSERT_TRUE(first->Add(old).ok());
  ASSERT_TRUE(second->Add(current).ok());
  EXPECT_THAT(Refreshed(first.get()), ElementsAre(100));
  EXPECT_EQ(first->Find(100)->snapshot_id, 8u);
  EXPECT_THAT(Refreshed(second.get()), IsEmpty());
  EXPECT_EQ(second->Find(100)->snapshot_id, 8u);
  ASSERT_TRUE(first->ForgetAfter(50).ok());
  EXPECT_THAT(Steps(first->records()), IsEmpty());
}

TEST_F(EvaluationRecordsTest, ALineThatIsNotCompleteWaits) {
  const auto first = Open(0);
  const std::string path = directory_ + "/metrics-1.jsonl";
  const std::string line = FormatEvaluationRecord(Record(100, 1));
  WriteRawFile(path, line.substr(0, 10));
  EXPECT_THAT(Refreshed(first.get()), IsEmpty());
  WriteRawFile(path, line);
  EXPECT_THAT(Refreshed(first.get()), ElementsAre(100));
  // The file is rewritten after a torn line.
  WriteRawFile(path, line + "{\"step\":2");
  EXPECT_THAT(Refreshed(first.get()), IsEmpty());
  WriteRawFile(path, line + FormatEvaluationRecord(Record(200, 2)));
  EXPECT_THAT(Refreshed(first.get()), ElementsAre(200));
}

TEST_F(EvaluationRecordsTest, ALineThatIsNoneIsLeftOutAndReportedOnce) {
  const auto first = Open(0);
  WriteRawFile(directory_ + "/metrics-1.jsonl",
               "nonsense\n[]\n" + FormatEvaluationRecord(Record(100, 1)));
  testing::internal::CaptureStderr();
  EXPECT_THAT(Refreshed(first.get()), ElementsAre(100));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("metrics-1.jsonl: byte 0: a line that is no evaluation, left out"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(EvaluationRecordsTest, ADirectoryThatIsAwayIsLookedAtAgain) {
  const auto first = Open(0);
  const auto second = Open(1);
  const std::string away = directory_ + ".away";
  ASSERT_EQ(rename(directory_.c_str(), away.c_str()), 0);
  testing::internal::CaptureStderr();
  EXPECT_THAT(Refreshed(first.get()), IsEmpty());
  EXPECT_THAT(Refreshed(first.get()), IsEmpty());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(directory_));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  ASSERT_EQ(rename(away.c_str(), directory_.c_str()), 0);
  ASSERT_TRUE(second->Add(Record(100, 1)).ok());
  EXPECT_THAT(Refreshed(first.get()), ElementsAre(100));
}

TEST_F(EvaluationRecordsTest, OtherFilesAreNotRead) {
  for (const char* name :
       {"metrics-.jsonl", "metrics-1a.jsonl", "metrics-1.json", "mymetrics.jsonl"}) {
    WriteRawFile(directory_ + "/" + name, FormatEvaluationRecord(Record(100, 1)));
  }
  EXPECT_THAT(Steps(Open(0)->records()), IsEmpty());
}

TEST_F(EvaluationRecordsTest, ADamagedFileOfItsOwnIsAnError) {
  WriteRawFile(directory_ + "/metrics-1.jsonl", "nonsense\n{\"step\":1}\n");
  EXPECT_TRUE(absl::IsDataLoss(EvaluationRecords::Open(directory_, 1).status()));
  EXPECT_TRUE(EvaluationRecords::Open(directory_, 0).ok());
}

}  // namespace
}  // namespace keelson
