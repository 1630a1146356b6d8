#include "core/summary/event_writer.h"

#include <unistd.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EventWriterTest : public testing::Test {
 protected:
  std::unique_ptr<EventWriter> NewWriter() {
    auto writer = EventWriter::Create(directory_, &clock_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }
  static std::vector<v1::Event> ReadEvents(const std::string& path) {
    const auto records = ReadTfRecords(path);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<v1::Event> events;
    for (const std::string& record : *records) {
      EXPECT_TRUE(events.emplace_back().ParseFromString(record));
    }
    return events;
  }

  ManualClock clock_{absl::FromUnixMillis(1'700'000'000'250)};
  const std::string directory_ = JoinPath(FreshDirectory(), "eval/run");
};

TEST_F(EventWriterTest, FileNameAndVersion) {
  const auto writer = NewWriter();
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  EXPECT_EQ(writer->path(), absl::StrCat(directory_, "/events.out.tfevents.1700000000.", host));
  const std::vector<v1::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1'700'000'000.25);
}

TEST_F(EventWriterTest, ScalarsAreReadableAtOnce) {
  const auto writer = NewWriter();
  clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(writer->AddScalars(1200, {{"loss", 0.5}, {"eval/accuracy", 0.25}}).ok());
  const std::vector<v1::Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].wall_time(), 1'700'000'002.25);
  EXPECT_EQ(events[1].step(), 1200);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(events[1].summary().value(1).tag(), "eval/accuracy");
  EXPECT_TRUE(writer->Flush().ok());
}

// Field numbers and types are what TensorBoard reads; v1::Event could be wrong on both sides.
TEST_F(EventWriterTest, BytesOfAnEvent) {
  const auto writer = NewWriter();
  ASSERT_TRUE(writer->AddScalars(3, {{"a", 1.0}}).ok());
  const auto records = ReadTfRecords(writer->path());
  ASSERT_TRUE(records.ok());
  const std::string event = records->at(1);
  EXPECT_EQ(event.substr(0, 1), "\x09");                     // 1: double
  EXPECT_EQ(event.substr(9), std::string("\x10\x03"          // 2: 3
                                         "\x2a\x0a\x0a\x08"  // 5: summary, 1: value
                                         "\x0a\x01"          // 1: tag
                                         "a"
                                         "\x15\x00\x00\x80\x3f",  // 2: 1.0f
                                         14));
}

TEST_F(EventWriterTest, Histograms) {
  const auto writer = NewWriter();
  Histogram kernel, bias;
  kernel.Add({0.5f, 0.25f});
  bias.Add({-1.0f});
  ASSERT_TRUE(writer->AddHistograms(7, {{"dense/kernel", kernel}, {"dense/bias", bias}}).ok());
  const v1::Event event = ReadEvents(writer->path()).at(1);
  EXPECT_EQ(event.step(), 7);
  ASSERT_EQ(event.summary().value_size(), 2);
  EXPECT_EQ(event.summary().value(0).tag(), "dense/kernel");
  EXPECT_EQ(event.summary().value(0).histo().num(), 2);
  EXPECT_EQ(event.summary().value(1).histo().max(), -1);
}

TEST_F(EventWriterTest, TextIsAStringTensorOfRankZero) {
  const auto writer = NewWriter();
  ASSERT_TRUE(writer->AddText("config", "train {}").ok());
  const v1::Event event = ReadEvents(writer->path()).at(1);
  EXPECT_EQ(event.step(), 0);
  ASSERT_EQ(event.summary().value_size(), 1);
  const v1::Summary::Value& value = event.summary().value(0);
  EXPECT_EQ(value.tag(), "config");
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(value.tensor().dtype(), v1::TensorProto::DT_STRING);
  EXPECT_EQ(value.tensor().tensor_shape().dim_size(), 0);
  ASSERT_EQ(value.tensor().string_val_size(), 1);
  EXPECT_EQ(value.tensor().string_val(0), "train {}");
}

