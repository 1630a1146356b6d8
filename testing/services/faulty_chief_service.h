// A chief whose calls fail, wait or are answered as a test says.
#ifndef KEELSON_TESTING_SERVICES_FAULTY_CHIEF_SERVICE_H_
#define KEELSON_TESTING_SERVICES_FAULTY_CHIEF_SERVICE_H_

#include "absl/status/status.h"
#include "core/client/services/chief_service.h"
#include "testing/services/call_faults.h"

namespace keelson {

// Thread-safe.
class FaultyChiefService : public ChiefService, public CallFaults {
 public:
  // `chief` executes what no fault takes, and outlives this; without it calls return OK and an
  // empty response.
  explicit FaultyChiefService(ChiefService* chief = nullptr) : chief_(chief) {}

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override;
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override;
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override;
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override;
  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override;
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override;
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse* response) override;
  absl::Status SaveSnapshot(const v1::SaveSnapshotRequest& request,
                            v1::SaveSnapshotResponse* response) override;
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override;
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override;
  absl::Status ProposeJob(const v1::ProposeJobRequest& request,
                          v1::ProposeJobResponse* response) override;
  absl::Status AnnounceHost(const v1::AnnounceHostRequest& request,
                            v1::AnnounceHostResponse* response) override;
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override;

 private:
  template <typename Request, typename Response>
  absl::Status Forward(Method<ChiefService, Request, Response*> method, const Request& request,
                       Response* response);

  ChiefService* const chief_;
};

}  // namespace keelson

#endif  // KEELSON_TESTING_SERVICES_FAULTY_CHIEF_SERVICE_H_
