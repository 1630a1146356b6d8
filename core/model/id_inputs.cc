#include "core/model/id_inputs.h"

#include <algorithm>
#include <numeric>

#include "core/base/status_macros.h"

namespace keelson {
namespace {

int64_t CountIds(const FeatureValues& values, int64_t first, int64_t rows) {
  if (values.offsets.empty()) return rows;
  return values.offsets[first + rows] - values.offsets[first];
}

}  // namespace

IdInputs::IdInputs(const ModelSpec* spec, Device* device) : spec_(spec), device_(device) {
  for (const LayerSpec& layer : spec->layers) {
    const bool takes_ids = layer.embeddings || layer.table;
    of_layer_.push_back(takes_ids ? std::optional<Use>(UseOf(layer)) : std::nullopt);
  }
}

IdInputs::Use IdInputs::UseOf(const LayerSpec& layer) {
  const size_t feature = layer.inputs.front();
  const Combiner combiner = layer.combiner;
  auto at = std::find_if(features_.begin(), features_.end(), [&](const Feature& other) {
    return other.feature == feature && other.table == layer.table;
  });
  if (at == features_.end()) {
    Feature added;
    added.feature = feature;
    added.table = layer.table;
    added.num_ids = spec_->records.features[feature].num_ids;
    at = features_.insert(at, std::move(added));
  }
  const auto combined =
      std::find_if(at->combined.begin(), at->combined.end(),
                   [&](const Combined& other) { return other.combiner == combiner; });
  const Use use = {static_cast<size_t>(at - features_.begin()),
                   static_cast<size_t>(combined - at->combined.begin())};
  if (combined == at->combined.end()) {
    Combined added;
    added.combiner = combiner;
    at->combined.push_back(added);
  }
  return use;
}

absl::Status IdInputs::Reserve(const Batch& batch, int64_t first, int64_t rows, int64_t examples) {
  if (features_.empty()) return absl::OkStatus();
  bool fits = integers_ != nullptr && examples <= examples_;
  examples_ = std::max(examples, examples_);
  for (Feature& feature : features_) {
    // An id each; bags of batches to come are a little larger or smaller.
    const int64_t ids = CountIds(batch.features[feature.feature], first, rows);
    if (ids > feature.ids) {
      feature.ids = std::max(examples_, ids + ids / 2);
      fits = false;
    }
    feature.ids = std::max(feature.ids, examples_);
  }
  if (fits) return absl::OkStatus();
  FreeMemory();
  const Sizes sizes = Place();
  ASSIGN_OR_RETURN(integers_, device_->Allocate(sizes.integers));
  ASSIGN_OR_RETURN(floats_, device_->Allocate(sizes.floats));
  host_integers_.assign(sizes.integers, 0);
  host_floats_.assign(sizes.floats, 0);
  MakeMatrices();
  return absl::OkStatus();
}

int64_t IdInputs::MostRows(const Feature& feature) {
  return feature.table ? feature.ids : std::min(feature.ids, feature.num_ids);
}

IdInputs::Sizes IdInputs::Place() {
  Sizes sizes;
  for (Feature& feature : features_) {
    feature.by_example = PlaceArrays(examples_, feature.ids, &sizes.integers);
    feature.by_id = PlaceArrays(MostRows(feature), feature.ids, &sizes.integers);
    for (Combined& combined : feature.combined) {
      combined.by_example = sizes.floats;
      combined.by_id = combined.by_example + MemoryView::Aligned(feature.ids);
      sizes.floats = combined.by_id + MemoryView::Aligned(feature.ids);
    }
  }
  return sizes;
}

IdInputs::Arrays IdInputs::PlaceArrays(int64_t rows, int64_t entries, int64_t* end) const {
  Arrays arrays;
  arrays.stored = *end;
  arrays.rows = arrays.stored + MemoryView::Aligned(1);
  arrays.offsets = arrays.rows + MemoryView::Aligned(rows);
  arrays.columns = arrays.offsets + MemoryView::Aligned(rows + 1);
  *end = arrays.columns + MemoryView::Aligned(entries);
  return arrays;
}

void IdInputs::MakeMatrices() {
  for (Feature& feature : features_) {
    for (Combined& combined : feature.combined) {
      combined.matrix = {RowsAt(feature.by_example, examples_, feature.ids, combined.by_example),
                         RowsAt(feature.by_id, MostRows(feature), feature.ids, combined.by_id)};
    }
  }
}

SparseRows IdInputs::RowsAt(const Arrays& arrays, int64_t capacity, int64_t entries,
                            int64_t coefficients) {
  return {.capacity = capacity,
          .stored = View(*integers_, arrays.stored, 1),
          .rows = View(*integers_, arrays.rows, capacity),
          .offsets = View(*integers_, arrays.offsets, capacity + 1),
          .columns = View(*integers_, arrays.columns, entries),
          .coefficients = View(*floats_, coefficients, entries)};
}

const DeviceMemory* IdInputs::View(const DeviceMemory& whole, int64_t begin, int64_t size) {
  views_.push_back(std::make_unique<MemoryView>(whole, begin, size));
  return views_.back().get();
}

void IdInputs::Load(const Batch& batch, int64_t first, int64_t rows, bool training) {
  if (features_.empty()) return;
  for (Feature& feature : features_) {
    IdEntries& entries = feature.entries;
    const FeatureValues& values = batch.features[feature.feature];
    if (feature.table) {
      entries.Set(values, batch.rows[*feature.table].positions[feature.feature], first, rows);
    } else {
      entries.Set(values, values.ids, first, rows);
    }
    WriteExamples(feature, rows);
    if (training) {
      entries.Transpose();
      Write(feature.by_id, entries.distinct_ids(), entries.id_offsets(), entries.examples());
    }
    for (const Combined& combined : feature.combined) {
      float* const coefficients = host_floats_.data() + combined.by_example;
      CoefficientsOf(entries, combined.combiner, {coefficients, entries.ids().size()});
      if (!training) continue;
      float* to = host_floats_.data() + combined.by_id;
      for (const int32_t position : entries.positions()) *to++ = coefficients[position];
    }
  }
  device_->CopyIntegersToDevice(host_integers_, integers_.get());
  device_->CopyToDevice(host_floats_, floats_.get());
}

void IdInputs::WriteExamples(const Feature& feature, int64_t rows) {
  const auto all = host_integers_.begin() + feature.by_example.rows;
  std::iota(all, all + rows, 0);
  Write(feature.by_example, {&*all, static_cast<size_t>(rows)}, feature.entries.offsets(),
        feature.entries.ids());
}

void IdInputs::Write(const Arrays& arrays, absl::Span<const int32_t> rows,
                     absl::Span<const int32_t> offsets, absl::Span<const int32_t> columns) {
  const auto begin = host_integers_.begin();
  host_integers_[arrays.stored] = static_cast<int32_t>(rows.size());
  std::copy(rows.begin(), rows.end(), begin + arrays.rows);
  std::copy(offsets.begin(), offsets.end(), begin + arrays.offsets);
  std::copy(columns.begin(), columns.end(), begin + arrays.columns);
}

void IdInputs::Free() {
  FreeMemory();
  examples_ = 0;
  for (Feature& feature : features_) feature.ids = 0;
}

void IdInputs::FreeMemory() {
  integers_.reset();
  floats_.reset();
  views_.clear();
}

const IdMatrix* IdInputs::For(size_t layer) const {
  if (!of_layer_[layer].has_value()) return nullptr;
  const Use& use = *of_layer_[layer];
  return &features_[use.feature].combined[use.combined].matrix;
}

}  // namespace keelson
