#include "core/data/image_dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {
namespace {

class StoredImages : public ImageDataset {
 public:
  StoredImages(std::shared_ptr<const ImageSet> images, const Shape& example_shape, int64_t begin,
               int64_t end)
      : ImageDataset(example_shape, end - begin),
        images_(std::move(images)),
        image_bytes_(example_shape.num_elements()),
        begin_(begin) {}

 private:
  const uint8_t* Pixels(int64_t record) const override {
    return images_->pixels.data() + (begin_ + record) * image_bytes_;
  }
  int Label(int64_t record) const override { return images_->labels[begin_ + record]; }

  const std::shared_ptr<const ImageSet> images_;
  const int64_t image_bytes_;
  const int64_t begin_;
};

void ToFeatures(const uint8_t* pixels, int64_t count, float* features) {
  for (int64_t i = 0; i < count; ++i) features[i] = static_cast<float>(pixels[i]) / 255.0f;
}

}  // namespace

absl::Status ImageDataset::Read(absl::Span<const int64_t> records, Batch* batch) const {
  const int64_t examples = static_cast<int64_t>(records.size());
  const int64_t elements = example_shape_.num_elements();
  batch->features.resize(1);
  batch->labels.resize(1);
  Tensor& features = batch->features.front().numbers;
  Tensor& labels = batch->labels.front();
  Resize(examples, example_shape_, &features);
  Resize(examples, Shape(), &labels);
  for (int64_t i = 0; i < examples; ++i) {
    const int64_t record = records[i];
    if (record < 0 || record >= num_records_) return NoRecord(record, num_records_);
    ToFeatures(Pixels(record), elements, features.data() + i * elements);
    labels.data()[i] = static_cast<float>(Label(record));
  }
  return absl::OkStatus();
}

DrawnImages::DrawnImages(const Shape& example_shape, int64_t num_records)
    : ImageDataset(example_shape, num_records),
      image_bytes_(example_shape.num_elements()),
      drawn_(num_records),
      pixels_(num_records * image_bytes_) {}

const uint8_t* DrawnImages::Pixels(int64_t record) const {
  uint8_t* const pixels = pixels_.data() + record * image_bytes_;
  std::call_once(drawn_[record], [&] {
    Draw(record, {pixels, static_cast<size_t>(image_bytes_)});
  });
  return pixels;
}

std::unique_ptr<Dataset> NewImageDataset(std::shared_ptr<const ImageSet> images,
                                         const Shape& example_shape, int64_t begin, int64_t end) {
  return std::make_unique<StoredImages>(std::move(images), example_shape, begin, end);
}

absl::StatusOr<ImageSchema> ImageSchemaOf(const RecordSchema& schema) {
  const FeatureSpec* const image = schema.only_numbers();
  if (image == nullptr || schema.labels.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("data: images have one feature and one label, found a model that takes ",
                     schema.FeaturesText(), " and ", schema.labels.size(), " labels"));
  }
  return ImageSchema{*image, schema.labels.front().num_classes};
}

absl::Status WrongImage(const std::string& where, const FeatureSpec& expected, const Shape& found) {
  const std::string field = expected.name == kFeatures
                                ? "model.input_shape"
                                : absl::StrCat("the feature \"", expected.name, "\"");
  return absl::InvalidArgumentError(absl::StrCat(where, ": expected images for ", field, " ",
                                                 expected.shape.ToString(), ", found ",
                                                 absl::StrJoin(found.dims(), "x")));
}

bool HoldsImage(const Shape& example_shape, int64_t rows, int64_t columns) {
  return example_shape == Shape({rows, columns, 1}) || example_shape == Shape({rows, columns}) ||
         example_shape == Shape({rows * columns});
}

}  // namespace keelson
