#include "core/summary/event_thinning.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/summary/event_writer.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr EventLimits kLimits = {.file_bytes = 1000, .total_bytes = 8000, .files = 1000};

class EventThinningTest : public testing::Test {
 protected:
  std::unique_ptr<EventWriter> NewWriter(const EventLimits& limits = kLimits) {
    return *EventWriter::Create("/run", &clock_, &files_, kTensorBoardEvents, limits);
  }
  void AddScalars(EventWriter* writer, int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step) {
      clock_.Advance(absl::Milliseconds(100));
      ASSERT_EQ(writer->AddScalars(step, {{"loss", 1.0}}), absl::OkStatus());
    }
  }
  // All events in the order in which TensorBoard reads them.
  std::vector<v1::Event> Events() {
    std::vector<v1::Event> events;
    const std::vector<std::string> names = *files_.List("/run");
    for (const std::string& name : names) {
      if (!absl::StrContains(name, "tfevents")) continue;
      const auto records = ReadTfRecords(JoinPath("/run", name), &files_);
      EXPECT_TRUE(records.ok()) << records.status();
      for (size_t i = 0; i < records->size(); ++i) {
        EXPECT_TRUE(events.emplace_back().ParseFromString((*records)[i]));
        EXPECT_EQ(!events.back().file_version().empty(), i == 0) << "the first tells the version";
        if (i == 0) events.pop_back();
      }
    }
    return events;
  }
  std::vector<int64_t> StepsOf(v1::Summary::Value::ValueCase value) {
    std::vector<int64_t> steps;
    for (const v1::Event& event : Events()) {
      if (event.has_summary() && event.summary().value(0).value_case() == value) {
        steps.push_back(event.step());
      }
    }
    return steps;
  }
  std::vector<int64_t> Steps() { return StepsOf(v1::Summary::Value::kSimpleValue); }
  absl::Status Thin(const EventLimits& limits) {
    return ThinEventFiles("/run", kTensorBoardEvents, limits, &files_);
  }

  ManualClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  MemoryFileSystem files_;
};

// TensorFlow's files look so, which may be in a directory that Keelson continues.
TEST_F(EventThinningTest, FilesOfOtherProgramsStayAsTheyAre) {
  v1::Event version;
  version.set_file_version("brain.Event:2");
  version.mutable_source_metadata()->set_writer("tensorflow.core.util.events_writer");
  std::vector<std::string> foreign;
  ASSERT_EQ(files_.CreateDirectories("/run"), absl::OkStatus());
  for (int i = 0; i < 10; ++i) {
    foreign.push_back(absl::StrCat("/run/events.out.tfevents.160000000", i, ".host.1.0.v2"));
    files_.SetContent(foreign.back(), EncodeTfRecord(version.SerializeAsString()));
    version.clear_source_metadata();  // older ones say nothing
  }
  files_.SetContent("/run/events.out.tfevents.1600000001.empty", "");
  files_.SetContent("/run/events.out.tfevents.1600000001.damaged", "no record");
  constexpr EventLimits kFewFiles = {.file_bytes = 1000, .total_bytes = 8000, .files = 3};
  for (int i = 0; i < 5; ++i) AddScalars(NewWriter(kFewFiles).get(), i, i);
  EXPECT_THAT(*files_.List("/run"), SizeIs(foreign.size() + 2 + 5)) << "three and the newest two";
  for (int i = 5; i < 9; ++i) AddScalars(NewWriter(kFewFiles).get(), i, i);
  for (const std::string& path : foreign) EXPECT_TRUE(*files_.Exists(path)) << path;
  EXPECT_TRUE(*files_.Exists("/run/events.out.tfevents.1600000001.empty"));
  EXPECT_TRUE(*files_.Exists("/run/events.out.tfevents.1600000001.damaged"));
  EXPECT_THAT(*files_.List("/run"), Contains(testing::EndsWith(".thinned")));
}

