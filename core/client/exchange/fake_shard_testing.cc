#include "core/client/exchange/fake_shard_testing.h"

#include <algorithm>
#include <cstring>

#include "core/base/status_macros.h"
#include "core/wire/value_codec.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

template <typename T>
T Take(ByteCursor* cursor) {
  T value{};
  EXPECT_TRUE(cursor->Read(&value, sizeof(value)));
  return value;
}

std::vector<float> TakeTopK(ByteCursor* cursor, size_t elements) {
  std::vector<float> gradient(elements);
  std::vector<uint32_t> positions(Take<uint32_t>(cursor));
  for (uint32_t& position : positions) position = Take<uint32_t>(cursor);
  for (const uint32_t position : positions) gradient.at(position) = Take<float>(cursor);
  return gradient;
}

std::vector<float> TakeInt8(ByteCursor* cursor, size_t elements) {
  std::vector<float> gradient(elements);
  for (size_t i = 0; i < elements;) {
    const size_t group = std::min<size_t>(kInt8GroupElements, elements - i);
    const auto scale = Take<float>(cursor);
    std::vector<uint8_t> bytes(group);
    EXPECT_TRUE(cursor->Read(bytes.data(), group));
    DecodeInt8Group(scale, bytes.data(), absl::MakeSpan(gradient).subspan(i, group));
    i += group;
  }
  return gradient;
}

std::vector<float> TakeGradient(WireFormat format, ByteCursor* cursor, size_t elements) {
  if (format == WireFormat::kTopK) return TakeTopK(cursor, elements);
  if (format == WireFormat::kInt8) return TakeInt8(cursor, elements);
  std::vector<uint8_t> bytes(EncodedBytes(format, static_cast<int64_t>(elements)));
  EXPECT_TRUE(cursor->Read(bytes.data(), bytes.size()));
  std::vector<float> gradient(elements);
  DecodeElements(format, bytes.data(), absl::MakeSpan(gradient));
  return gradient;
}

}  // namespace

FakeShard::FakeShard(const Placement* placement, float value, size_t shard)
    : tables(*placement, shard), placement_(*placement), initial_(value) {}

void FakeShard::StartOver(float value) {
  blocks_.clear();
  tables.Clear();
  initial_ = value;
  ++store_id;
}

void FakeShard::SetValues(float value) {
  for (auto& [position, block] : blocks_) {
    std::fill(block.values.begin(), block.values.end(), value);
    ++block.version;
  }
}

void FakeShard::CommitRound() {
  for (auto& [position, block] : blocks_) {
    for (size_t e = 0; e < block.sum.size(); ++e) block.values[e] -= block.sum[e] / block.weights;
    ++block.version;
    block.sum.clear();
    block.weights = 0;
  }
  tables.CommitRound();
  ++shard_step;
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(&rounds_->mu);
    ++rounds_->committed;
    waiting.swap(rounds_->waiting);
  }
  for (const std::function<void()>& wake : waiting) wake();
}

bool FakeShard::MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) {
  ByteCursor cursor(request);
  BulkRequest pull;
  EXPECT_TRUE(DecodeBulkRequest(&cursor, &pull).ok());
  MutexLock lock(&rounds_->mu);
  if (method != BulkMethod::kPull || pull.step <= rounds_->committed) return true;
  rounds_->waiting.push_back(std::move(wake));
  return false;
}

FakeShard::Block& FakeShard::BlockAt(uint32_t partition, uint32_t block) {
  Block& found = blocks_[{partition, block}];
  if (found.values.empty()) {
    const int64_t elements = placement_.BlockElements(partition, block);
    found.values.assign(elements, initial_);
  }
  return found;
}

