#include "core/tensor_files/table_tensors.h"

#include "core/checkpoint/stored_blocks.h"
#include "core/checkpoint/table_columns.h"

namespace keelson {

std::set<std::string> TableTensorNames(const StoredTables& stored, const StoredTable& table) {
  const std::string& name = table.spec.name;
  std::set<std::string> names = {KeysTensorName(name), ValuesTensorName(name),
                                 LastStepTensorName(name), UpdatesTensorName(name),
                                 ErasedTensorName(name)};
  for (const TableSlot& slot : stored.SlotsOf(table)) names.insert(SlotTensorName(name, slot.name));
  return names;
}

}  // namespace keelson
