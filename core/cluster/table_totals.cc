#include "core/cluster/table_totals.h"

#include <algorithm>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace keelson {
namespace {

using google::protobuf::FieldDescriptor;

void AddNumbers(const v1::TablePartStatus& from, v1::TablePartStatus* to) {
  const google::protobuf::Reflection& reflection = *from.GetReflection();
  const google::protobuf::Descriptor& fields = *v1::TablePartStatus::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const FieldDescriptor* const field = fields.field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_INT64) continue;
    reflection.SetInt64(to, field,
                        reflection.GetInt64(*to, field) + reflection.GetInt64(from, field));
  }
}

// An id is in one shard.
void KeepHottest(google::protobuf::RepeatedPtrField<v1::TablePartStatus::HotId>* ids) {
  std::stable_sort(ids->begin(), ids->end(),
                   [](const auto& a, const auto& b) { return a.pushes() > b.pushes(); });
  while (ids->size() > TableTotals::kMostHot) ids->RemoveLast();
}

}  // namespace

void TableTotals::AddShard(const TablePartStatuses& tables) {
  for (const v1::TablePartStatus& table : tables) {
    auto sum = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& known) {
      return known.total.table.name() == table.name();
    });
    if (sum == sums_.end()) {
      sum = sums_.insert(sum, Sum());
      sum->total.table.set_name(table.name());
    }
    AddNumbers(table, &sum->total.table);
    sum->total.table.mutable_hottest()->MergeFrom(table.hottest());
    sum->largest = std::max(sum->largest, table.rows());
    ++sum->shards;
  }
}

std::vector<TableTotal> TableTotals::totals() const {
  std::vector<TableTotal> totals;
  for (const Sum& sum : sums_) {
    TableTotal& total = totals.emplace_back(sum.total);
    KeepHottest(total.table.mutable_hottest());
    if (total.table.rows() <= 0) continue;
    total.balance = static_cast<double>(sum.largest) * static_cast<double>(sum.shards) /
                    static_cast<double>(total.table.rows());
  }
  return totals;
}

}  // namespace keelson
