#include "evaluator/metrics_log.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr char kLine100[] =
    "{\"step\":100,\"wall_time\":1700000000.5,\"loss\":0.25,\"accuracy\":0.875,\"examples\":2000,"
    "\"seconds\":1.5}\n";

EvaluationRecord Record(int64_t step) {
  return {step,
          absl::FromUnixMillis(1'700'000'000'500),
          {{"accuracy", 0.875}, {"loss", 0.25}},
          2000,
          1.5};
}

class MetricsLogTest : public testing::Test {
 protected:
  const std::string path_ = FreshDirectory() + "/metrics.jsonl";
};

TEST_F(MetricsLogTest, FormatsARecordAsOneLine) {
  EXPECT_EQ(FormatEvaluationRecord(Record(100)), kLine100);
}

TEST_F(MetricsLogTest, ValuesThatAreNotFiniteAreNull) {
  EvaluationRecord record = Record(1);
  record.metrics["loss"] = std::numeric_limits<double>::quiet_NaN();
  record.metrics["accuracy"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(FormatEvaluationRecord(record),
            "{\"step\":1,\"wall_time\":1700000000.5,\"loss\":null,\"accuracy\":null,"
            "\"examples\":2000,\"seconds\":1.5}\n");
}

TEST_F(MetricsLogTest, AppendsAndFindsAgain) {
  {
    auto log = MetricsLog::Open(path_);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_FALSE((*log)->Contains(100));
    ASSERT_TRUE((*log)->Append(Record(100)).ok());
    EXPECT_TRUE((*log)->Contains(100));
  }
  auto log = MetricsLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  const EvaluationRecord* record = (*log)->Find(100);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->wall_time, Record(100).wall_time);
  EXPECT_EQ(record->metrics, Record(100).metrics);
  EXPECT_EQ(record->examples, 2000);
  EXPECT_EQ(record->seconds, 1.5);
  EXPECT_EQ((*log)->Find(200), nullptr);
  ASSERT_TRUE((*log)->Append(Record(200)).ok());
  EXPECT_EQ(ReadRawFile(path_), kLine100 + FormatEvaluationRecord(Record(200)));
}

TEST_F(MetricsLogTest, NamesTheSnapshot) {
  EvaluationRecord record = Record(100);
  record.snapshot_id = 0xf1e2d3c4b5a697;
  const std::string line = FormatEvaluationRecord(record);
  EXPECT_THAT(line, testing::EndsWith("\"snapshot\":\"00f1e2d3c4b5a697\"}\n"));
  const auto parsed = ParseEvaluationRecord(line.substr(0, line.size() - 1));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->snapshot_id, record.snapshot_id);
  EXPECT_EQ(parsed->metrics, record.metrics);
  for (const char* other : {"12", "\"12\"", "\"00f1e2d3c4b5a69x\""}) {
    const auto unnamed =
        ParseEvaluationRecord(absl::StrCat("{\"step\":1,\"loss\":2,\"snapshot\":", other, "}"));
    ASSERT_TRUE(unnamed.has_value());
    EXPECT_EQ(unnamed->snapshot_id, 0u) << other;
  }
}

TEST_F(MetricsLogTest, IsCutAfterAStep) {
  auto log = MetricsLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  for (const int64_t step : {100, 300, 200}) ASSERT_TRUE((*log)->Append(Record(step)).ok());
  ASSERT_TRUE((*log)->CutAfter(200).ok());
  EXPECT_FALSE((*log)->Contains(300));
  ASSERT_TRUE((*log)->Append(Record(250)).ok());
  EXPECT_EQ(ReadRawFile(path_),
            kLine100 + FormatEvaluationRecord(Record(200)) + FormatEvaluationRecord(Record(250)));
  ASSERT_EQ(RemoveFile(path_), absl::OkStatus());
  EXPECT_EQ((*log)->CutAfter(200).code(), absl::StatusCode::kNotFound);
}

TEST_F(MetricsLogTest, NullIsNotANumber) {
  WriteRawFile(path_, "{\"step\":7,\"loss\":null}\n");
  auto log = MetricsLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE(std::isnan((*log)->Find(7)->metrics.at("loss")));
}

class TornLineTest : public MetricsLogTest, public testing::WithParamInterface<std::string> {};

TEST_P(TornLineTest, IsDropped) {
  WriteRawFile(path_, kLine100 + GetParam());
  auto log = MetricsLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Contains(100));
  EXPECT_FALSE((*log)->Contains(200));
  EXPECT_EQ(ReadRawFile(path_), kLine100);
  ASSERT_TRUE((*log)->Append(Record(200)).ok());
  EXPECT_EQ(ReadRawFile(path_), kLine100 + FormatEvaluationRecord(Record(200)));
}

INSTANTIATE_TEST_SUITE_P(Tears, TornLineTest,
                         testing::Values("{\"step\":200,\"wall", "{\"step\":200}", "{",
                                         std::string(40, '\0'), std::string(40, '\0') + "\n",
                                         "{\"step\":200,\n"));

TEST_F(MetricsLogTest, ABadLineInTheMiddleIsAnError) {
  WriteRawFile(path_, std::string(kLine100) + "{\"loss\":1}\n" + kLine100);
  const absl::Status status = MetricsLog::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(path_ + ": line 2"), absl::string_view::npos) << status;
}

TEST_F(MetricsLogTest, AMissingDirectoryIsAnError) {
  EXPECT_EQ(MetricsLog::Open(path_ + "/none/x.jsonl").status().code(), absl::StatusCode::kNotFound);
}

TEST(MetricsLogFilesTest, ARecordOfANewFileSurvivesAPowerCut) {
  MemoryFileSystem files;
  {
    auto log = MetricsLog::Open("/metrics.jsonl", &files);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append(Record(100)).ok());
  }
  files.Restart(Unsynced::kLost);
  auto log = MetricsLog::Open("/metrics.jsonl", &files);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Contains(100));
}

TEST(MetricsLogFilesTest, ACutSurvivesAPowerCut) {
  MemoryFileSystem files;
  auto log = MetricsLog::Open("/metrics.jsonl", &files);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append(Record(100)).ok());
  ASSERT_TRUE((*log)->Append(Record(200)).ok());
  ASSERT_TRUE((*log)->CutAfter(100).ok());
  ASSERT_TRUE((*log)->Append(Record(150)).ok());
  log->reset();
  files.Restart(Unsynced::kLost);
  log = MetricsLog::Open("/metrics.jsonl", &files);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Contains(100));
  EXPECT_TRUE((*log)->Contains(150));
  EXPECT_FALSE((*log)->Contains(200));
}

TEST(MetricsLogFilesTest, AFileThatItsDirectoryNamesIsNotTakenForAbsent) {
  MemoryFileSystem files;
  ASSERT_TRUE(MetricsLog::Open("/metrics.jsonl", &files).ok());
  files.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "look" ? absl::NotFoundError("cached") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(MetricsLog::Open("/metrics.jsonl", &files).status()));
}

}  // namespace
}  // namespace keelson
