#include "dashboard/api/live_updates.h"

#include <gmock/gmock.h>

#include <atomic>
#include <new>

#include "absl/strings/str_split.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;

constexpr char kEventFile[] = "events.out.tfevents.1700000000.host";

struct StreamEvent {
  std::string name;
  Json data;
};

class LiveUpdatesTest : public DashboardApiTest {
 protected:
  // Opens a stream, whose first event is "hello".
  void Open(const std::string& query = "") {
    const HttpResponse response = Ask("GET", "/api/v1/events" + query);
    ASSERT_EQ(response.status, 200) << response.body;
    ASSERT_NE(response.events, nullptr);
    stream_ = response.events;
    const std::vector<StreamEvent> events = Next();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].name, "hello");
    EXPECT_EQ(events[0].data, Json({{"time", 1.7e9}}));
  }
  // What has come by now.
  std::vector<StreamEvent> Next() {
    std::vector<StreamEvent> events;
    const std::optional<std::string> text = stream_->Next(absl::ZeroDuration());
    EXPECT_TRUE(text.has_value());
    for (const absl::string_view block :
         absl::StrSplit(text.value_or(""), "\n\n", absl::SkipEmpty())) {
      const std::vector<std::string> lines = absl::StrSplit(block, '\n');
      EXPECT_EQ(lines.size(), 2u) << block;
      EXPECT_EQ(lines[0].substr(0, 7), "event: ");
      EXPECT_EQ(lines[1].substr(0, 6), "data: ");
      events.push_back({lines[0].substr(7), ParseJson(lines[1].substr(6)).value_or(Json())});
    }
    return events;
  }
  std::vector<std::string> NextNames() {
    std::vector<std::string> names;
    for (const StreamEvent& event : Next()) names.push_back(event.name);
    return names;
  }

  std::shared_ptr<EventSource> stream_;
};

TEST_F(LiveUpdatesTest, WhatWasThereBeforeIsNotTold) {
  files().Write("status.json", TrainingStatus().dump());
  files().Append(kEventFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
  Open();
  EXPECT_THAT(NextNames(), IsEmpty());
}

TEST_F(LiveUpdatesTest, AStatusAndTheClusterComeTogether) {
  Open();
  files().Write("status.json", TrainingStatus().dump());
  Poll();
  const std::vector<StreamEvent> events = Next();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "status");
  EXPECT_EQ(events[0].data, Get("/runs/mnist"));
  EXPECT_EQ(events[1].name, "cluster");
  EXPECT_EQ(events[1].data, Get("/runs/mnist/cluster"));
  EXPECT_THAT(NextNames(), IsEmpty());
}

TEST_F(LiveUpdatesTest, NewPointsOfCurves) {
  files().Append(kEventFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
  Open();
  files().Append(kEventFile, ScalarRecord("loss", 2, 1.7e9 + 1, 0.25f));
  Poll();
  std::vector<StreamEvent> events = Next();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].name, "series");
  EXPECT_EQ(
      events[0].data,
      Json(
          {{"run", "mnist"},
           {"series",
            {{{"name", "train/loss"}, {"step", {2}}, {"time", {1.7e9 + 1}}, {"value", {0.25}}}}}}));
}

TEST_F(LiveUpdatesTest, AnEvaluationIsToldInTheCurvesTheSnapshotsAndTheStatus) {
  Open();
  files().Append("eval/metrics.jsonl", EvaluationLine(100, 1.7e9, 0.5, 0.75));
  Poll();
  const std::vector<StreamEvent> events = Next();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].name, "status");
  EXPECT_EQ(events[0].data["best"]["value"], 0.75);
  EXPECT_EQ(events[2].name, "series");
  EXPECT_EQ(events[2].data["series"].size(), 2u);
  EXPECT_EQ(events[3].name, "snapshots");
  EXPECT_EQ(events[3].data, Get("/runs/mnist/snapshots"));
}

TEST_F(LiveUpdatesTest, OnceASecond) {
  Open();
  for (int step = 1; step <= 3; ++step) {
    files().Append(kEventFile, ScalarRecord("loss", step, 1.7e9, 0.5f));
    Poll();
    EXPECT_EQ(Next().size(), step == 1 ? 1u : 0u) << step;
  }
  clock_.Advance(LiveUpdates::kInterval);
  const std::vector<StreamEvent> events = Next();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].data["series"][0]["step"], Json({2, 3}));
}

