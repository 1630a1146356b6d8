#include "core/data/open_generated.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/generated_clicks.h"
#include "core/data/generated_ctr.h"
#include "core/data/generated_digits.h"
#include "core/data/generated_pairs.h"
#include "core/data/generated_regression.h"
#include "core/data/generated_textures.h"
#include "core/data/generated_visits.h"
#include "core/data/image_dataset.h"
#include "core/data/record_selection.h"

namespace keelson {
namespace {

struct Ranges {
  RecordSelection train;
  RecordSelection eval;
};

// Images are kept once they are drawn; records of ids are not.
constexpr int64_t kMostRecords = 10'000'000;
constexpr int64_t kMostIdRecords = 10'000'000'000;

absl::StatusOr<int64_t> RecordCount(const std::string& path, int64_t configured,
                                    int64_t default_count, int64_t most) {
  if (configured < 0 || configured > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected 0 to ", most, ", found ", configured));
  }
  return configured == 0 ? default_count : configured;
}

// Selects from the records of data.`field`, whose numbers are `counts`.
template <typename Generated>
absl::StatusOr<Ranges> RangesOf(const v1::DataConfig& config, const std::string& field,
                                const Generated& counts, const std::string& where,
                                int64_t most = kMostRecords) {
  const std::string path = absl::StrCat("data.", field);
  ASSIGN_OR_RETURN(const int64_t train_count,
                   RecordCount(path + ".train_records", counts.train_records(), 20'000, most));
  ASSIGN_OR_RETURN(const int64_t eval_count,
                   RecordCount(path + ".eval_records", counts.eval_records(), 4'000, most));
  Ranges ranges;
  ASSIGN_OR_RETURN(ranges.train,
                   SelectRecords(config.train_subset(), "train_subset", where, {0, train_count}));
  ASSIGN_OR_RETURN(ranges.eval,
                   SelectRecords(config.eval_subset(), "eval_subset", where, {0, eval_count}));
  return ranges;
}

absl::Status TooFewClasses(const std::string& where, int64_t expected, int64_t found) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": expected a model with at least ",
                                                 expected, " classes, found ", found));
}

absl::StatusOr<Datasets> OpenDigits(const v1::DataConfig& config, const RecordSchema& schema,
                                    uint64_t seed) {
  const std::string where = "generated digits";
  ASSIGN_OR_RETURN(const ImageSchema images, ImageSchemaOf(schema));
  const Shape& shape = images.image.shape;
  if (!HoldsImage(shape, kDigitSide, kDigitSide)) {
    return WrongImage(where, images.image, Shape({kDigitSide, kDigitSide}));
  }
  if (images.num_classes != 0 && images.num_classes < kDigitClasses) {
    return TooFewClasses(where, kDigitClasses, images.num_classes);
  }
  ASSIGN_OR_RETURN(const Ranges r, RangesOf(config, "generated", config.generated(), where));
  return Datasets{NewGeneratedDigits(seed, DataSplit::kTrain, r.train.begin, r.train.end, shape),
                  NewGeneratedDigits(seed, DataSplit::kEval, r.eval.begin, r.eval.end, shape)};
}

absl::StatusOr<Datasets> OpenTextures(const v1::DataConfig& config, const RecordSchema& schema,
                                      uint64_t seed) {
  const std::string where = "generated textures";
  const Shape shape({kTextureSide, kTextureSide, kTextureChannels});
  ASSIGN_OR_RETURN(const ImageSchema images, ImageSchemaOf(schema));
  if (images.image.shape != shape) return WrongImage(where, images.image, shape);
  if (images.num_classes != 0 && images.num_classes < kTextureClasses) {
    return TooFewClasses(where, kTextureClasses, images.num_classes);
  }
  ASSIGN_OR_RETURN(const Ranges r,
                   RangesOf(config, "generated_textures", config.generated_textures(), where));
  return Datasets{NewGeneratedTextures(seed, DataSplit::kTrain, r.train.begin, r.train.end),
                  NewGeneratedTextures(seed, DataSplit::kEval, r.eval.begin, r.eval.end)};
}

absl::StatusOr<Datasets> OpenRegression(const v1::DataConfig& config, const RecordSchema& schema,
                                        uint64_t seed) {
  const FeatureSpec* const feature = schema.only_numbers();
  const bool fits = feature != nullptr && feature->shape == Shape({kRegressionFeatures}) &&
                    schema.labels.size() == 1 && schema.labels.front().num_classes == 0;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("generated regression: expected a model that takes one feature [",
                     kRegressionFeatures, "] and one label that is any number, found another"));
  }
  ASSIGN_OR_RETURN(const Ranges r, RangesOf(config, "generated_regression",
                                            config.generated_regression(), "generated regression"));
  return Datasets{NewGeneratedRegression(seed, DataSplit::kTrain, r.train.begin, r.train.end),
                  NewGeneratedRegression(seed, DataSplit::kEval, r.eval.begin, r.eval.end)};
}

absl::StatusOr<Datasets> OpenVisits(const v1::DataConfig& config, const RecordSchema& schema,
                                    uint64_t seed) {
  ASSIGN_OR_RETURN(const VisitColumns columns, VisitColumnsOf(schema));
  ASSIGN_OR_RETURN(const Ranges r, RangesOf(config, "generated_visits", config.generated_visits(),
                                            "generated visits"));
  return Datasets{NewGeneratedVisits(columns, seed, DataSplit::kTrain, r.train.begin, r.train.end),
                  NewGeneratedVisits(columns, seed, DataSplit::kEval, r.eval.begin, r.eval.end)};
}

absl::StatusOr<Datasets> OpenClicks(const v1::DataConfig& config, const RecordSchema& schema,
                                    uint64_t seed) {
  ASSIGN_OR_RETURN(const ClickColumns columns, ClickColumnsOf(schema));
  ASSIGN_OR_RETURN(const Ranges r, RangesOf(config, "generated_clicks", config.generated_clicks(),
                                            "generated clicks"));
  return Datasets{NewGeneratedClicks(columns, seed, DataSplit::kTrain, r.train.begin, r.train.end),
                  NewGeneratedClicks(columns, seed, DataSplit::kEval, r.eval.begin, r.eval.end)};
}

absl::StatusOr<Datasets> OpenCtr(const v1::DataConfig& config, const RecordSchema& schema,
                                 uint64_t seed) {
  ASSIGN_OR_RETURN(const CtrDistribution distribution, CtrDistributionOf(config.generated_ctr()));
  ASSIGN_OR_RETURN(const CtrColumns columns, CtrColumnsOf(schema, distribution.fields));
  ASSIGN_OR_RETURN(const Ranges r, RangesOf(config, "generated_ctr", config.generated_ctr(),
                                            "generated ctr", kMostIdRecords));
  const auto truth = std::make_shared<const CtrTruth>(distribution);
  return Datasets{
      NewGeneratedCtr(columns, truth, seed, DataSplit::kTrain, r.train.begin, r.train.end),
      NewGeneratedCtr(columns, truth, seed, DataSplit::kEval, r.eval.begin, r.eval.end)};
}

absl::StatusOr<Datasets> OpenPairs(const v1::DataConfig& config, const RecordSchema& schema,
                                   uint64_t seed) {
  ASSIGN_OR_RETURN(const PairDistribution distribution,
                   PairDistributionOf(config.generated_pairs()));
  ASSIGN_OR_RETURN(const PairColumns columns, PairColumnsOf(schema, distribution));
  ASSIGN_OR_RETURN(const Ranges r, RangesOf(config, "generated_pairs", config.generated_pairs(),
                                            "generated pairs", kMostIdRecords));
  const auto truth = std::make_shared<const PairTruth>(distribution);
  return Datasets{
      NewGeneratedPairs(columns, truth, seed, DataSplit::kTrain, r.train.begin, r.train.end),
      NewGeneratedPairs(columns, truth, seed, DataSplit::kEval, r.eval.begin, r.eval.end)};
}

}  // namespace

