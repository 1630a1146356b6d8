#include "core/data/generated_visits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

using Numbers = std::array<float, kVisitNumbers>;

struct Visit {
  Numbers user;
  Numbers item;
  float clicked = 0;
  float spent = 0;
};

Visit Draw(RecordRandom random) {
  constexpr int kMatter = 4;
  Visit visit;
  for (float& number : visit.user) number = random.Uniform(-1, 1);
  for (float& number : visit.item) number = random.Uniform(-1, 1);
  float affinity = 0;
  for (int i = 0; i < kMatter; ++i) affinity += visit.user[i] * visit.item[i];
  const float probability = 1 / (1 + std::exp(0.5f - 3 * affinity));
  visit.clicked = random.Uniform(0, 1) < probability ? 1.0f : 0.0f;
  visit.spent = 2 + visit.user[0] + 1.5f * affinity + kVisitNoise * random.Normal();
  return visit;
}

absl::Status Unknown(const std::string& expected, const std::string& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("generated visits: expected ", expected, ", found ", found));
}

class GeneratedVisits : public Dataset {
 public:
  GeneratedVisits(VisitColumns columns, uint64_t seed, DataSplit split, int64_t begin, int64_t end)
      : columns_(std::move(columns)),
        seed_(seed),
        split_(split),
        begin_(begin),
        num_records_(end - begin) {}

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto n = static_cast<int64_t>(records.size());
    batch->features.resize(columns_.features.size());
    batch->labels.resize(columns_.labels.size());
    for (FeatureValues& feature : batch->features) {
      Resize(n, Shape({kVisitNumbers}), &feature.numbers);
    }
    for (Tensor& labels : batch->labels) Resize(n, Shape(), &labels);
    for (int64_t i = 0; i < n; ++i) {
      if (records[i] < 0 || records[i] >= num_records_) return NoRecord(records[i], num_records_);
      Copy(Draw({"generated visits", seed_, split_, begin_ + records[i]}), i, batch);
    }
    return absl::OkStatus();
  }

 private:
  void Copy(const Visit& visit, int64_t row, Batch* batch) const {
    for (size_t k = 0; k < columns_.features.size(); ++k) {
      const bool user = columns_.features[k] == VisitColumns::Feature::kUser;
      const Numbers& numbers = user ? visit.user : visit.item;
      std::copy(numbers.begin(), numbers.end(),
                batch->features[k].numbers.data() + row * kVisitNumbers);
    }
    for (size_t k = 0; k < columns_.labels.size(); ++k) {
      const bool clicked = columns_.labels[k] == VisitColumns::Label::kClicked;
      batch->labels[k].data()[row] = clicked ? visit.clicked : visit.spent;
    }
  }

  const VisitColumns columns_;
  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
  const int64_t num_records_;
};

}  // namespace

absl::StatusOr<VisitColumns> VisitColumnsOf(const RecordSchema& schema) {
  VisitColumns columns;
  for (const FeatureSpec& feature : schema.features) {
    const bool user = feature.name == "user";
    if ((!user && feature.name != "item") || feature.shape != Shape({kVisitNumbers})) {
      return Unknown(absl::StrCat("the features \"user\" and \"item\", each [", kVisitNumbers, "]"),
                     absl::StrCat("\"", feature.name, "\" ", feature.shape.ToString()));
    }
    columns.features.push_back(user ? VisitColumns::Feature::kUser : VisitColumns::Feature::kItem);
  }
  for (const LabelSpec& label : schema.labels) {
    // Which may be the records' weights, too, as "spent", of which some are negative, may not.
    const bool clicked = label.name == "clicked" && (label.num_classes == 2 || label.weighs);
    const bool spent = label.name == "spent" && label.num_classes == 0 && !label.weighs;
    if (!clicked && !spent) {
      return Unknown("the labels \"clicked\", 0 or 1, and \"spent\", any number",
                     absl::StrCat("\"", label.name, "\" of ", label.num_classes, " classes",
                                  label.weighs ? " as weights" : ""));
    }
    columns.labels.push_back(clicked ? VisitColumns::Label::kClicked : VisitColumns::Label::kSpent);
  }
  return columns;
}

std::unique_ptr<Dataset> NewGeneratedVisits(VisitColumns columns, uint64_t seed, DataSplit split,
                                            int64_t begin, int64_t end) {
  return std::make_unique<GeneratedVisits>(std::move(columns), seed, split, begin, end);
}

}  // namespace keelson
