// The figures of a worker's work (figures.proto) one by one, for code that treats all of them
// alike: adding up, exporting, writing and reading status.json.
#ifndef KEELSON_CORE_CLUSTER_FIGURES_H_
#define KEELSON_CORE_CLUSTER_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// A field of WorkerFigures or TrainingFigures. Its functions take messages of its own type.
class Figure {
 public:
  // `field` is a field with the option `figure`: int64, double or a list of int64.
  explicit Figure(const google::protobuf::FieldDescriptor* field)
      : field_(field), options_(&field->options().GetExtension(v1::figure)) {}

  const std::string& name() const { return field_->name(); }
  // What figures.proto says of it.
  const v1::FigureOptions& options() const { return *options_; }
  bool is_list() const { return field_->is_repeated(); }
  bool is_integer() const;

  // The value of a figure that is no list.
  double Number(const google::protobuf::Message& figures) const;
  // The value of an integer that is no list.
  int64_t Integer(const google::protobuf::Message& figures) const;
  // The values of a list.
  std::vector<int64_t> List(const google::protobuf::Message& figures) const;

  // Sets a figure that is a double.
  void Set(double value, google::protobuf::Message* figures) const;
  // Adds up, or takes the larger one. Lists are bounded.
  void Add(const google::protobuf::Message& from, google::protobuf::Message* to) const;

 private:
  const google::protobuf::FieldDescriptor* field_;
  const v1::FigureOptions* options_;
};

// The fields of v1::WorkerFigures, in their order.
const std::vector<Figure>& WorkerFigures();

// The fields of v1::TrainingFigures, in their order.
const std::vector<Figure>& TrainingFigures();

// Puts the figures of more work to those in `to`.
void AddFigures(const v1::WorkerFigures& from, v1::WorkerFigures* to);

// The means and rates of the work between two sums, `interval` (> 0) apart.
v1::TrainingFigures FiguresBetween(const v1::WorkerFigures& older, const v1::WorkerFigures& newer,
                                   absl::Duration interval);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_FIGURES_H_