TEST_F(EventWriterTest, HparamsBeginNow) {
  const auto writer = NewWriter();
  Hparams hparams;
  hparams.values = {{"optimizer", "adam"}};
  ASSERT_TRUE(writer->AddHparams(hparams).ok());
  const v1::Event event = ReadEvents(writer->path()).at(1);
  ASSERT_EQ(event.summary().value_size(), 1);
  v1::HParamsPluginData data;
  ASSERT_TRUE(data.ParseFromString(event.summary().value(0).metadata().plugin_data().content()));
  EXPECT_EQ(data.session_start_info().start_time_secs(), 1'700'000'000.25);
}

TEST_F(EventWriterTest, TwoInOneSecondDoNotShareAFile) {
  const auto first = NewWriter();
  const auto second = NewWriter();
  EXPECT_NE(first->path(), second->path());
  EXPECT_THAT(second->path(), HasSubstr(".1700000001."));
  EXPECT_EQ(ReadEvents(first->path()).size(), 1u);
}

TEST_F(EventWriterTest, NamesWithImpossibleTimesAreNotFollowed) {
  ASSERT_EQ(FileSystem::Real()->CreateDirectories(directory_), absl::OkStatus());
  for (const char* seconds :
       {"9223372036854775807", "9999999999", "99999999999999999999", "-5", "x", ""}) {
    const std::string path = absl::StrCat(directory_, "/events.out.tfevents.", seconds, ".host");
    ASSERT_EQ(WriteFileAtomically(path, ""), absl::OkStatus());
  }
  EXPECT_THAT(NewWriter()->path(), HasSubstr(".1700000000."));
}

TEST_F(EventWriterTest, ManyThreadsKeepRecordsWhole) {
  const auto writer = NewWriter();
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&writer, t] {
      for (int64_t i = 0; i < 50; ++i) ASSERT_TRUE(writer->AddScalars(t, {{"x", 1.0}}).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadEvents(writer->path()).size(), 201u);
}

// In memory, so that the disk can fill up and the directory vanish.
class EventWriterTroubleTest : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = EventWriter::Create("/events", &clock_, &files_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  absl::Status Add(int64_t step) { return writer_->AddScalars(step, {{"x", 1.0}}); }
  // Steps in the file, without the record that tells the version. What follows half a record cannot
  // be read.
  std::vector<int64_t> StepsIn(const std::string& path) {
    const auto records = ReadTfRecords(path, &files_);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<int64_t> steps;
    for (size_t i = 1; records.ok() && i < records->size(); ++i) {
      v1::Event event;
      EXPECT_TRUE(event.ParseFromString((*records)[i]));
      steps.push_back(event.step());
    }
    return steps;
  }

  ManualClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<EventWriter> writer_;
};

TEST_F(EventWriterTroubleTest, AFullDiskCostsTheEventsOfThatTimeOnly) {
  ASSERT_TRUE(Add(1).ok());
  const std::string first = writer_->path();
  files_.SetCapacity(files_.used_bytes() + 3);
  EXPECT_EQ(Add(2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Add(3).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(writer_->Flush().ok());
  EXPECT_EQ(files_.List("/events")->size(), 1u) << "no empty files";
  files_.SetCapacity(1 << 20);
  ASSERT_TRUE(Add(4).ok());
  ASSERT_TRUE(Add(5).ok());
  EXPECT_NE(writer_->path(), first);
  EXPECT_THAT(StepsIn(writer_->path()), ElementsAre(4, 5));
}

TEST_F(EventWriterTroubleTest, ADirectoryThatComesBackIsWrittenAgain) {
  ASSERT_TRUE(Add(1).ok());
  files_.RemoveTree("/events");
  EXPECT_EQ(Add(2).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Add(3).code(), absl::StatusCode::kNotFound) << "it is not created again";
  ASSERT_TRUE(files_.CreateDirectories("/events").ok());
  ASSERT_TRUE(Add(4).ok());
  EXPECT_THAT(StepsIn(writer_->path()), ElementsAre(4));
}

TEST_F(EventWriterTest, UnwritableDirectoryNamesThePath) {
  const absl::Status status = EventWriter::Create("/proc/none", &clock_).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace keelson