TEST_F(LiveUpdatesTest, ManyPointsAreThinned) {
  Open();
  std::string records;
  for (int step = 0; step < 10'000; ++step) records += ScalarRecord("loss", step, 1.7e9, 0.5f);
  files().Append(kEventFile, records);
  Poll();
  const std::vector<StreamEvent> events = Next();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_LE(events[0].data["series"][0]["step"].size(), 2000u);
}

TEST_F(LiveUpdatesTest, OnlyTheRunsThatWereAskedFor) {
  run_options_.runs = {"/runs/a", "/runs/b"};
  const RunFiles a(&memory_, "/runs/a"), b(&memory_, "/runs/b");
  for (const RunFiles& run : {a, b}) run.Write("status.json", TrainingStatus().dump());
  Open("?run=b&run=mnist");
  for (const RunFiles& run : {a, b}) run.Append(kEventFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
  Poll();
  const std::vector<StreamEvent> events = Next();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].data["run"], "b");
}

TEST_F(LiveUpdatesTest, ARunThatComesLaterIsTold) {
  run_options_.runs = {"/runs"};
  RunFiles(&memory_, "/runs");
  Open();
  RunFiles(&memory_, "/runs/new").Write("status.json", TrainingStatus().dump());
  clock_.Advance(absl::Seconds(6));
  Poll();
  const std::vector<StreamEvent> events = Next();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].name, "status");
  EXPECT_EQ(events[0].data["run"], "new");
}

TEST_F(LiveUpdatesTest, RunsThatThereAreNot) {
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/events?run=other")), "run: no such run");
  std::string many = "/api/v1/events?";
  for (int i = 0; i < 65; ++i) many += "run=mnist&";
  EXPECT_EQ(Error(400, Ask("GET", many)), "run: expected at most 64, found 65");
}

TEST_F(LiveUpdatesTest, StreamsEndWhenTheDashboardDoes) {
  Open();
  updates().Close();
  EXPECT_EQ(stream_->Next(absl::Seconds(20)), std::nullopt);
}

TEST_F(LiveUpdatesTest, AStreamThatWaitsIsWokenByNews) {
  Open();
  std::thread poller([&] {
    files().Append(kEventFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
    Poll();
  });
  const std::optional<std::string> text = stream_->Next(absl::Seconds(60));
  poller.join();
  EXPECT_THAT(text.value_or(""), testing::HasSubstr("event: series"));
}

TEST_F(LiveUpdatesTest, ThePollerReadsWhatIsThereAndWhatComes) {
  files().Append(kEventFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
  Open();
  RunPoller poller(&runs(), &updates(), absl::Milliseconds(1));
  files().Append(kEventFile, ScalarRecord("loss", 2, 1.7e9, 0.5f));
  std::string text;
  while (text.find("\"step\":[2]") == std::string::npos) {
    text = stream_->Next(absl::Seconds(60)).value_or("");
    ASSERT_NE(text, "") << "nothing came in a minute";
  }
  EXPECT_TRUE(poller.loaded());
}

// Has no memory for the first files that are read.
class ExhaustedFiles : public MemoryFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    if (failures_.fetch_sub(1) > 0) throw std::bad_alloc();
    return MemoryFileSystem::OpenForRead(path);
  }

 private:
  std::atomic<int> failures_ = 3;
};

TEST(RunPollerTest, AnExceptionIsLoggedOnceAndThePollerGoesOn) {
  ExhaustedFiles memory;
  ManualClock clock;
  const RunFiles files(&memory, "/jobs/mnist");
  files.Append(kEventFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
  RunSet::Options options;
  options.model_dir = "/jobs/mnist";
  options.file_system = &memory;
  options.clock = &clock;
  const auto runs = RunSet::Create(options);
  ASSERT_TRUE(runs.ok()) << runs.status();
  LiveUpdates updates(runs->get(), Clock::Real());
  const std::shared_ptr<EventSource> stream = updates.Open({});
  testing::internal::CaptureStderr();
  {
    RunPoller poller(runs->get(), &updates, absl::Milliseconds(1));
    std::string text = stream->Next(absl::Seconds(60)).value_or("");
    while (!text.empty() && text.find("train/loss") == std::string::npos) {
      text = stream->Next(absl::Seconds(60)).value_or("");
    }
    EXPECT_NE(text, "") << "nothing came in a minute";
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find("reading the runs has failed, and is tried again: ");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("reading the runs has failed", first + 1), std::string::npos) << log;
}

}  // namespace
}  // namespace keelson
