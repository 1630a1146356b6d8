#include "core/data/generated_clicks.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

struct Click {
  uint64_t user = 0;
  uint64_t item = 0;
  std::vector<uint64_t> history;
  std::vector<float> weights;
  float clicked = 0;
};

ClickVector DrawVector(absl::string_view of, uint64_t id) {
  RecordRandom random(of, 0, DataSplit::kTrain, static_cast<int64_t>(id));
  ClickVector vector;
  for (float& number : vector) number = 0.9f * random.Normal();
  return vector;
}

uint64_t DrawItem(RecordRandom* random) {
  const float uniform = random->Uniform(0, 1);
  return static_cast<uint64_t>(uniform * uniform * static_cast<float>(kClickItems));
}

// The logarithm of the probability with which DrawItem draws this item.
float ItemLogProbability(uint64_t item) {
  const double below = static_cast<double>(item) / kClickItems;
  const double above = static_cast<double>(item + 1) / kClickItems;
  return static_cast<float>(std::log(std::sqrt(above) - std::sqrt(below)));
}

class GeneratedClicks : public Dataset {
 public:
  GeneratedClicks(ClickColumns columns, uint64_t seed, DataSplit split, int64_t begin, int64_t end)
      : columns_(std::move(columns)),
        seed_(seed),
        split_(split),
        begin_(begin),
        num_records_(end - begin) {
    for (int64_t i = 0; i < kClickUsers; ++i) users_.push_back(VectorOfUser(i));
    for (int64_t i = 0; i < kClickItems; ++i) items_.push_back(VectorOfItem(i));
  }

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto n = static_cast<int64_t>(records.size());
    batch->features.resize(columns_.features.size());
    for (FeatureValues& feature : batch->features) Clear(&feature);
    batch->labels.resize(columns_.labels.size());
    for (Tensor& labels : batch->labels) Resize(n, Shape(), &labels);
    Click click;
    for (int64_t i = 0; i < n; ++i) {
      if (records[i] < 0 || records[i] >= num_records_) return NoRecord(records[i], num_records_);
      Draw(records[i], &click);
      for (size_t k = 0; k < columns_.features.size(); ++k) {
        Append(click, k, &batch->features[k]);
      }
      for (size_t k = 0; k < columns_.labels.size(); ++k) {
        batch->labels[k].data()[i] = LabelOf(click, columns_.labels[k]);
      }
    }
    return absl::OkStatus();
  }

 private:
  static void Clear(FeatureValues* values) {
    values->ids.clear();
    values->offsets.clear();
    values->weights.clear();
  }

  void Draw(int64_t record, Click* click) const {
    RecordRandom random("generated clicks", seed_, split_, begin_ + record);
    click->user = static_cast<uint64_t>(random.Below(kClickUsers));
    click->item = DrawItem(&random);
    click->history.clear();
    click->weights.clear();
    for (int left = random.Below(kMostHistory + 1); left > 0; --left) {
      click->history.push_back(DrawItem(&random));
      click->weights.push_back(random.Uniform(0.5f, 1.5f));
    }
    const float probability = 1 / (1 + std::exp(0.5f - Affinity(*click)));
    click->clicked = random.Uniform(0, 1) < probability ? 1.0f : 0.0f;
  }

  static float LabelOf(const Click& click, ClickColumns::Label label) {
    switch (label) {
      case ClickColumns::Label::kClicked:
        return click.clicked;
      case ClickColumns::Label::kItemLogProbability:
        return ItemLogProbability(click.item);
    }
    return 0;
  }

  // (u + h) v
  float Affinity(const Click& click) const {
    ClickVector sum = {};
    float weights = 0;
    for (size_t k = 0; k < click.history.size(); ++k) {
      weights += click.weights[k];
      for (int64_t d = 0; d < kClickNumbers; ++d) {
        sum[d] += click.weights[k] * items_[click.history[k]][d];
      }
    }
    float affinity = 0;
    for (int64_t d = 0; d < kClickNumbers; ++d) {
      const float h = weights > 0 ? sum[d] / weights : 0;
      affinity += (users_[click.user][d] + h) * items_[click.item][d];
    }
    return affinity;
  }

  void Append(const Click& click, size_t feature, FeatureValues* values) const {
    switch (columns_.features[feature]) {
      case ClickColumns::Feature::kUser:
        values->ids.push_back(click.user);
        break;
      case ClickColumns::Feature::kItem:
        values->ids.push_back(click.item);
        break;
      case ClickColumns::Feature::kHistory:
        if (values->offsets.empty()) values->offsets.push_back(0);
        values->ids.insert(values->ids.end(), click.history.begin(), click.history.end());
        values->weights.insert(values->weights.end(), click.weights.begin(), click.weights.end());
        values->offsets.push_back(static_cast<int64_t>(values->ids.size()));
        break;
    }
  }

  const ClickColumns columns_;
  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
  const int64_t num_records_;
  std::vector<ClickVector> users_;
  std::vector<ClickVector> items_;
};

absl::Status NotClicks(const std::string& expected, const std::string& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("generated clicks: expected ", expected, ", found ", found));
}

absl::StatusOr<ClickColumns::Feature> FeatureOf(const FeatureSpec& feature) {
  const bool history = feature.name == "history";
  const bool user = feature.name == "user";
  const FeatureKind kind = history ? FeatureKind::kBag : FeatureKind::kId;
  const bool known = history || user || feature.name == "item";
  if (!known || feature.kind != kind || feature.weighted != history) {
    return NotClicks("the features \"user\" and \"item\", ids, and \"history\", a weighted bag",
                     absl::StrCat("\"", feature.name, "\", ", feature.FormText()));
  }
  const int64_t ids = user ? kClickUsers : kClickItems;
  if (feature.num_ids < ids) {
    return NotClicks(
        absl::StrCat("embeddings of ", ids, " rows or more for \"", feature.name, "\""),
        absl::StrCat(feature.num_ids));
  }
  if (history) return ClickColumns::Feature::kHistory;
  return user ? ClickColumns::Feature::kUser : ClickColumns::Feature::kItem;
}

}  // namespace

ClickVector VectorOfUser(uint64_t user) { return DrawVector("generated clicks: users", user); }

ClickVector VectorOfItem(uint64_t item) { return DrawVector("generated clicks: items", item); }

absl::StatusOr<ClickColumns> ClickColumnsOf(const RecordSchema& schema) {
  ClickColumns columns;
  for (const FeatureSpec& feature : schema.features) {
    ASSIGN_OR_RETURN(const ClickColumns::Feature known, FeatureOf(feature));
    columns.features.push_back(known);
  }
  for (const LabelSpec& label : schema.labels) {
    const bool clicked = label.name == "clicked" && (label.num_classes == 2 || label.weighs);
    const bool probability =
        label.name == "item_log_probability" && label.num_classes == 0 && !label.weighs;
    if (!clicked && !probability) {
      return NotClicks("the labels \"clicked\", 0 or 1, and \"item_log_probability\", a number",
                       absl::StrCat("\"", label.name, "\" of ", label.num_classes, " classes",
                                    label.weighs ? " as weights" : ""));
    }
    columns.labels.push_back(clicked ? ClickColumns::Label::kClicked
                                     : ClickColumns::Label::kItemLogProbability);
  }
  return columns;
}

std::unique_ptr<Dataset> NewGeneratedClicks(ClickColumns columns, uint64_t seed, DataSplit split,
                                            int64_t begin, int64_t end) {
  return std::make_unique<GeneratedClicks>(std::move(columns), seed, split, begin, end);
}

}  // namespace keelson
