#include "ps_server/service/bulk_calls.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/cluster/task_proto.h"
#include "ps_server/service/row_calls.h"
#include "ps_server/units/addressed_blocks.h"
#include "ps_server/units/gradient_reader.h"

namespace keelson {
namespace {

using Blocks = std::vector<AddressedBlock>;

absl::Status CheckValueFormat(const ShardStore& store, const AddressedBlock& block,
                              WireFormat format) {
  if (IsElementwise(format)) return absl::OkStatus();
  return ErrorAt(store, block,
                 absl::StrCat("expected values as float32, float16 or bfloat16, found ",
                              WireFormatName(format)));
}

absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected at least 0, found ", value));
}

absl::Status CheckPull(const ShardStore& store, const BulkRequest& request, const Blocks& blocks) {
  RETURN_IF_ERROR(CheckNotNegative("step", request.step));
  const size_t known = request.known_versions.size();
  if (known != 0 && known != blocks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", blocks.size(), " known versions, found ", known));
  }
  for (const AddressedBlock& block : blocks) {
    RETURN_IF_ERROR(CheckValueFormat(store, block, block.format));
  }
  return absl::OkStatus();
}

absl::Status CheckPayloadEnds(const ShardStore& store, const Blocks& blocks, size_t left) {
  if (left == 0) return absl::OkStatus();
  if (blocks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected no payload without blocks, found ", left, " bytes"));
  }
  return ErrorAt(store, blocks.back(),
                 absl::StrCat("expected the end of the payload after it, found ", left, " bytes"));
}

absl::Status CheckRound(const BulkRequest& request, bool with_values) {
  if (request.attempt == 0) return absl::OkStatus();
  if (with_values) {
    return absl::InvalidArgumentError(
        absl::StrCat("attempt: expected 0 in a call that brings values, found ", request.attempt));
  }
  if (!(request.weight > 0) || !std::isfinite(request.weight)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weight: expected a number > 0, found ", request.weight));
  }
  return CheckNotNegative("round", request.round);
}

absl::Status CheckPipeline(const BulkRequest& request) {
  if (request.steps_under_way > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps_under_way: expected at most 2, found ", request.steps_under_way));
  }
  const uint32_t most = std::max<uint32_t>(request.steps_under_way, 1) - 1;
  if (request.unseen_pushes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unseen_pushes: expected at most ", most, " with ",
                                                 most + 1, " steps under way, found ",
                                                 request.unseen_pushes));
}

// Returns the sections of rows, which follow the blocks.
absl::StatusOr<RowSections> CheckPush(const ShardStore& store, BulkMethod method,
                                      const BulkRequest& request, const PushOptions& options,
                                      const Blocks& blocks, ByteCursor payload) {
  const bool with_values = method == BulkMethod::kPushPull;
  RETURN_IF_ERROR(CheckNotNegative("step", request.step));
  RETURN_IF_ERROR(CheckNotNegative("pulled_shard_step", request.pulled_shard_step));
  RETURN_IF_ERROR(CheckRound(request, with_values));
  RETURN_IF_ERROR(CheckPipeline(request));
  for (const AddressedBlock& block : blocks) {
    if (with_values) RETURN_IF_ERROR(CheckValueFormat(store, block, block.pull_format));
    if (block.absent) {
      if (request.attempt == 0) continue;
      return ErrorAt(store, block, "expected a gradient in a round, found none");
    }
    const absl::Status gradient =
        CheckGradient({block.format, &payload}, block.elements, options.reject_non_finite);
    if (!gradient.ok()) return ErrorAt(store, block, gradient.message());
  }
  if (request.rows.empty()) RETURN_IF_ERROR(CheckPayloadEnds(store, blocks, payload.remaining()));
  return ReadSections(store.tables(), method, request, options.reject_non_finite, payload);
}

const Optimizer& OptimizerOf(const ShardStore& store, const AddressedBlock& block) {
  return store.OptimizerOf(block.partition);
}

void AddValues(const AddressedBlock& block, WireFormat format, BlockContentRef content,
               BulkResponse* response, ValuePayload* values) {
  response->blocks.push_back({block.partition, block.index, content->version});
  values->Add(std::move(content), format);
}