absl::StatusOr<ByteRope> FakeShard::Bulk(BulkMethod method, ByteRope message) {
  Call& call = calls.emplace_back();
  call.method = method;
  call.bytes = message.ToString();
  ByteCursor cursor(message);
  const auto payload_bytes = DecodeBulkRequest(&cursor, &call.request);
  if (!payload_bytes.ok()) return payload_bytes.status();
  const BulkRequest request = call.request;
  if (absl::Status status = before(); !status.ok()) return status;
  BulkResponse response;
  std::string payload;
  response.store_id = store_id;
  response.credits = credits;
  ASSIGN_OR_RETURN(const std::vector<ReceivedRows> rows,
                   Apply(method, request, &cursor, &response));
  response.shard_step = shard_step;
  AddValues(method, request, &response, &payload);
  tables.Read(rows, &response.rows, &payload);
  if (absl::Status status = after(&response, &payload); !status.ok()) return status;

  const std::string bytes = EncodeBulkResponse(response, payload.size()) + payload;
  ByteRope answer;
  for (size_t i = 0; i < bytes.size(); i += std::min(fragment_bytes, bytes.size() - i)) {
    answer.AppendCopy(absl::string_view(bytes).substr(i, fragment_bytes));
  }
  return answer;
}

absl::StatusOr<std::vector<ReceivedRows>> FakeShard::Apply(BulkMethod method,
                                                           const BulkRequest& request,
                                                           ByteCursor* payload,
                                                           BulkResponse* response) {
  ASSIGN_OR_RETURN(const uint64_t row_bytes, tables.Check(method, request));
  bool applied = method != BulkMethod::kPull && ApplyBlocks(request, payload, response);
  EXPECT_EQ(payload->remaining(), row_bytes);
  ASSIGN_OR_RETURN(std::vector<ReceivedRows> rows, tables.Receive(request, *payload));
  const uint32_t duplicates = tables.Apply(request, rows);
  response->duplicate_blocks += duplicates;
  applied |= !rows.empty() && rows.front().section.purpose == RowPurpose::kApply &&
             duplicates < rows.front().section.num_partitions;
  if (request.last_part && applied && request.attempt == 0) ++shard_step;
  return rows;
}

bool FakeShard::ApplyBlocks(const BulkRequest& request, ByteCursor* payload,
                            BulkResponse* response) {
  response->staleness = std::max<int64_t>(0, shard_step - request.pulled_shard_step);
  bool applied = false;
  for (const BlockRange& range : request.ranges) {
    for (uint32_t i = 0; i < range.num_blocks; ++i) {
      Block& block = BlockAt(range.partition, range.first_block + i);
      const std::vector<float> gradient =
          range.absent ? std::vector<float>()
                       : TakeGradient(range.format, payload, block.values.size());
      if (request.sequence <= block.sequence) {
        ++response->duplicate_blocks;
        continue;
      }
      applied = true;
      if (range.absent) {
        block.sequence = request.sequence;
        continue;
      }
      Update(request, gradient, &block);
    }
  }
  return applied;
}

void FakeShard::Update(const BulkRequest& request, const std::vector<float>& gradient,
                       Block* block) {
  block->sequence = request.sequence;
  if (request.attempt == 0) {
    ++block->version;
    for (size_t e = 0; e < gradient.size(); ++e) block->values[e] -= gradient[e];
    return;
  }
  block->sum.resize(gradient.size());
  block->weights += request.weight;
  for (size_t e = 0; e < gradient.size(); ++e) block->sum[e] += request.weight * gradient[e];
}

void FakeShard::AddValues(BulkMethod method, const BulkRequest& request, BulkResponse* response,
                          std::string* payload) {
  if (method == BulkMethod::kPush) return;
  const bool pull = method == BulkMethod::kPull;
  size_t asked = 0;
  for (const BlockRange& range : request.ranges) {
    const WireFormat format = pull ? range.format : range.pull_format;
    for (uint32_t i = 0; i < range.num_blocks; ++i, ++asked) {
      const Block& block = BlockAt(range.partition, range.first_block + i);
      if (pull && block.version <= request.known_versions.at(asked)) continue;
      response->blocks.push_back({range.partition, range.first_block + i, block.version});
      const size_t begin = payload->size();
      payload->resize(begin + EncodedBytes(format, static_cast<int64_t>(block.values.size())));
      EncodeElements(format, block.values, reinterpret_cast<uint8_t*>(payload->data()) + begin);
    }
  }
}

}  // namespace keelson
