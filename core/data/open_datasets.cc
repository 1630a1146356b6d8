#include "core/data/open_datasets.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/generated_digits.h"
#include "core/data/idx_directory.h"
#include "core/data/idx_file.h"
#include "core/data/image_dataset.h"

namespace keelson {
namespace {

// Records [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

absl::Status WrongImage(const std::string& where, const FeatureSpec& expected, const Shape& found) {
  const std::string field = expected.name == kFeatures
                                ? "model.input_shape"
                                : absl::StrCat("the feature \"", expected.name, "\"");
  return absl::InvalidArgumentError(absl::StrCat(where, ": expected images for ", field, " ",
                                                 expected.shape.ToString(), ", found ",
                                                 absl::StrJoin(found.dims(), "x")));
}

absl::Status NotOfImages(const RecordSchema& schema) {
  return absl::InvalidArgumentError(
      absl::StrCat("data: images have one feature and one label, found a model that takes ",
                   schema.features.size(), " features and ", schema.labels.size(), " labels"));
}

absl::Status CountsDiffer(const IdxPair& files, int64_t images, int64_t labels) {
  return absl::InvalidArgumentError(absl::StrCat(files.labels, ": expected ", images, " labels as ",
                                                 files.images, " has images, found ", labels));
}

absl::Status LabelOutOfRange(const std::string& path, size_t record, int label,
                             int64_t num_classes) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": label of record ", record, ": expected less than ", num_classes, ", found ", label));
}

absl::Status BadSubset(absl::string_view field, const std::string& where, int64_t begin,
                       int64_t end, int64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("data.", field, ": expected 0 <= begin < end <= ", size, ", the records of ",
                   where, ", found [", begin, ", ", end, ")"));
}

absl::Status NoRecords(absl::string_view field, const std::string& where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": expected at least one record for data.", field, ", found none"));
}

absl::Status BadRecordCount(absl::string_view field, int64_t max, int64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("data.generated.", field, ": expected 0 to ", max, ", found ", found));
}

absl::Status TooFewClasses(int64_t num_classes) {
  return absl::InvalidArgumentError(
      absl::StrCat("generated digits: expected a model with at least ", kDigitClasses,
                   " classes, found ", num_classes));
}

// The records in `all` that `subset` selects.
absl::StatusOr<Range> Select(const v1::DataConfig::Subset& subset, absl::string_view field,
                             const std::string& where, Range all) {
  const int64_t size = all.end - all.begin;
  if (size == 0) return NoRecords(field, where);
  const int64_t end = subset.end() == 0 ? size : subset.end();
  if (subset.begin() < 0 || subset.begin() >= end || end > size) {
    return BadSubset(field, where, subset.begin(), end, size);
  }
  return Range{all.begin + subset.begin(), all.begin + end};
}

