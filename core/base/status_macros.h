#ifndef KEELSON_CORE_BASE_STATUS_MACROS_H_
#define KEELSON_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expr` is not OK.
#define RETURN_IF_ERROR(expr)                          \
  do {                                                 \
    absl::Status keelson_status_ = (expr);             \
    if (!keelson_status_.ok()) return keelson_status_; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()): x = *F(), or returns F's error.
#define ASSIGN_OR_RETURN(lhs, expr) \
  KEELSON_ASSIGN_OR_RETURN_(KEELSON_CONCAT_(keelson_statusor_, __LINE__), lhs, expr)

#define KEELSON_ASSIGN_OR_RETURN_(var, lhs, expr) \
  auto var = (expr);                              \
  if (!var.ok()) return std::move(var).status();  \
  lhs = *std::move(var)
#define KEELSON_CONCAT_(a, b) KEELSON_CONCAT_INNER_(a, b)
#define KEELSON_CONCAT_INNER_(a, b) a##b

#endif  // KEELSON_CORE_BASE_STATUS_MACROS_H_
