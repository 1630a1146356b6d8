#include "dashboard/runs/event_tail.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/summary/event_writer.h"
#include "core/summary/tf_record.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFile[] = "events.out.tfevents.1700000000.host";

class EventTailTest : public testing::Test {
 protected:
  // What one Poll tells: "tag step value".
  std::vector<std::string> Poll(size_t max_bytes = 1 << 20) {
    std::vector<std::string> points;
    more_ = tail_.Poll(max_bytes, [&](absl::string_view tag, const SeriesPoint& point) {
      points.push_back(absl::StrCat(tag, " ", point.step, " ", point.value));
    });
    return points;
  }

  MemoryFileSystem memory_;
  RunFiles files_{&memory_, "/run"};
  EventTail tail_{&memory_, "/run"};
  bool more_ = false;
};

TEST_F(EventTailTest, TellsWhatIsNew) {
  EXPECT_THAT(Poll(), IsEmpty());
  files_.Append(kFile, ScalarRecord("loss", 1, 1.7e9, 0.5f));
  EXPECT_THAT(Poll(), ElementsAre("loss 1 0.5"));
  EXPECT_THAT(Poll(), IsEmpty());
  // As the text that was logged, not as the float next to it.
  files_.Append(kFile, ScalarRecord("loss", 2, 1.7e9, 0.1f));
  EXPECT_THAT(Poll(), ElementsAre("loss 2 0.1"));
  EXPECT_TRUE(tail_.trouble().ok());
}

TEST_F(EventTailTest, ReadsWhatTheWriterWrites) {
  ManualClock clock;
  auto writer = EventWriter::Create("/run", &clock, &memory_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddScalars(3, {{"loss", 0.25}, {"learning_rate", 0.1}}).ok());
  ASSERT_TRUE((*writer)->AddText("config", "model {}").ok());
  EXPECT_THAT(Poll(), ElementsAre("loss 3 0.25", "learning_rate 3 0.1"));
  // Not for TensorBoard.
  const auto own = EventWriter::Create("/run", &clock, &memory_, kDashboardEvents);
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_TRUE((*own)->AddScalars(4, {{"worker-0/steps", 2}}).ok());
  EXPECT_THAT(Poll(), ElementsAre("worker-0/steps 4 2"));
}

TEST_F(EventTailTest, WaitsForTheRestOfARecord) {
  const std::string record = ScalarRecord("loss", 1, 1.7e9, 0.5f);
  for (const size_t cut : {size_t{0}, size_t{5}, size_t{11}, size_t{13}, record.size() - 1}) {
    const std::string name = absl::StrCat(kFile, ".", cut);
    files_.Append(name, record.substr(0, cut));
    for (int i = 0; i < 20; ++i) EXPECT_THAT(Poll(), IsEmpty()) << cut;
    files_.Append(name, record.substr(cut));
    EXPECT_THAT(Poll(), ElementsAre("loss 1 0.5")) << cut;
  }
  EXPECT_TRUE(tail_.trouble().ok());
}

TEST_F(EventTailTest, ReadsLongFilesInPartsAndAllFilesOfADirectory) {
  std::string content;
  for (int step = 0; step < 100; ++step) content += ScalarRecord("loss", step, 1.7e9, 1);
  files_.Append(kFile, content);
  files_.Append(absl::StrCat(kFile, ".1"), ScalarRecord("loss", 100, 1.7e9, 1));
  files_.Append("status.json", "{}");
  size_t points = 0;
  int polls = 0;
  do {
    points += Poll(500).size();
    ASSERT_LT(++polls, 100);
  } while (more_);
  EXPECT_EQ(points, 101u);
  EXPECT_GT(polls, 5);
}

TEST_F(EventTailTest, WhatFollowsADamagedRecordIsNotReadAndTheOtherFilesAre) {
  const std::string good = ScalarRecord("loss", 1, 1.7e9, 0.5f);
  std::string bad = good;
  bad[bad.size() - 6] ^= 1;
  files_.Append(kFile, good + bad + good);
  EXPECT_THAT(Poll(), ElementsAre("loss 1 0.5"));
  EXPECT_TRUE(tail_.trouble().ok());
  // It may be that not all of it is seen yet.
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(tail_.trouble()));
  EXPECT_EQ(std::string(tail_.trouble().message()),
            absl::StrCat("/run/", kFile, ": record at byte ", good.size(), ": checksum mismatch"));
  files_.Append(absl::StrCat(kFile, ".1"), ScalarRecord("loss", 2, 1.7e9, 1));
  EXPECT_THAT(Poll(), ElementsAre("loss 2 1"));
  EXPECT_FALSE(tail_.trouble().ok());
}

TEST_F(EventTailTest, ARecordThatIsSeenCompleteLaterIsRead) {
  const std::string record = ScalarRecord("loss", 1, 1.7e9, 0.5f);
  files_.Write(kFile, std::string(record.size(), '\0'));
  EXPECT_THAT(Poll(), IsEmpty());
  files_.Write(kFile, record);
  EXPECT_THAT(Poll(), ElementsAre("loss 1 0.5"));
  EXPECT_TRUE(tail_.trouble().ok());
}

TEST_F(EventTailTest, RecordsThatAreNoEventsAreLeftOut) {
  files_.Append(kFile, EncodeTfRecord("no event") + EncodeTfRecord("") +
                           ScalarRecord("loss", 1, 1.7e9, 0.5f));
  EXPECT_THAT(Poll(), ElementsAre("loss 1 0.5"));
}

TEST_F(EventTailTest, ALengthThatCannotBeIsDamage) {
  // The length of a record of 2^62 bytes with a checksum that fits.
  const std::string length("\0\0\0\0\0\0\0\x40", 8);
  const std::string frame = EncodeTfRecord(length);
  files_.Append(kFile, length + frame.substr(frame.size() - 4));
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_THAT(std::string(tail_.trouble().message()), HasSubstr("record at byte 0"));
}

}  // namespace
}  // namespace keelson