absl::Status CheckLabels(const std::string& path, const std::vector<uint8_t>& labels,
                         int64_t num_classes) {
  if (num_classes == 0) return absl::OkStatus();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= num_classes) return LabelOutOfRange(path, i, labels[i], num_classes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ImageSet>> ReadPair(const IdxPair& files,
                                                         const FeatureSpec& image,
                                                         int64_t num_classes) {
  // The labels are read first: they are small, and many mistakes show there.
  ASSIGN_OR_RETURN(IdxArray labels, ReadIdxFile(files.labels, 1));
  RETURN_IF_ERROR(CheckLabels(files.labels, labels.values, num_classes));
  ASSIGN_OR_RETURN(IdxArray images, ReadIdxFile(files.images, 3));
  if (!HoldsImage(image.shape, images.dims[1], images.dims[2])) {
    return WrongImage(files.images, image, Shape({images.dims[1], images.dims[2]}));
  }
  if (images.dims[0] != labels.dims[0]) return CountsDiffer(files, images.dims[0], labels.dims[0]);
  return std::make_shared<const ImageSet>(
      ImageSet{std::move(images.values), std::move(labels.values)});
}

class IdxOpener {
 public:
  IdxOpener(const v1::DataConfig& config, const FeatureSpec& image, int64_t num_classes)
      : config_(config), image_(image), num_classes_(num_classes) {}

  absl::StatusOr<Datasets> Open() {
    ASSIGN_OR_RETURN(const IdxDirectory files, FindIdxFiles(config_.data_dir()));
    return files.eval.has_value() ? OpenTwo(files.train, *files.eval) : OpenSplit(files.train);
  }

 private:
  absl::StatusOr<Datasets> OpenTwo(const IdxPair& train, const IdxPair& eval) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const ImageSet> train_set, Read(train));
    ASSIGN_OR_RETURN(const std::shared_ptr<const ImageSet> eval_set, Read(eval));
    return MakeDatasets(train, train_set, {0, train_set->size()}, eval, eval_set,
                        {0, eval_set->size()});
  }

  absl::StatusOr<Datasets> OpenSplit(const IdxPair& files) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const ImageSet> images, Read(files));
    const int64_t boundary = images->size() * 4 / 5;
    return MakeDatasets(files, images, {0, boundary}, files, images, {boundary, images->size()});
  }

  absl::StatusOr<std::shared_ptr<const ImageSet>> Read(const IdxPair& files) {
    return ReadPair(files, image_, num_classes_);
  }

  absl::StatusOr<Datasets> MakeDatasets(const IdxPair& train,
                                        const std::shared_ptr<const ImageSet>& train_set,
                                        Range train_all, const IdxPair& eval,
                                        const std::shared_ptr<const ImageSet>& eval_set,
                                        Range eval_all) {
    ASSIGN_OR_RETURN(const Range train_range,
                     Select(config_.train_subset(), "train_subset", train.images, train_all));
    ASSIGN_OR_RETURN(const Range eval_range,
                     Select(config_.eval_subset(), "eval_subset", eval.images, eval_all));
    return Datasets{NewImageDataset(train_set, image_.shape, train_range.begin, train_range.end),
                    NewImageDataset(eval_set, image_.shape, eval_range.begin, eval_range.end)};
  }

  const v1::DataConfig& config_;
  const FeatureSpec& image_;
  const int64_t num_classes_;
};

absl::StatusOr<int64_t> RecordCount(absl::string_view field, int64_t configured,
                                    int64_t default_count) {
  constexpr int64_t kMax = 10'000'000;
  if (configured < 0 || configured > kMax) return BadRecordCount(field, kMax, configured);
  return configured == 0 ? default_count : configured;
}

absl::StatusOr<Datasets> OpenGenerated(const v1::DataConfig& config, const FeatureSpec& image,
                                       int64_t num_classes, uint64_t seed) {
  const std::string where = "generated digits";
  if (!HoldsImage(image.shape, kDigitSide, kDigitSide)) {
    return WrongImage(where, image, Shape({kDigitSide, kDigitSide}));
  }
  if (num_classes != 0 && num_classes < kDigitClasses) return TooFewClasses(num_classes);
  const v1::DataConfig::GeneratedDigits& counts = config.generated();
  ASSIGN_OR_RETURN(const int64_t train_count,
                   RecordCount("train_records", counts.train_records(), 20'000));
  ASSIGN_OR_RETURN(const int64_t eval_count,
                   RecordCount("eval_records", counts.eval_records(), 4'000));
  ASSIGN_OR_RETURN(const Range train,
                   Select(config.train_subset(), "train_subset", where, {0, train_count}));
  ASSIGN_OR_RETURN(const Range eval,
                   Select(config.eval_subset(), "eval_subset", where, {0, eval_count}));
  return Datasets{NewGeneratedDigits(seed, DigitSplit::kTrain, train.begin, train.end, image.shape),
                  NewGeneratedDigits(seed, DigitSplit::kEval, eval.begin, eval.end, image.shape)};
}

}  // namespace

absl::StatusOr<Datasets> OpenDatasets(const v1::DataConfig& config, const RecordSchema& schema,
                                      uint64_t seed) {
  const FeatureSpec* const image = schema.only_feature();
  if (image == nullptr || schema.labels.size() != 1) return NotOfImages(schema);
  const int64_t num_classes = schema.labels.front().num_classes;
  if (config.data_dir().empty()) return OpenGenerated(config, *image, num_classes, seed);
  return IdxOpener(config, *image, num_classes).Open();
}

}  // namespace keelson
