#include "core/data/generated_pairs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kMostUsers = int64_t{1} << 20;
constexpr int64_t kMostItems = int64_t{1} << 16;
constexpr int64_t kMostNumbers = 64;

// [count, numbers], row by row.
std::vector<float> DrawVectors(absl::string_view of, uint32_t count, size_t numbers) {
  std::vector<float> vectors;
  vectors.reserve(count * numbers);
  for (uint32_t i = 0; i < count; ++i) {
    RecordRandom random(of, 0, DataSplit::kTrain, i);
    for (size_t k = 0; k < numbers; ++k) vectors.push_back(random.Normal());
  }
  return vectors;
}

// Numbers become probabilities in proportion to their exponentials.
void Softmax(absl::Span<double> numbers) {
  const double greatest = *std::max_element(numbers.begin(), numbers.end());
  double sum = 0;
  for (double& number : numbers) sum += number = std::exp(number - greatest);
  for (double& number : numbers) number /= sum;
}

class GeneratedPairs : public Dataset {
 public:
  GeneratedPairs(PairColumns columns, std::shared_ptr<const PairTruth> truth, uint64_t seed,
                 DataSplit split, int64_t begin, int64_t end)
      : columns_(std::move(columns)),
        truth_(std::move(truth)),
        seed_(seed),
        split_(split),
        begin_(begin),
        num_records_(end - begin) {}

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto n = static_cast<int64_t>(records.size());
    batch->features.resize(columns_.features.size());
    for (FeatureValues& feature : batch->features) feature.ids.resize(n);
    batch->labels.resize(columns_.labels);
    for (Tensor& labels : batch->labels) Resize(n, Shape(), &labels);
    for (int64_t i = 0; i < n; ++i) {
      if (records[i] < 0 || records[i] >= num_records_) return NoRecord(records[i], num_records_);
      Draw(records[i], i, batch);
    }
    return absl::OkStatus();
  }

 private:
  void Draw(int64_t record, int64_t row, Batch* batch) const {
    RecordRandom random("generated pairs", seed_, split_, begin_ + record);
    const uint64_t users = truth_->distribution().users;
    const auto user = static_cast<uint32_t>(random.Bits() * users >> 32);
    const uint32_t item = truth_->ItemAt(user, random.Bits());
    for (size_t k = 0; k < columns_.features.size(); ++k) {
      const bool is_user = columns_.features[k] == PairColumns::Feature::kUser;
      batch->features[k].ids[row] = is_user ? user : item;
    }
    for (Tensor& labels : batch->labels) labels.data()[row] = truth_->LogProbabilityOf(item);
  }

  const PairColumns columns_;
  const std::shared_ptr<const PairTruth> truth_;
  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
  const int64_t num_records_;
};

absl::Status NotPairs(const std::string& expected, const std::string& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("generated pairs: expected ", expected, ", found ", found));
}

absl::StatusOr<PairColumns::Feature> PairFeatureOf(const FeatureSpec& feature,
                                                   const PairDistribution& distribution) {
  const bool user = feature.name == "user";
  if ((!user && feature.name != "item") || feature.kind != FeatureKind::kId) {
    return NotPairs("the features \"user\" and \"item\", ids",
                    absl::StrCat("\"", feature.name, "\", ", feature.FormText()));
  }
  const uint32_t ids = user ? distribution.users : distribution.items;
  if (feature.num_ids != 0 && feature.num_ids < ids) {
    return NotPairs(absl::StrCat("embeddings of ", ids, " rows or more for \"", feature.name, "\""),
                    absl::StrCat(feature.num_ids));
  }
  return user ? PairColumns::Feature::kUser : PairColumns::Feature::kItem;
}

}  // namespace

absl::StatusOr<PairDistribution> PairDistributionOf(const v1::DataConfig::GeneratedPairs& config) {
  const auto error = [](absl::string_view field, absl::string_view expected, auto found) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.generated_pairs.", field, ": expected ", expected, ", found ", found));
  };
  PairDistribution result;
  if (config.users() != 0) {
    if (config.users() < 2 || config.users() > kMostUsers) {
      return error("users", absl::StrCat("2 to ", kMostUsers), config.users());
    }
    result.users = static_cast<uint32_t>(config.users());
  }
  if (config.items() != 0) {
    const int64_t most = std::min(kMostItems, kMostPairs / result.users);
    if (config.items() < 2 || config.items() > most) {
      return error("items", absl::StrCat("2 to ", most, " with ", result.users, " users"),
                   config.items());
    }
    result.items = static_cast<uint32_t>(config.items());
  }
  if (int64_t{result.users} * result.items > kMostPairs) {
    return error("users",
                 absl::StrCat("2 to ", kMostPairs / result.items, " with ", result.items, " items"),
                 result.users);
  }
  if (config.numbers() != 0) {
    if (config.numbers() < 1 || config.numbers() > kMostNumbers) {
      return error("numbers", absl::StrCat("1 to ", kMostNumbers), config.numbers());
    }
    result.numbers = static_cast<size_t>(config.numbers());
  }
  // Beyond these bounds every choice is certain.
  if (config.has_scale()) result.scale = config.scale();
  if (config.has_exponent()) result.exponent = config.exponent();
  const auto within = [](double number) { return number >= 0 && number <= 10; };
  if (!within(result.scale)) return error("scale", "0 to 10", result.scale);
  if (!within(result.exponent)) return error("exponent", "0 to 10", result.exponent);
  return result;
}

