#include "core/table/row_testing.h"

#include <algorithm>

namespace keelson {

IdList ListOf(const std::vector<uint64_t>& ids, uint64_t salt, RowPartitionRun run) {
  std::vector<std::vector<uint64_t>> partitions(kRowPartitions);
  for (const uint64_t id : ids) partitions[RowPartitionOf(MixId(id, salt))].push_back(id);
  IdList list;
  for (uint32_t p = run.first; p < run.first + run.count; ++p) {
    std::sort(partitions[p].begin(), partitions[p].end());
    list.counts.push_back(static_cast<uint32_t>(partitions[p].size()));
    list.ids.insert(list.ids.end(), partitions[p].begin(), partitions[p].end());
  }
  return list;
}

RowSection SectionOf(uint32_t table, RowPartitionRun run, const IdList& list, RowPurpose purpose,
                     std::string* payload) {
  const IdListForm form = SmallestForm(list.counts, list.ids);
  const size_t begin = payload->size();
  payload->resize(begin + form.bytes);
  EncodeIdList(form, list.counts, list.ids, reinterpret_cast<uint8_t*>(payload->data()) + begin);
  RowSection section;
  section.table = table;
  section.first_partition = run.first;
  section.num_partitions = run.count;
  section.num_ids = static_cast<uint32_t>(list.ids.size());
  section.id_coding = form.coding;
  section.id_bytes = static_cast<uint32_t>(form.bytes);
  section.purpose = purpose;
  return section;
}

}  // namespace keelson
