// A parameter server for tests of clients: real bytes, simple arithmetic.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_FAKE_SHARD_TESTING_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_FAKE_SHARD_TESTING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/client/exchange/fake_tables_testing.h"
#include "core/client/services/bulk_handler.h"
#include "core/cluster/placement.h"

namespace keelson {

// A push subtracts its gradients from the values, once per block and sequence; one with an attempt
// is summed for CommitRound. Records its calls. Not thread-safe.
class FakeShard : public BulkHandler {
 public:
  struct Call {
    BulkMethod method;
    BulkRequest request;
    std::string bytes;  // the whole message
  };

  // Every value is `value`. `placement` outlives the shard, which has the number `shard` in it.
  explicit FakeShard(const Placement* placement, float value = 1, size_t shard = 0);

  // As if the process had been replaced: another store, versions from 1 on.
  void StartOver(float value);
  // One more version of every block, with `value` everywhere.
  void SetValues(float value);
  // Subtracts the mean of the summed gradients.
  void CommitRound();

  std::vector<Call> calls;
  FakeTables tables;
  int64_t shard_step = 0;
  uint32_t credits = 0;
  uint64_t store_id = 100;
  // Answers come in fragments of this many bytes.
  size_t fragment_bytes = SIZE_MAX;
  // A test may refuse a call before it is executed, or change or replace its answer.
  std::function<absl::Status()> before = [] { return absl::OkStatus(); };
  std::function<absl::Status(BulkResponse*, std::string* payload)> after = [](auto*, auto*) {
    return absl::OkStatus();
  };

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override;
  // A pull for a step waits for CommitRound, which ends the step before it. Thread-safe.
  bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) override;

 private:
  struct Rounds {
    Mutex mu;
    int64_t committed ABSL_GUARDED_BY(mu) = 0;
    std::vector<std::function<void()>> waiting ABSL_GUARDED_BY(mu);
  };
  struct Block {
    std::vector<float> values;
    uint64_t version = 1;
    uint64_t sequence = 0;
    std::vector<float> sum;  // empty: nothing
    float weights = 0;
  };

  Block& BlockAt(uint32_t partition, uint32_t block);
  // Returns whether a block was not a duplicate.
  bool ApplyBlocks(const BulkRequest& request, ByteCursor* payload, BulkResponse* response);
  absl::StatusOr<std::vector<ReceivedRows>> Apply(BulkMethod method, const BulkRequest& request,
                                                  ByteCursor* payload, BulkResponse* response);
  static void Update(const BulkRequest& request, const std::vector<float>& gradient, Block* block);
  void AddValues(BulkMethod method, const BulkRequest& request, BulkResponse* response,
                 std::string* payload);

  const Placement& placement_;
  float initial_;
  std::map<std::pair<uint32_t, uint32_t>, Block> blocks_;
  std::shared_ptr<Rounds> rounds_ = std::make_shared<Rounds>();  // copies share it
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_FAKE_SHARD_TESTING_H_