absl::StatusOr<Datasets> OpenGenerated(const v1::DataConfig& config, const RecordSchema& schema,
                                       uint64_t seed) {
  switch (config.source_case()) {
    case v1::DataConfig::kGeneratedRegression:
      return OpenRegression(config, schema, seed);
    case v1::DataConfig::kGeneratedTextures:
      return OpenTextures(config, schema, seed);
    case v1::DataConfig::kGeneratedVisits:
      return OpenVisits(config, schema, seed);
    case v1::DataConfig::kGeneratedClicks:
      return OpenClicks(config, schema, seed);
    case v1::DataConfig::kGeneratedCtr:
      return OpenCtr(config, schema, seed);
    case v1::DataConfig::kGeneratedPairs:
      return OpenPairs(config, schema, seed);
    case v1::DataConfig::kLibsvm:
    case v1::DataConfig::kLibffm:
    case v1::DataConfig::kCriteo:
    case v1::DataConfig::kCsv:
    case v1::DataConfig::kTfRecord:
    case v1::DataConfig::kNpz:
    case v1::DataConfig::kParquet:
    case v1::DataConfig::kColumnar:  // which are files
    case v1::DataConfig::kExternal:  // which OpenDatasets refuses
    case v1::DataConfig::kGenerated:
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  return OpenDigits(config, schema, seed);
}

}  // namespace keelson
