#include "core/data/image_dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"

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
    if (record < 0 || record >= num_records_) {
      return absl::OutOfRangeError(
          absl::StrCat("record ", record, ": expected one in [0, ", num_records_, ")"));
    }
    ToFeatures(Pixels(record), elements, features.data() + i * elements);
    labels.data()[i] = static_cast<float>(Label(record));
  }
  return absl::OkStatus();
}

std::unique_ptr<Dataset> NewImageDataset(std::shared_ptr<const ImageSet> images,
                                         const Shape& example_shape, int64_t begin, int64_t end) {
  return std::make_unique<StoredImages>(std::move(images), example_shape, begin, end);
}

bool HoldsImage(const Shape& example_shape, int64_t rows, int64_t columns) {
  return example_shape == Shape({rows, columns, 1}) || example_shape == Shape({rows, columns}) ||
         example_shape == Shape({rows * columns});
}

}  // namespace keelson