TEST_F(EventThinningTest, NothingIsThinnedWithinTheLimits) {
  const auto writer = NewWriter();
  AddScalars(writer.get(), 1, 100);
  EXPECT_GT(files_.List("/run")->size(), 3u);
  const std::vector<int64_t> steps = Steps();
  ASSERT_THAT(steps, SizeIs(100));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

TEST_F(EventThinningTest, ALongJobTakesABoundedPlaceAndKeepsTheShapeOfItsCurve) {
  const auto writer = NewWriter();
  int64_t most = 0;
  for (int64_t step = 1; step <= 20'000; step += 100) {
    AddScalars(writer.get(), step, step + 99);
    most = std::max(most, files_.used_bytes());
  }
  EXPECT_LE(most, 8000 + 2 * 1100);
  const std::vector<int64_t> steps = Steps();
  EXPECT_EQ(steps.front(), 1);
  EXPECT_EQ(steps.back(), 20'000);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  int64_t gap = 0;
  for (size_t i = 1; i < steps.size(); ++i) gap = std::max(gap, steps[i] - steps[i - 1]);
  EXPECT_LE(gap, 2048) << "old steps are as dense as later ones";
  EXPECT_THAT(steps, Contains(2048));
}

TEST_F(EventThinningTest, ManySmallFilesOfEarlierProcessesBecomeOne) {
  for (int64_t process = 0; process < 12; ++process) {
    const auto writer = NewWriter({.file_bytes = 1000, .total_bytes = 8000, .files = 8});
    AddScalars(writer.get(), process, process);
  }
  EXPECT_LE(files_.List("/run")->size(), 10u);
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST_F(EventThinningTest, HistogramsAreThinnedMore) {
  const auto writer = NewWriter();
  Histogram histogram;
  for (int i = 1; i < 50; ++i) histogram.Add({static_cast<float>(i)});
  for (int64_t step = 1; step <= 300; ++step) {
    AddScalars(writer.get(), step, step);
    ASSERT_EQ(writer->AddHistograms(step, {{"kernel", histogram}}), absl::OkStatus());
  }
  const std::vector<int64_t> histograms = StepsOf(v1::Summary::Value::kHisto);
  EXPECT_EQ(histograms.front(), 1);
  EXPECT_EQ(histograms.back(), 300);
  EXPECT_GT(Steps().size(), 2 * histograms.size());
}

TEST_F(EventThinningTest, TextsAndSessionsStayAndASessionBeginsTheRangesAnew) {
  {
    const auto writer = NewWriter();
    ASSERT_EQ(writer->AddText("config", "first"), absl::OkStatus());
    ASSERT_EQ(writer->AddSessionStart(0), absl::OkStatus());
    AddScalars(writer.get(), 1, 1000);
  }
  const auto writer = NewWriter();
  ASSERT_EQ(writer->AddText("config", "second"), absl::OkStatus());
  ASSERT_EQ(writer->AddSessionStart(600), absl::OkStatus());
  AddScalars(writer.get(), 601, 2000);
  std::vector<std::string> texts;
  std::vector<int64_t> sessions;
  for (const v1::Event& event : Events()) {
    if (event.has_session_log()) sessions.push_back(event.step());
    if (event.has_summary() && event.summary().value(0).tag() == "config") {
      texts.push_back(event.summary().value(0).tensor().string_val(0));
    }
  }
  EXPECT_THAT(texts, ElementsAre("first", "second"));
  EXPECT_THAT(sessions, ElementsAre(1, 601));
  EXPECT_THAT(Steps(), Contains(601)) << "the first of the session";
}

TEST_F(EventThinningTest, WhatIsBehindDamageDoesNotStopTheThinning) {
  for (int i = 0; i < 4; ++i) AddScalars(NewWriter().get(), i, i);
  const std::string oldest = JoinPath("/run", files_.List("/run")->front());
  files_.SetContent(oldest, *ReadFile(oldest, &files_) + "torn");
  ASSERT_EQ(Thin({.file_bytes = 1000, .total_bytes = 10, .files = 1}), absl::OkStatus());
  EXPECT_THAT(*files_.List("/run"), SizeIs(3));
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3));
}

TEST_F(EventThinningTest, AFileThatCannotBeReadIsNotRemoved) {
  for (int i = 0; i < 5; ++i) AddScalars(NewWriter().get(), i, i);
  files_.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "open" ? absl::UnavailableError("stale handle") : absl::OkStatus();
  });
  EXPECT_EQ(Thin({.file_bytes = 1000, .total_bytes = 10, .files = 1}).code(),
            absl::StatusCode::kUnavailable);
  files_.SetFault(nullptr);
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(EventThinningTest, NothingIsRemovedWhereTheDiskIsFull) {
  for (int i = 0; i < 5; ++i) AddScalars(NewWriter().get(), i, i);
  files_.SetFault([](absl::string_view operation, const std::string&) {
    return operation == "append" ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_EQ(Thin({.file_bytes = 1000, .total_bytes = 10, .files = 1}).code(),
            absl::StatusCode::kResourceExhausted);
  files_.SetFault(nullptr);
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4));
}