PairTruth::PairTruth(const PairDistribution& distribution) : distribution_(distribution) {
  const auto [num_users, num_items, numbers, scale, exponent] = distribution_;
  const std::vector<float> users = DrawVectors("generated pairs: users", num_users, numbers);
  const std::vector<float> items = DrawVectors("generated pairs: items", num_items, numbers);
  std::vector<double> popularity;
  for (uint32_t i = 0; i < num_items; ++i) popularity.push_back(-exponent * std::log(i + 1.0));
  std::vector<double> sums(num_items), of_user(num_items);
  below_.reserve(size_t{num_users} * num_items);
  for (uint32_t user = 0; user < num_users; ++user) {
    const float* const u = &users[user * numbers];
    for (uint32_t item = 0; item < num_items; ++item) {
      const float* const v = &items[item * numbers];
      float product = 0;
      for (size_t k = 0; k < numbers; ++k) product += u[k] * v[k];
      of_user[item] = popularity[item] + scale * product;
    }
    Softmax(absl::MakeSpan(of_user));
    double below = 0;
    for (uint32_t item = 0; item < num_items; ++item) {
      below_.push_back(static_cast<uint32_t>(std::min(0x1p32 * below, 0x1p32 - 1)));
      below += of_user[item];
      sums[item] += of_user[item];
    }
  }
  for (const double sum : sums) {
    log_probabilities_.push_back(static_cast<float>(std::log(sum / num_users)));
  }
}

uint32_t PairTruth::ItemAt(uint32_t user, uint32_t uniform) const {
  const absl::Span<const uint32_t> places = PlacesOf(user);
  return static_cast<uint32_t>(std::upper_bound(places.begin(), places.end(), uniform) -
                               places.begin() - 1);
}

double PairTruth::ProbabilityOf(uint32_t user, uint32_t item) const {
  const absl::Span<const uint32_t> places = PlacesOf(user);
  const double end = item + 1 < places.size() ? places[item + 1] : 0x1p32;
  return (end - places[item]) / 0x1p32;
}

BestRetrieval PairTruth::BestAt(int64_t k) const {
  BestRetrieval sums;
  const auto ranks = static_cast<uint32_t>(std::min<int64_t>(k, distribution_.items));
  std::vector<double> of_user(distribution_.items);
  for (uint32_t user = 0; user < distribution_.users; ++user) {
    for (uint32_t item = 0; item < distribution_.items; ++item) {
      of_user[item] = ProbabilityOf(user, item);
    }
    std::partial_sort(of_user.begin(), of_user.begin() + ranks, of_user.end(), std::greater<>());
    for (uint32_t i = 0; i < ranks; ++i) {
      sums.recall += of_user[i];
      sums.ndcg += of_user[i] / std::log2(i + 2.0);
    }
  }
  return {sums.recall / distribution_.users, sums.ndcg / distribution_.users};
}

absl::StatusOr<PairColumns> PairColumnsOf(const RecordSchema& schema,
                                          const PairDistribution& distribution) {
  PairColumns columns;
  for (const FeatureSpec& feature : schema.features) {
    ASSIGN_OR_RETURN(const PairColumns::Feature known, PairFeatureOf(feature, distribution));
    columns.features.push_back(known);
  }
  for (const LabelSpec& label : schema.labels) {
    const bool fits =
        label.name == "item_log_probability" && label.num_classes == 0 && !label.weighs;
    if (fits) continue;
    return NotPairs("the label \"item_log_probability\", a number",
                    absl::StrCat("\"", label.name, "\" of ", label.num_classes, " classes",
                                 label.weighs ? " as weights" : ""));
  }
  columns.labels = schema.labels.size();
  return columns;
}

std::unique_ptr<Dataset> NewGeneratedPairs(PairColumns columns,
                                           std::shared_ptr<const PairTruth> truth, uint64_t seed,
                                           DataSplit split, int64_t begin, int64_t end) {
  return std::make_unique<GeneratedPairs>(std::move(columns), std::move(truth), seed, split, begin,
                                          end);
}

}  // namespace keelson
