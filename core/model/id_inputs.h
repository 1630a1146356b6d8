// The ids of a batch on a device, as the layers that take them multiply them.
#ifndef KEELSON_CORE_MODEL_ID_INPUTS_H_
#define KEELSON_CORE_MODEL_ID_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/device/device.h"
#include "core/device/memory_view.h"
#include "core/model/id_coefficients.h"
#include "core/model/layers/layer.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// The entries of a feature exist once for all layers that look its ids up in a variable, and once
// for each table that layers look them up in, where the positions of Batch::rows stand for the ids;
// their coefficients once for each combiner. The memories have room for more ids than the batch has
// and keep their places, so that a pass that is repeated (Device::Repeat) finds the next batch's
// ids; when a batch has more ids than there is room for, they are freed and made anew. Not
// thread-safe.
class IdInputs {
 public:
  // The spec and the device must outlive it.
  IdInputs(const ModelSpec* spec, Device* device);

  // Makes room for records [first, first + rows) of the batch and for `examples` of them at least,
  // which are not fewer. RESOURCE_EXHAUSTED: there is none.
  absl::Status Reserve(const Batch& batch, int64_t first, int64_t rows, int64_t examples);
  // For which Reserve made room. The transposed matrices are for training alone.
  void Load(const Batch& batch, int64_t first, int64_t rows, bool training);
  // Makes room for no example.
  void Free();

  // Returns the matrix of a layer, which is known by its position in ModelSpec::layers; null: the
  // layer takes no ids.
  const IdMatrix* For(size_t layer) const;

 private:
  // Coefficients of a feature's entries.
  struct Combined {
    Combiner combiner = Combiner::kSum;
    // Where they begin among the floats, by examples and transposed.
    int64_t by_example = 0;
    int64_t by_id = 0;
    IdMatrix matrix;
  };
  // Where the arrays of SparseRows begin among the integers.
  struct Arrays {
    int64_t stored = 0;
    int64_t rows = 0;
    int64_t offsets = 0;
    int64_t columns = 0;
  };
  struct Feature {
    size_t feature = 0;           // in RecordSchema::features
    std::optional<size_t> table;  // nothing: a variable, of which `num_ids` rows are in use
    int64_t num_ids = 0;
    int64_t ids = 0;  // room for so many in a batch
    IdEntries entries;
    Arrays by_example;
    Arrays by_id;
    std::vector<Combined> combined;
  };
  struct Sizes {
    int64_t integers = 0;
    int64_t floats = 0;
  };
  // Which of features_ a layer takes, and which of its coefficients.
  struct Use {
    size_t feature = 0;
    size_t combined = 0;
  };

  Use UseOf(const LayerSpec& layer);
  // The most rows of a table or variable that a batch has ids of.
  static int64_t MostRows(const Feature& feature);
  // Gives each array its place; returns how many elements they need.
  Sizes Place();
  Arrays PlaceArrays(int64_t rows, int64_t entries, int64_t* end) const;
  void MakeMatrices();
  void FreeMemory();
  SparseRows RowsAt(const Arrays& arrays, int64_t capacity, int64_t entries, int64_t coefficients);
  const DeviceMemory* View(const DeviceMemory& whole, int64_t begin, int64_t size);
  void Write(const Arrays& arrays, absl::Span<const int32_t> rows,
             absl::Span<const int32_t> offsets, absl::Span<const int32_t> columns);
  void WriteExamples(const Feature& feature, int64_t rows);

  const ModelSpec* const spec_;
  Device* const device_;
  std::vector<Feature> features_;
  std::vector<std::optional<Use>> of_layer_;
  int64_t examples_ = 0;  // room for so many
  // What is copied to the device's memories, which have views of all arrays.
  std::vector<int32_t> host_integers_;
  std::vector<float> host_floats_;
  std::unique_ptr<DeviceMemory> integers_;
  std::unique_ptr<DeviceMemory> floats_;
  std::vector<std::unique_ptr<MemoryView>> views_;  // of the two, which are freed first
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_ID_INPUTS_H_
