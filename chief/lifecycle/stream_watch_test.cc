#include "chief/lifecycle/stream_watch.h"

#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class StreamWatchTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(files_.CreateDirectories("/d"), absl::OkStatus());
    WorkOptions work;
    work.max_steps = kEndlessSteps;
    work.num_records = int64_t{1} << 62;
    work.stream = true;
    work.batch_size = 1;
    coordinator_.start()->StartTraining({Placement(), {"ps-0:1"}}, WorkLedger(work));
  }
  static StreamDirectory Directory(FileSystem* files) {
    v1::DataConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "data_dir: '/d' libsvm {} train_files: 'part*' eval_files: 'part-test' "
        "stream { end_file: '_END' }",
        &config));
    return StreamDirectory(config, {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 2}}},
                           files);
  }
  v1::StreamStatus status() const { return *coordinator_.reports()->GetStatus().stream; }

  MemoryFileSystem files_;
  const StreamDirectory directory_ = Directory(&files_);
  StreamWatch watch_{&directory_, coordinator_.stream(), &clock_};
};

TEST_F(StreamWatchTest, FilesComeInTheOrderOfTheirNamesUntilTheEnd) {
  ASSERT_EQ(watch_.Look(), absl::OkStatus());
  EXPECT_EQ(status().known_records(), 0);
  files_.SetContent("/d/part-2", "1 1:1\n0 2:1\n");
  files_.SetContent("/d/part-1", "1 1:1\n");
  files_.SetContent("/d/part-test", "1 1:1\n");
  files_.SetContent("/d/other", "1 1:1\n");
  ASSERT_EQ(watch_.Look(), absl::OkStatus());
  ASSERT_EQ(watch_.Look(), absl::OkStatus());
  EXPECT_EQ(status().known_records(), 3);
  EXPECT_EQ(coordinator_.stream()->newest(), "part-2");
  files_.SetContent("/d/part-3", "1 1:1\n");
  files_.SetContent("/d/_END", "");
  ASSERT_EQ(watch_.Look(), absl::OkStatus());
  EXPECT_EQ(status().known_records(), 4);
  EXPECT_TRUE(status().ended());
}

TEST_F(StreamWatchTest, AFileThatIsNoneOfTheFormatIsAnError) {
  files_.SetContent("/d/part-1", "none\n");
  StopSignal end;
  watch_.Run(end);
  EXPECT_TRUE(absl::IsInvalidArgument(watch_.status()));
  EXPECT_THAT(std::string(watch_.status().message()), HasSubstr("/d/part-1:1:1: expected"));
}

TEST_F(StreamWatchTest, ADirectoryThatIsNotThereIsLookedAtAgain) {
  ASSERT_EQ(files_.Remove("/d"), absl::OkStatus());
  StopSignal end;
  std::thread run([&] { watch_.Run(end); });
  files_.SetContent("/d/part-1", "1 1:1\n");
  while (status().known_records() == 0) std::this_thread::yield();
  end.Raise();
  run.join();
  EXPECT_EQ(watch_.status(), absl::OkStatus());
}

TEST_F(StreamWatchTest, AFileWithAHeaderAloneIsPassedBy) {
  v1::DataConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "data_dir: '/d' csv {} train_files: '*.csv' stream { end_file: '_END' }", &config));
  const StreamDirectory directory(config, {{{"x", Shape()}}, {{"y", 0}}}, &files_);
  StreamWatch watch(&directory, coordinator_.stream(), &clock_);
  files_.SetContent("/d/1.csv", "x,y\n");
  ASSERT_EQ(watch.Look(), absl::OkStatus());
  EXPECT_EQ(status().known_records(), 0);
  files_.SetContent("/d/2.csv", "x,y\n1,2\n");
  ASSERT_EQ(watch.Look(), absl::OkStatus());
  EXPECT_EQ(status().known_records(), 1);
  EXPECT_EQ(coordinator_.stream()->newest(), "2.csv");
}

TEST_F(StreamWatchTest, WithoutADirectoryThereIsNothingToDo) {
  StreamWatch none(nullptr, coordinator_.stream(), &clock_);
  none.Run(StopSignal());
  EXPECT_EQ(none.status(), absl::OkStatus());
}

}  // namespace
}  // namespace keelson
