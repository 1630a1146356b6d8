// Greyscale images with a class number each, kept as bytes: one feature and one label.
#ifndef KEELSON_CORE_DATA_IMAGE_DATASET_H_
#define KEELSON_CORE_DATA_IMAGE_DATASET_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"
#include "core/tensor/shape.h"

namespace keelson {

// Converts bytes to features on Read: 0 to 0.0, 255 to 1.0. The derived class provides the bytes;
// its methods must be thread-safe.
class ImageDataset : public Dataset {
 public:
  // `example_shape` holds the pixels of one image, in row-major order.
  ImageDataset(Shape example_shape, int64_t num_records)
      : example_shape_(std::move(example_shape)), num_records_(num_records) {}

  int64_t num_records() const override { return num_records_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;

 private:
  // The pixels of a record in [0, num_records()).
  virtual const uint8_t* Pixels(int64_t record) const = 0;
  virtual int Label(int64_t record) const = 0;

  const Shape example_shape_;
  const int64_t num_records_;
};

// Images that are drawn when they are first read, and kept.
class DrawnImages : public ImageDataset {
 public:
  DrawnImages(const Shape& example_shape, int64_t num_records);

 private:
  const uint8_t* Pixels(int64_t record) const final;
  // Writes the example_shape.num_elements() bytes of a record. Called once for each record that is
  // read, by any thread.
  virtual void Draw(int64_t record, absl::Span<uint8_t> pixels) const = 0;

  const int64_t image_bytes_;
  mutable std::vector<std::once_flag> drawn_;  // one for each record
  mutable std::vector<uint8_t> pixels_;        // a record's are constant once it is drawn
};

// Images in memory.
struct ImageSet {
  std::vector<uint8_t> pixels;  // image after image
  std::vector<uint8_t> labels;  // one for each image

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

// Records [begin, end) of `images`, which several datasets may share.
std::unique_ptr<Dataset> NewImageDataset(std::shared_ptr<const ImageSet> images,
                                         const Shape& example_shape, int64_t begin, int64_t end);

// What a model takes whose records are images.
struct ImageSchema {
  FeatureSpec image;
  int64_t num_classes = 0;  // 0: labels are any numbers
};

// INVALID_ARGUMENT: the model takes several features or labels, or ids.
absl::StatusOr<ImageSchema> ImageSchemaOf(const RecordSchema& schema);

// INVALID_ARGUMENT: the images of `where` are not what the model's feature holds.
absl::Status WrongImage(const std::string& where, const FeatureSpec& expected, const Shape& found);

// Whether `example_shape` is [rows, columns, 1], [rows, columns] or [rows * columns].
bool HoldsImage(const Shape& example_shape, int64_t rows, int64_t columns);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_IMAGE_DATASET_H_
