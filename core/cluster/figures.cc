#include "core/cluster/figures.h"

#include <algorithm>
#include <cmath>

#include "core/cluster/staleness_buckets.h"

namespace keelson {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// How many values of a list count, which comes from another process. Of those that are by table, a
// model with more has no figures of the others.
int ListLimit(const FieldDescriptor* field) {
  constexpr int kMostTables = 256;
  return field->number() == v1::WorkerFigures::kStalenessCountsFieldNumber
             ? static_cast<int>(StalenessCounts().size())
             : kMostTables;
}

std::vector<Figure> FiguresOf(const google::protobuf::Descriptor& message) {
  std::vector<Figure> figures;
  for (int i = 0; i < message.field_count(); ++i) figures.emplace_back(message.field(i));
  return figures;
}

void AddList(const FieldDescriptor* field, const Message& from, Message* to) {
  const Reflection* const reflection = to->GetReflection();
  const int size = std::min(reflection->FieldSize(from, field), ListLimit(field));
  for (int i = 0; i < size; ++i) {
    const int64_t added = reflection->GetRepeatedInt64(from, field, i);
    if (i == reflection->FieldSize(*to, field)) {
      reflection->AddInt64(to, field, added);
    } else {
      reflection->SetRepeatedInt64(to, field, i,
                                   reflection->GetRepeatedInt64(*to, field, i) + added);
    }
  }
}

}  // namespace

bool Figure::is_integer() const { return field_->cpp_type() == FieldDescriptor::CPPTYPE_INT64; }

double Figure::Number(const Message& figures) const {
  if (is_integer()) return static_cast<double>(Integer(figures));
  return figures.GetReflection()->GetDouble(figures, field_);
}

int64_t Figure::Integer(const Message& figures) const {
  return figures.GetReflection()->GetInt64(figures, field_);
}

std::vector<int64_t> Figure::List(const Message& figures) const {
  const Reflection* const reflection = figures.GetReflection();
  std::vector<int64_t> list;
  for (int i = 0; i < reflection->FieldSize(figures, field_); ++i) {
    list.push_back(reflection->GetRepeatedInt64(figures, field_, i));
  }
  return list;
}

void Figure::Set(double value, Message* figures) const {
  figures->GetReflection()->SetDouble(figures, field_, value);
}

void Figure::Add(const Message& from, Message* to) const {
  if (is_list()) return AddList(field_, from, to);
  const auto sum = [this](auto a, auto b) { return options_->largest() ? std::max(a, b) : a + b; };
  if (is_integer()) {
    to->GetReflection()->SetInt64(to, field_, sum(Integer(*to), Integer(from)));
  } else {
    Set(sum(Number(*to), Number(from)), to);
  }
}

const std::vector<Figure>& WorkerFigures() {
  static const auto* const kFigures =
      new std::vector<Figure>(FiguresOf(*v1::WorkerFigures::descriptor()));
  return *kFigures;
}

const std::vector<Figure>& TrainingFigures() {
  static const auto* const kFigures =
      new std::vector<Figure>(FiguresOf(*v1::TrainingFigures::descriptor()));
  return *kFigures;
}

void AddFigures(const v1::WorkerFigures& from, v1::WorkerFigures* to) {
  for (const Figure& figure : WorkerFigures()) figure.Add(from, to);
}

namespace {

const Figure& FigureOf(const std::string& name) {
  const auto* const field = v1::WorkerFigures::descriptor()->FindFieldByName(name);
  return WorkerFigures()[static_cast<size_t>(field->index())];
}

}  // namespace

v1::TrainingFigures FiguresBetween(const v1::WorkerFigures& older, const v1::WorkerFigures& newer,
                                   absl::Duration interval) {
  const double seconds = absl::ToDoubleSeconds(interval);
  const auto difference = [&](const std::string& name) {
    return FigureOf(name).Number(newer) - FigureOf(name).Number(older);
  };
  v1::TrainingFigures between;
  for (const Figure& figure : TrainingFigures()) {
    const v1::FigureOptions& options = figure.options();
    if (options.per_second()) {
      figure.Set(difference(options.of()) / seconds, &between);
      continue;
    }
    double steps = difference("steps");
    if (!options.without().empty()) steps -= difference(options.without());
    figure.Set(steps == 0 ? std::nan("") : difference(options.of()) / steps, &between);
  }
  return between;
}

}  // namespace keelson
