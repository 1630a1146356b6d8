// libFuzzer program for a placement, as a message's bytes. The kind of input is of no meaning.

#include <google/protobuf/stubs/logging.h>

#include "core/cluster/placement.h"
#include "keelson/v1/cluster.pb.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {

std::vector<std::string> Seeds() {
  const std::vector<VariableSpec> variables = {{"dense_1/bias", Shape({5}), {}},
                                               {"dense_1/kernel", Shape({9000, 500}), {}},
                                               {"norm/mean", Shape({4}), {}, 0.9f}};
  std::vector<std::string> seeds;
  for (const size_t shards : {1, 3}) {
    const Placement placement = Placement::Compute(variables, shards);
    const Placement with_table =
        Placement::Compute(variables, shards, 1 << 18, {{"users", 16, {}}});
    AddSeeds('p', {with_table.ToProto().SerializeAsString()}, &seeds);
    AddSeeds('p', {placement.ToProto().SerializeAsString()}, &seeds);
  }
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  const google::protobuf::LogSilencer silencer;  // about texts that are not UTF-8
  v1::Placement proto;
  if (!proto.ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
  const absl::StatusOr<Placement> placement = Placement::FromProto(proto);
  if (!placement.ok()) return;
  uint64_t elements = 0;  // Modulo 2^64, for their sum has no limit.
  for (const VariableSpec& variable : placement->variables()) {
    elements += variable.shape.num_elements();
  }
  for (size_t p = 0; p < placement->partitions().size(); ++p) {
    Check(placement->partition(p).shard < placement->num_shards(), "shards exist");
    const int64_t last = placement->NumBlocks(p) - 1;
    Check(last >= 0, "partitions have blocks");
    const int64_t size = placement->BlockElements(p, last);
    Check(size > 0 && size <= placement->block_elements(), "blocks have elements");
    elements -= placement->PartitionElements(p);
  }
  Check(elements == 0, "partitions cover the variables");
  for (uint32_t p = 0; p < placement->row_partitions(); ++p) {
    const size_t shard = placement->ShardOfRowPartition(p);
    Check(shard < placement->num_shards(), "row partitions lie on shards that exist");
    const RowPartitionRun run = placement->RowPartitionsOf(shard);
    Check(p >= run.first && p < run.first + run.count, "which are those that hold them");
  }
  const absl::StatusOr<Placement> again = Placement::FromProto(placement->ToProto());
  Check(again.ok() && again->Fingerprint() == placement->Fingerprint(),
        "a placement that is written again is the same");
}

}  // namespace keelson
