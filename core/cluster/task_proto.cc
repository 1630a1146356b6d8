#include "core/cluster/task_proto.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tensor/initializer_proto.h"

namespace keelson {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 60;
constexpr size_t kMaxNameBytes = 1024;

absl::Status UnknownRole(int role) {
  return absl::InvalidArgumentError(
      absl::StrCat("task.role: expected chief, ps, worker or evaluator, found ", role));
}

absl::Status IndexTooLarge(uint32_t index) {
  return absl::InvalidArgumentError(
      absl::StrCat("task.index: expected < 2147483648, found ", index));
}

// `what`: "variable" or "table".
absl::Status CheckName(absl::string_view what, absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ".name: expected a name, found none"));
  }
  if (name.size() <= kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ".name: expected at most ", kMaxNameBytes, " bytes, found ", name.size()));
}

absl::Status BadExtent(absl::string_view name, int64_t extent) {
  return absl::InvalidArgumentError(absl::StrCat(
      "variable \"", name,
      "\": shape: expected extents >= 1 with a product of at most 2^60, found ", extent));
}

v1::Role RoleToProto(Role role) {
  switch (role) {
    case Role::kChief:
      return v1::ROLE_CHIEF;
    case Role::kPs:
      return v1::ROLE_PS;
    case Role::kWorker:
      return v1::ROLE_WORKER;
    case Role::kEvaluator:
      return v1::ROLE_EVALUATOR;
  }
  return v1::ROLE_UNSPECIFIED;
}

absl::StatusOr<Role> RoleFromProto(v1::Role role) {
  switch (role) {
    case v1::ROLE_CHIEF:
      return Role::kChief;
    case v1::ROLE_PS:
      return Role::kPs;
    case v1::ROLE_WORKER:
      return Role::kWorker;
    case v1::ROLE_EVALUATOR:
      return Role::kEvaluator;
    default:
      return UnknownRole(role);
  }
}

absl::Status BadDecay(absl::string_view name, float found) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", name, "\": average_decay: expected >= 0 and < 1, found ", found));
}

}  // namespace

v1::TaskId TaskToProto(const Task& task) {
  v1::TaskId proto;
  proto.set_role(RoleToProto(task.role));
  proto.set_index(static_cast<uint32_t>(task.index));
  return proto;
}

absl::StatusOr<Task> TaskFromProto(const v1::TaskId& proto) {
  Task task;
  ASSIGN_OR_RETURN(task.role, RoleFromProto(proto.role()));
  if (proto.index() > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
    return IndexTooLarge(proto.index());
  }
  task.index = static_cast<int>(proto.index());
  return task;
}

v1::VariableSpec VariableSpecToProto(const VariableSpec& spec) {
  v1::VariableSpec proto;
  proto.set_name(spec.name);
  for (int64_t extent : spec.shape.dims()) proto.add_shape(extent);
  *proto.mutable_initializer() = InitializerToProto(spec.initializer);
  if (spec.average_decay.has_value()) proto.set_average_decay(*spec.average_decay);
  return proto;
}

absl::StatusOr<VariableSpec> VariableSpecFromProto(const v1::VariableSpec& proto) {
  RETURN_IF_ERROR(CheckName("variable", proto.name()));
  int64_t elements = 1;
  for (int64_t extent : proto.shape()) {
    if (extent < 1 || extent > kMaxElements / elements) return BadExtent(proto.name(), extent);
    elements *= extent;
  }
  VariableSpec spec{proto.name(), Shape({proto.shape().begin(), proto.shape().end()}),
                    InitializerFromProto(proto.initializer())};
  if (!proto.has_average_decay()) return spec;
  // Written so that not-a-number fails too.
  if (!(proto.average_decay() >= 0 && proto.average_decay() < 1)) {
    return BadDecay(proto.name(), proto.average_decay());
  }
  spec.average_decay = proto.average_decay();
  return spec;
}

v1::TableSpec TableSpecToProto(const TableSpec& spec) {
  v1::TableSpec proto;
  proto.set_name(spec.name);
  proto.set_dim(spec.dim);
  *proto.mutable_initializer() = InitializerToProto(spec.initializer);
  proto.set_max_rows(spec.max_rows);
  proto.set_evict(spec.evict);
  proto.set_expire_after_steps(spec.expire_after_steps);
  proto.set_admit_after(spec.admit_after);
  proto.set_absent_zeros(spec.absent_zeros);
  return proto;
}

absl::StatusOr<TableSpec> TableSpecFromProto(const v1::TableSpec& proto) {
  RETURN_IF_ERROR(CheckName("table", proto.name()));
  if (proto.dim() < 1 || proto.dim() > TableSpec::kMostDim) {
    return absl::InvalidArgumentError(absl::StrCat("table \"", proto.name(),
                                                   "\": dim: expected 1..", TableSpec::kMostDim,
                                                   ", found ", proto.dim()));
  }
  TableSpec spec = {proto.name(), proto.dim(), InitializerFromProto(proto.initializer()),
                    proto.max_rows()};
  spec.evict = proto.evict();
  spec.expire_after_steps = proto.expire_after_steps();
  spec.admit_after = proto.admit_after();
  spec.absent_zeros = proto.absent_zeros();
  const absl::Status limits = CheckLimits(spec);
  if (limits.ok()) return spec;
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", proto.name(), "\": ", limits.message()));
}

}  // namespace keelson
