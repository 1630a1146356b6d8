#include "core/scoring/class_counts.h"

#include <cstddef>

namespace keelson {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ClassCounts::ClassCounts(int64_t classes) : classes_(classes) {
  if (classes <= kMaxConfusionClasses) confusion_.resize(classes * classes);
}

void ClassCounts::Add(int64_t label, int64_t predicted) {
  ++examples_;
  Class& of_label = classes_[label];
  ++of_label.support;
  if (predicted < 0) return;
  ++classes_[predicted].predicted;
  if (label == predicted) {
    ++of_label.right;
    ++right_;
  }
  if (confusion_.empty()) return;
  ++confusion_[label * classes_.size() + predicted];
}

double ClassCounts::Accuracy() const {
  return static_cast<double>(right_) / static_cast<double>(examples_);
}

std::vector<ClassQuality> ClassCounts::Qualities() const {
  std::vector<ClassQuality> qualities;
  qualities.reserve(classes_.size());
  for (const Class& c : classes_) {
    qualities.push_back({.precision = Share(c.right, c.predicted),
                         .recall = Share(c.right, c.support),
                         .f1 = Share(2 * c.right, c.predicted + c.support),
                         .support = c.support});
  }
  return qualities;
}

std::vector<std::vector<int64_t>> ClassCounts::Confusion() const {
  std::vector<std::vector<int64_t>> rows;
  const auto width = static_cast<std::ptrdiff_t>(classes_.size());
  for (auto row = confusion_.begin(); row != confusion_.end(); row += width) {
    rows.emplace_back(row, row + width);
  }
  return rows;
}

ClassQuality MeanOfClasses(const std::vector<ClassQuality>& qualities) {
  ClassQuality mean;
  int64_t classes = 0;
  for (const ClassQuality& quality : qualities) {
    if (quality.support == 0) continue;
    ++classes;
    mean.precision += quality.precision;
    mean.recall += quality.recall;
    mean.f1 += quality.f1;
    mean.support += quality.support;
  }
  if (classes == 0) return mean;
  mean.precision /= static_cast<double>(classes);
  mean.recall /= static_cast<double>(classes);
  mean.f1 /= static_cast<double>(classes);
  return mean;
}

}  // namespace keelson
