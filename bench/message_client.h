// Calls of one kind, several under way at each server, over the transport that workers use.
#ifndef KEELSON_BENCH_MESSAGE_CLIENT_H_
#define KEELSON_BENCH_MESSAGE_CLIENT_H_

#include <memory>
#include <vector>

#include "bench/load_client.h"
#include "bench/message_source.h"
#include "core/client/transport/bulk_transport.h"

namespace keelson::bench {

// An operation is one call: a message pushed or pulled.
class MessageClient : public LoadClient {
 public:
  MessageClient(std::unique_ptr<MessageSource> source, std::unique_ptr<BulkTransport> transport,
                int in_flight);

  absl::StatusOr<ClientReport> Run(const Window& window) override;

 private:
  struct Shard {
    size_t next = 0;  // message
    int in_flight = 0;
    // Per message: when it was started, 0 when it is not under way.
    std::vector<double> started;
  };

  void StartCalls();
  void StartNext(size_t shard);
  // Waits for the next answer and takes it.
  absl::StatusOr<Meter::Operation> FinishOne();

  const std::unique_ptr<MessageSource> source_;
  const int in_flight_;
  std::vector<Shard> shards_;
  int under_way_ = 0;
  // Ends first: it holds requests.
  const std::unique_ptr<BulkTransport> transport_;
};

// For the workloads kMessages and kKeyValues.
std::unique_ptr<LoadClient> MakeMessageClient(const LoadPlan& plan);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_MESSAGE_CLIENT_H_