// Applies all blocks. Returns whether the last one was applied here; it is the one by which
// messages are counted.
bool ApplyBlocks(ShardStore* store, const PushIdentity& push, const Blocks& blocks,
                 ByteCursor payload, BulkResponse* response, ValuePayload* values) {
  bool applied = false;
  for (const AddressedBlock& block : blocks) {
    BlockContentRef after;
    BlockContentRef* const content = values == nullptr ? nullptr : &after;
    const Optimizer& optimizer = OptimizerOf(*store, block);
    applied = block.absent ? block.block->ApplyNothing(optimizer, push, content)
                           : block.block->Apply(optimizer, push, {block.format, &payload}, content);
    if (!applied) ++response->duplicate_blocks;
    if (values != nullptr) AddValues(block, block.pull_format, std::move(after), response, values);
  }
  return applied;
}

// Returns the number of pushes that the shard had counted before this one. Counts this one when it
// is `applied` here: among several calls with the same push, even concurrent ones, that is true of
// one.
int64_t PushesBefore(ShardStore* store, bool last_part, bool applied) {
  if (!last_part) return store->shard_step();
  if (applied) return store->CountPush();
  return store->shard_step() - 1;  // it has been counted when it was applied
}

// Adds the blocks whose version the caller does not have. `read(block)` gives its content.
template <typename ReadBlock>
void AddAsked(const BulkRequest& request, const Blocks& blocks, ReadBlock read,
              BulkResponse* response, ValuePayload* values) {
  const bool conditional = !request.known_versions.empty();
  for (size_t i = 0; i < blocks.size(); ++i) {
    BlockContentRef content = read(blocks[i]);
    if (conditional && content->version == request.known_versions[i]) continue;
    AddValues(blocks[i], blocks[i].format, std::move(content), response, values);
  }
}

int64_t StalenessOf(int64_t pushes_before, const BulkRequest& request) {
  return std::max<int64_t>(0, pushes_before - request.pulled_shard_step);
}

PushIdentity IdentityOf(const ShardStore& store, const BulkRequest& request,
                        const PushOptions& options) {
  PushIdentity push = {request.incarnation, request.sequence, store.LearningRateAt(request.step),
                       request.steps_under_way, request.unseen_pushes};
  if (options.scale_learning_rate) {
    push.learning_rate /= 1 + static_cast<float>(StalenessOf(store.shard_step(), request));
  }
  return push;
}

// Adds all blocks to their round's sums.
absl::Status StageBlocks(const BulkRequest& request, const Blocks& blocks, ByteCursor payload,
                         BulkResponse* response) {
  const RoundId round = {request.round, request.attempt};
  PushIdentity push = {request.incarnation, request.sequence};
  push.order = request.order;
  for (const AddressedBlock& block : blocks) {
    switch (block.block->Stage(push, round, request.weight, {block.format, &payload})) {
      case StageResult::kAdded:
        break;
      case StageResult::kDuplicate:
        ++response->duplicate_blocks;
        break;
      case StageResult::kOutdated:
        return absl::FailedPreconditionError(
            absl::StrCat(round.ToString(), ": a newer one has begun"));
    }
  }
  return absl::OkStatus();
}

// Adds the asked blocks to the answer of a pull. ABORTED: MembershipOver.
absl::Status GiveBlocks(ShardStore* store, const BulkRequest& request, const Blocks& blocks,
                        BulkResponse* response, ValuePayload* values) {
  if (!store->optimizers().reads_worker_values()) {
    AddAsked(
        request, blocks, [](const AddressedBlock& block) { return block.block->Read(); }, response,
        values);
    return absl::OkStatus();
  }
  // The scope keeps a concurrent SetMembers from missing what this call would remember of the
  // incarnation.
  const ShardStore::PushScope scope(store);
  if (!store->IsMember(request.incarnation)) return MembershipOver(request);
  AddAsked(
      request, blocks,
      [&](const AddressedBlock& block) {
        return OptimizerOf(*store, block).reads_worker_values()
                   ? block.block->Give(request.incarnation)
                   : block.block->Read();
      },
      response, values);
  return absl::OkStatus();
}

