// A task of the job: a role and an index within it, "worker-1".
#ifndef KEELSON_CORE_CLUSTER_TASK_H_
#define KEELSON_CORE_CLUSTER_TASK_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {

enum class Role { kChief, kPs, kWorker, kEvaluator };

// "chief", "ps", "worker", "evaluator"
inline absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

// Whether a member of this role trains. A chief that only leads the job is no member of it.
inline bool Trains(Role role) { return role == Role::kChief || role == Role::kWorker; }

struct Task {
  Role role = Role::kWorker;
  int index = 0;

  std::string ToString() const { return absl::StrCat(RoleName(role), "-", index); }

  friend bool operator==(const Task& a, const Task& b) {
    return a.role == b.role && a.index == b.index;
  }
  friend bool operator<(const Task& a, const Task& b) {
    return a.role != b.role ? a.role < b.role : a.index < b.index;
  }
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_TASK_H_
