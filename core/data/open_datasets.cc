#include "core/data/open_datasets.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/data/columns/data_source.h"
#include "core/data/idx_directory.h"
#include "core/data/idx_file.h"
#include "core/data/image_dataset.h"
#include "core/data/open_generated.h"
#include "core/data/open_record_files.h"
#include "core/data/record_selection.h"

namespace keelson {
namespace {

absl::Status CountsDiffer(const IdxPair& files, int64_t images, int64_t labels) {
  return absl::InvalidArgumentError(absl::StrCat(files.labels, ": expected ", images, " labels as ",
                                                 files.images, " has images, found ", labels));
}

absl::Status LabelOutOfRange(const std::string& path, size_t record, int label,
                             int64_t num_classes) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": label of record ", record, ": expected less than ", num_classes, ", found ", label));
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
                                        RecordSelection train_all, const IdxPair& eval,
                                        const std::shared_ptr<const ImageSet>& eval_set,
                                        RecordSelection eval_all) {
    ASSIGN_OR_RETURN(
        const RecordSelection train_range,
        SelectRecords(config_.train_subset(), "train_subset", train.images, train_all));
    ASSIGN_OR_RETURN(const RecordSelection eval_range,
                     SelectRecords(config_.eval_subset(), "eval_subset", eval.images, eval_all));
    return Datasets{NewImageDataset(train_set, image_.shape, train_range.begin, train_range.end),
                    NewImageDataset(eval_set, image_.shape, eval_range.begin, eval_range.end)};
  }

  const v1::DataConfig& config_;
  const FeatureSpec& image_;
  const int64_t num_classes_;
};

}  // namespace

absl::StatusOr<Datasets> OpenDatasets(const v1::DataConfig& config, const RecordSchema& schema,
                                      uint64_t seed) {
  if (config.has_external()) {
    return absl::InvalidArgumentError(
        "data.external: expected records that this program can read, found those of a script");
  }
  if (HasNamedFiles(config)) return OpenRecordFiles(config, schema);
  if (config.data_dir().empty()) return OpenGenerated(config, schema, seed);
  ASSIGN_OR_RETURN(const ImageSchema images, ImageSchemaOf(schema));
  return IdxOpener(config, images.image, images.num_classes).Open();
}

}  // namespace keelson
