#include "core/data/image_dataset.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Dataset> ThreeImages(const Shape& shape) {
  auto images = std::make_shared<ImageSet>();
  images->pixels = {0, 51, 102, 153, 204, 255};
  images->labels = {7, 8, 9};
  return NewImageDataset(std::move(images), shape, 0, 3);
}

TEST(ImageDatasetTest, ReadsRecordsInTheOrderAsked) {
  const auto dataset = ThreeImages(Shape({2, 1}));
  Batch batch;
  ASSERT_TRUE(dataset->Read({2, 0, 2}, &batch).ok());
  EXPECT_EQ(batch.features[0].numbers.shape(), Shape({3, 2, 1}));
  EXPECT_EQ(batch.labels[0].shape(), Shape({3}));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(9, 7, 9));
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(0.8f, 1.0f, 0.0f, 0.2f, 0.8f, 1.0f));
}

TEST(ImageDatasetTest, KeepsTensorsOfTheRightShapeAndReplacesOthers) {
  const auto dataset = ThreeImages(Shape({2}));
  Batch batch;
  ASSERT_TRUE(dataset->Read({0, 1}, &batch).ok());
  const float* const features = batch.features[0].numbers.data();
  ASSERT_TRUE(dataset->Read({1, 2}, &batch).ok());
  EXPECT_EQ(batch.features[0].numbers.data(), features);
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(8, 9));
  ASSERT_TRUE(dataset->Read({1}, &batch).ok());
  EXPECT_EQ(batch.features[0].numbers.shape(), Shape({1, 2}));
  EXPECT_EQ(batch.size(), 1);
}

TEST(ImageDatasetTest, RecordOutOfRange) {
  const auto dataset = ThreeImages(Shape({2}));
  Batch batch;
  for (const int64_t record : {-1, 3}) {
    const absl::Status status = dataset->Read({0, record}, &batch);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected one in [0, 3)"));
  }
}

TEST(ImageDatasetTest, ShapesThatHoldAnImage) {
  EXPECT_TRUE(HoldsImage(Shape({28, 20, 1}), 28, 20));
  EXPECT_TRUE(HoldsImage(Shape({28, 20}), 28, 20));
  EXPECT_TRUE(HoldsImage(Shape({560}), 28, 20));
  EXPECT_FALSE(HoldsImage(Shape({20, 28}), 28, 20));
  EXPECT_FALSE(HoldsImage(Shape({28, 20, 3}), 28, 20));
  EXPECT_FALSE(HoldsImage(Shape({1, 560}), 28, 20));
}

}  // namespace
}  // namespace keelson