// Thins after a crash at each operation; all steps that thinning keeps are there at every moment.
TEST_F(EventThinningTest, ACrashAtAnyPointLosesNothingThatIsKept) {
  constexpr EventLimits kSmall = {.file_bytes = 1000, .total_bytes = 400, .files = 1};
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kNamesKept,
                                  Unsynced::kBytesKept, Unsynced::kLastNameKept}) {
    bool crashed = true;
    for (int64_t operation = 0; crashed; ++operation) {
      SCOPED_TRACE(absl::StrCat("operation ", operation));
      files_.RemoveTree("/run");
      for (int64_t i = 0; i < 6; ++i) {
        const auto writer = NewWriter({.file_bytes = 1000, .total_bytes = 100'000, .files = 100});
        AddScalars(writer.get(), i * 8, i * 8 + 7);
        ASSERT_EQ(writer->Flush(), absl::OkStatus());
      }
      ASSERT_EQ(files_.SyncDirectory("/run"), absl::OkStatus());
      files_.CrashAt(files_.operations() + operation);
      const absl::Status thinned = Thin(kSmall);
      crashed = files_.crashed();
      EXPECT_EQ(thinned.ok(), !crashed) << thinned;
      files_.Restart(unsynced);
      const std::vector<int64_t> seen = Steps();
      const std::set<int64_t> at_restart(seen.begin(), seen.end());
      ASSERT_EQ(Thin(kSmall), absl::OkStatus());
      const std::vector<int64_t> steps = Steps();
      EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end())) << "none comes twice";
      EXPECT_EQ(std::set<int64_t>(steps.begin(), steps.end()).size(), steps.size());
      EXPECT_EQ(steps.front(), 0);
      EXPECT_THAT(steps, Contains(16));
      EXPECT_EQ(std::count_if(steps.begin(), steps.end(), [](int64_t s) { return s >= 32; }), 16)
          << "the newest two files are not thinned";
      for (const int64_t step : steps) EXPECT_TRUE(at_restart.contains(step)) << step;
      EXPECT_THAT(*files_.List("/run"), SizeIs(3));
    }
  }
}

TEST_F(EventThinningTest, OtherFilesStay) {
  ASSERT_TRUE(files_.CreateDirectories("/run").ok());
  files_.SetContent("/run/events.keelson.1.h", "x");
  files_.SetContent("/run/checkpoint", "x");
  for (int i = 0; i < 5; ++i) AddScalars(NewWriter().get(), i, i);
  ASSERT_EQ(Thin({.file_bytes = 1000, .total_bytes = 10, .files = 1}), absl::OkStatus());
  EXPECT_THAT(*files_.List("/run"), Contains("checkpoint"));
  EXPECT_THAT(*files_.List("/run"), Contains("events.keelson.1.h"));
}

}  // namespace
}  // namespace keelson
