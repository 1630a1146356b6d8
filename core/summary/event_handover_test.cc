#include "core/summary/event_handover.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kDirectory[] = "/model/gradients";

class EventHandoverTest : public testing::Test {
 protected:
  void HandOver(int64_t step, double wall_time = 0) {
    v1::Event event;
    event.set_step(step);
    event.set_wall_time(wall_time);
    event.mutable_summary()->add_value()->set_tag("t");
    ASSERT_EQ(HandOverEvent(event, kDirectory, &files_), absl::OkStatus());
  }
  absl::Status Take() { return TakeEvents(kDirectory, &files_, writer_.get()); }
  // Of the writer's events.
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    const auto records = ReadTfRecords(writer_->path(), &files_);
    for (const std::string& record : *records) {
      EXPECT_TRUE(last_.ParseFromString(record));
      if (last_.has_summary()) steps.push_back(last_.step());
    }
    return steps;
  }

  ManualClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<EventWriter> writer_ = *EventWriter::Create("/model", &clock_, &files_);
  v1::Event last_;
};

TEST_F(EventHandoverTest, EventsAreMovedInTheOrderOfTheirSteps) {
  HandOver(100);
  HandOver(20, 7.5);
  HandOver(3);
  ASSERT_EQ(Take(), absl::OkStatus());
  EXPECT_THAT(Steps(), ElementsAre(3, 20, 100));
  EXPECT_THAT(*files_.List(kDirectory), IsEmpty());
  HandOver(120, 8.5);
  ASSERT_EQ(Take(), absl::OkStatus());
  EXPECT_THAT(Steps(), ElementsAre(3, 20, 100, 120));
  EXPECT_EQ(last_.wall_time(), 8.5);
}

TEST_F(EventHandoverTest, NothingIsThere) {
  EXPECT_EQ(Take(), absl::OkStatus());
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(EventHandoverTest, WhatIsNoEventIsRemovedAndOtherFilesStay) {
  HandOver(5);
  ASSERT_EQ(WriteFileAtomically(std::string(kDirectory) + "/1.event", "\xff", &files_),
            absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically(std::string(kDirectory) + "/notes", "x", &files_),
            absl::OkStatus());
  ASSERT_EQ(Take(), absl::OkStatus());
  EXPECT_THAT(Steps(), ElementsAre(5));
  EXPECT_THAT(*files_.List(kDirectory), ElementsAre("notes"));
}

TEST_F(EventHandoverTest, WhatCannotBeWrittenIsTakenLater) {
  HandOver(5);
  files_.SetCapacity(files_.used_bytes());
  EXPECT_FALSE(Take().ok());
  files_.SetCapacity(1 << 20);
  EXPECT_EQ(Take(), absl::OkStatus());
  EXPECT_THAT(Steps(), ElementsAre(5));
}

}  // namespace
}  // namespace keelson
