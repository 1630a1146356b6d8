// Which chief a server obeys.
#ifndef KEELSON_PS_SERVER_CHIEF_ADMISSION_H_
#define KEELSON_PS_SERVER_CHIEF_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace keelson {

// The newest incarnation that has called; the one before it is refused from then on. Thread-safe.
class ChiefAdmission {
 public:
  // ABORTED: "Attend: another chief has taken the caller's place".
  absl::Status Admit(absl::string_view call, uint64_t incarnation);

 private:
  Mutex mu_;
  std::optional<uint64_t> newest_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> replaced_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_CHIEF_ADMISSION_H_
