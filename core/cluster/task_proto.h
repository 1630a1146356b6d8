// Converts tasks, variables and tables from and to protobuf messages.
#ifndef KEELSON_CORE_CLUSTER_TASK_PROTO_H_
#define KEELSON_CORE_CLUSTER_TASK_PROTO_H_

#include "absl/status/statusor.h"
#include "core/cluster/task.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

v1::TaskId TaskToProto(const Task& task);
// INVALID_ARGUMENT: no role, an unknown role, an index above 2^31 - 1.
absl::StatusOr<Task> TaskFromProto(const v1::TaskId& proto);

v1::VariableSpec VariableSpecToProto(const VariableSpec& spec);
// A missing initializer is the constant 0. INVALID_ARGUMENT: no name, an extent below 1, more than
// 2^60 elements, an average_decay outside of [0, 1).
absl::StatusOr<VariableSpec> VariableSpecFromProto(const v1::VariableSpec& proto);

v1::TableSpec TableSpecToProto(const TableSpec& spec);
// A missing initializer is the constant 0. INVALID_ARGUMENT: no name, or one that is too long; a
// dimension below 1 or above 1024.
absl::StatusOr<TableSpec> TableSpecFromProto(const v1::TableSpec& proto);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_TASK_PROTO_H_