// Clears away expired rows, in time to the pushes.
void SweepTables(ShardStore* store, const RowSections& rows) {
  size_t ids = 0;
  for (const ReceivedRows& section : rows.apply) ids += section.list.ids.size();
  if (!rows.apply.empty()) store->tables()->Sweep(ids);
}

}  // namespace

absl::StatusOr<Task> CallerOf(const BulkRequest& request) {
  v1::TaskId id;
  id.set_role(static_cast<v1::Role>(request.role));
  id.set_index(request.task_index);
  return TaskFromProto(id);
}

absl::Status MembershipOver(const BulkRequest& request) {
  const absl::StatusOr<Task> task = CallerOf(request);
  return absl::AbortedError(absl::StrCat("membership of ",
                                         task.ok() ? task->ToString() : "an unknown task",
                                         " is over: its calls are refused"));
}

absl::Status ServePull(ShardStore* store, const BulkRequest& request, ByteCursor payload,
                       BulkResponse* response, ValuePayload* values) {
  ASSIGN_OR_RETURN(const Blocks blocks, ResolveBlocks(*store, request.ranges));
  RETURN_IF_ERROR(CheckPull(*store, request, blocks));
  if (request.rows.empty() && payload.remaining() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected no payload, found ", payload.remaining(), " bytes"));
  }
  ASSIGN_OR_RETURN(const RowSections rows, ReadSections(store->tables(), BulkMethod::kPull, request,
                                                        /*reject_non_finite=*/false, payload));
  if (request.step > 0 && request.step > store->committed().round + 1) {
    return absl::OutOfRangeError(
        absl::StrCat("the values for step ", request.step, " are not there yet"));
  }
  // The step is read before the blocks: a push that lands meanwhile makes the values newer than
  // reported, never older.
  response->shard_step = store->shard_step();
  RETURN_IF_ERROR(GiveBlocks(store, request, blocks, response, values));
  if (!rows.read.empty()) AnswerRows(*store->tables(), rows, response, values);
  return absl::OkStatus();
}

absl::Status ServePush(ShardStore* store, BulkMethod method, const BulkRequest& request,
                       const PushOptions& options, ByteCursor payload, BulkResponse* response,
                       ValuePayload* values) {
  ASSIGN_OR_RETURN(const Blocks blocks, ResolveBlocks(*store, request.ranges));
  ASSIGN_OR_RETURN(RowSections rows, CheckPush(*store, method, request, options, blocks, payload));
  const ShardStore::PushScope scope(store);
  if (!store->IsMember(request.incarnation)) return MembershipOver(request);
  RETURN_IF_ERROR(store->CheckOpen());
  // The step is again read before the blocks.
  const int64_t step_before = store->shard_step();
  if (request.attempt != 0) {
    RETURN_IF_ERROR(store->EnterRound({request.round, request.attempt}));
    response->shard_step = step_before;
    response->staleness = StalenessOf(step_before, request);
    RETURN_IF_ERROR(StageBlocks(request, blocks, payload, response));
    if (rows.apply.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(StageRows(store->tables(), request, &rows, response));
    SweepTables(store, rows);
    return absl::OkStatus();
  }
  store->CountChange();
  const PushIdentity push = IdentityOf(*store, request, options);
  bool applied = ApplyBlocks(store, push, blocks, payload, response,
                             method == BulkMethod::kPushPull ? values : nullptr);
  if (!rows.apply.empty()) {
    applied = ApplyRows(store->tables(), push, request.step, &rows, response);
  }
  if (!rows.read.empty()) AnswerRows(*store->tables(), rows, response, values);
  SweepTables(store, rows);
  const bool last_part = request.last_part && !(blocks.empty() && rows.apply.empty());
  response->staleness = StalenessOf(PushesBefore(store, last_part, applied), request);
  response->shard_step = step_before + (last_part && applied ? 1 : 0);
  return absl::OkStatus();
}

}  // namespace keelson
