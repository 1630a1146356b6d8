// The tables of a FakeShard.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_FAKE_TABLES_TESTING_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_FAKE_TABLES_TESTING_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/placement.h"
#include "core/table/row_sections.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// A push subtracts its gradients from the rows, once per partition and sequence, and creates those
// that do not exist with their initial values (seed 0). Not thread-safe.
class FakeTables {
 public:
  FakeTables(const Placement& placement, size_t shard);

  // The bytes that the request's sections have at the end of its payload, or what is wrong with
  // them.
  absl::StatusOr<uint64_t> Check(BulkMethod method, const BulkRequest& request) const;
  // `cursor`: at those bytes. It and its rope outlive the result.
  absl::StatusOr<std::vector<ReceivedRows>> Receive(const BulkRequest& request,
                                                    ByteCursor cursor) const;
  // Returns how many partitions had seen the sequence.
  uint32_t Apply(const BulkRequest& request, const std::vector<ReceivedRows>& received);
  void Read(const std::vector<ReceivedRows>& received, std::vector<RowSection>* answer,
            std::string* payload) const;
  void CommitRound();
  // As if the process had been replaced.
  void Clear();

  // By table and id.
  std::map<std::pair<uint32_t, uint64_t>, std::vector<float>> rows;
  // The pushes that each partition has applied.
  std::array<int, kRowPartitions> pushes = {};

 private:
  using Key = std::pair<uint32_t, uint64_t>;

  void Update(const BulkRequest& request, const ReceivedRows& received,
              const std::vector<bool>& duplicate);
  std::vector<float>& RowOf(const Key& key);

  const std::vector<TableSpec> specs_;
  const RowPartitionRun held_;
  std::vector<WireTable> tables_;
  std::array<uint64_t, kRowPartitions> sequences_ = {};
  std::map<Key, std::vector<float>> sums_;
  std::array<float, kRowPartitions> weights_ = {};
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_FAKE_TABLES_TESTING_H_
