// Holds back the work that a chief hands out.
#ifndef KEELSON_TESTS_SUPPORT_WORK_GATE_H_
#define KEELSON_TESTS_SUPPORT_WORK_GATE_H_

#include <cstdint>

#include "core/base/mutex.h"
#include "core/client/services/chief_service.h"

namespace keelson {

// Holds back work after a number of tickets, so that a test finds the job in the middle however
// fast it is. Thread-safe.
class WorkGate {
 public:
  // Closes when `tickets` in all have been granted; a lease may lead a little beyond.
  void CloseAt(int64_t tickets);
  void Open();

  // Asks `chief` when the gate is open. Otherwise reports the progress, and grants nothing after a
  // moment, so that the worker asks again.
  absl::Status AcquireWork(ChiefService* chief, const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response);

 private:
  bool IsOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return granted_ < limit_; }
  // Waits a moment for the gate to be open; returns whether it is.
  bool WaitBriefly();

  Mutex mu_;
  CondVar changed_;
  int64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t limit_ ABSL_GUARDED_BY(mu_) = INT64_MAX;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_WORK_GATE_H_
