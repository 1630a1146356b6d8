// The rows of embedding tables that a batch needs, and their gradients, on a device.
#ifndef KEELSON_CORE_MODEL_DEVICE_ROWS_H_
#define KEELSON_CORE_MODEL_DEVICE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/model/layers/layer.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// Of each table two matrices [room, dim], whose first rows are those of Batch::rows in their order.
// They have room for more rows than the batch needs and keep their places, so that a pass that is
// repeated (Device::Repeat) finds the next batch's rows; when there are more rows than room, they
// are freed and made anew. The gradient of the rows beyond the batch's is 0. Not thread-safe.
class DeviceRows {
 public:
  // The spec and the device must outlive it. No table has rows at first.
  DeviceRows(const ModelSpec* spec, Device* device);

  // Makes room for so many rows. Whether the matrices are others than before. RESOURCE_EXHAUSTED:
  // there is none, and the table has no rows.
  absl::StatusOr<bool> Reserve(size_t table, int64_t rows);
  // Sets the rows, [rows, dim], for which Reserve made room.
  void Set(size_t table, absl::Span<const float> values);
  // Makes room for no row of any table.
  void Free();

  // How many rows were set last; nothing: none since there is room.
  std::optional<int64_t> rows(size_t table) const { return tables_[table].rows; }
  DeviceMemory* gradient(size_t table) const { return tables_[table].gradient.get(); }
  // As the layer of a stage that looks ids up in the table gets them; see Stages.
  Parameter ParameterOf(size_t table, size_t stage) const;

  // By table the first and the last of the stages that look ids up in it. The last one's backward
  // pass writes the gradient, which is complete after the first one's.
  struct Stages {
    size_t first = 0;
    size_t last = 0;
  };
  void SetStages(size_t table, Stages stages) { tables_[table].stages = stages; }
  const Stages& stages(size_t table) const { return tables_[table].stages; }

 private:
  struct Table {
    std::unique_ptr<DeviceMemory> values;
    std::unique_ptr<DeviceMemory> gradient;
    int64_t room = 0;
    std::optional<int64_t> rows;
    Stages stages;
  };

  const ModelSpec* const spec_;
  Device* const device_;
  std::vector<Table> tables_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_DEVICE_ROWS_H_
