#include "worker/gradient_histograms.h"

#include <cmath>
#include <cstring>

#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kDirectory[] = "/model/gradients";

class GradientHistogramsTest : public testing::Test {
 protected:
  std::unique_ptr<GradientHistograms> Make(int64_t every) {
    VariableSpec average{"bn/moving_mean", Shape({2}), {}};
    average.average_decay = 0.9f;
    return std::make_unique<GradientHistograms>(
        GradientHistograms::Options{kDirectory, every},
        std::vector<VariableSpec>{{"dense/kernel", Shape({3}), {}}, average}, &clock_, &files_);
  }
  // Those that were handed over, in order.
  std::vector<v1::Event> Events() {
    std::vector<v1::Event> events;
    for (const std::string& name : files_.List(kDirectory).value_or(std::vector<std::string>())) {
      const auto bytes = ReadBoundedFile(JoinPath(kDirectory, name), 1 << 20, &files_);
      EXPECT_TRUE(bytes.ok()) << bytes.status();
      EXPECT_TRUE(events.emplace_back().ParseFromString(*bytes));
    }
    return events;
  }
  std::vector<int64_t> HistogramSteps() {
    std::vector<int64_t> steps;
    for (const v1::Event& event : Events()) {
      if (event.summary().value(0).has_histo()) steps.push_back(event.step());
    }
    return steps;
  }
  static void TrainStep(GradientHistograms* histograms, int64_t step) {
    histograms->BeginStep();
    if (histograms->wanted()) histograms->Add(0, {1, 2, 3});
    histograms->EndStep(step);
  }

  ManualClock clock_;
  MemoryFileSystem files_;
};

TEST_F(GradientHistogramsTest, AreOfTheTrainedVariables) {
  const auto histograms = Make(1);
  histograms->BeginStep();
  ASSERT_TRUE(histograms->wanted());
  histograms->Add(1, {5, 6});
  histograms->Add(0, {1, NAN, -2});
  histograms->EndStep(41);
  const std::vector<v1::Event> events = Events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].step(), 41);
  ASSERT_EQ(events[0].summary().value_size(), 2);
  const v1::Summary::Value& value = events[0].summary().value(0);
  EXPECT_EQ(value.tag(), "gradients/dense/kernel");
  EXPECT_EQ(value.histo().num(), 2);
  EXPECT_EQ(value.histo().min(), -2);
  EXPECT_EQ(value.histo().max(), 1);
  EXPECT_EQ(events[0].summary().value(1).tag(), "gradients/non_finite");
  EXPECT_EQ(events[0].summary().value(1).simple_value(), 1);
}

TEST_F(GradientHistogramsTest, AreWantedEverySoManySteps) {
  const auto histograms = Make(3);
  for (int64_t step = 11; step <= 17; ++step) TrainStep(histograms.get(), step);
  EXPECT_THAT(HistogramSteps(), ElementsAre(11, 14, 17));
}

// Its loss was not finite, or the chief did not want it.
TEST_F(GradientHistogramsTest, AStepThatIsNotPushedHasNone) {
  const auto histograms = Make(1);
  histograms->BeginStep();
  histograms->Add(0, {7, 7, 7});
  TrainStep(histograms.get(), 5);
  EXPECT_THAT(HistogramSteps(), ElementsAre(5));
  ASSERT_EQ(Events()[0].summary().value_size(), 2);
  EXPECT_EQ(Events()[0].summary().value(0).histo().max(), 3);
}

TEST_F(GradientHistogramsTest, WithoutStepsThereIsNoFile) {
  Make(1);
  EXPECT_FALSE(*files_.Exists(kDirectory));
}

TEST_F(GradientHistogramsTest, ComeFromWireMemory) {
  const auto histograms = Make(1);
  std::vector<uint8_t> first(12), second(12);
  const std::vector<float> gradient = {0.5f, -1, 4};
  std::memcpy(second.data(), gradient.data(), second.size());
  const WireLayout layout = WholeArrayLayout(WireFormat::kFloat32, 3);
  histograms->UseWireMemory({layout}, {{absl::MakeSpan(first)}, {absl::MakeSpan(second)}});
  histograms->BeginStep();
  histograms->AddEncoded(0, 1);
  histograms->EndStep(1);
  const v1::HistogramProto histogram = Events().at(0).summary().value(0).histo();
  EXPECT_EQ(histogram.num(), 3);
  EXPECT_EQ(histogram.min(), -1);
  EXPECT_EQ(histogram.max(), 4);
  EXPECT_EQ(histogram.sum(), 3.5);
}

TEST_F(GradientHistogramsTest, AFullDiskCostsHistogramsOnly) {
  const auto histograms = Make(1);
  files_.SetCapacity(0);
  TrainStep(histograms.get(), 1);
  TrainStep(histograms.get(), 2);
  EXPECT_THAT(HistogramSteps(), IsEmpty());
  files_.SetCapacity(1 << 20);
  TrainStep(histograms.get(), 3);
  files_.SetCapacity(files_.used_bytes());
  TrainStep(histograms.get(), 4);
  files_.SetCapacity(1 << 20);
  TrainStep(histograms.get(), 5);
  EXPECT_THAT(HistogramSteps(), ElementsAre(3, 5));
}

}  // namespace
}  // namespace keelson
