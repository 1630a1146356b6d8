#include "ps_server/snapshots/streamed_shard.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using Chunk = v1::InitializeChunk;

// Reads the blocks of a stream, one after another.
class BlockStream {
 public:
  BlockStream(const Chunk* first, ParameterControl::ChunkSource next)
      : chunk_(first), next_chunk_(next) {}

  // Valid until the next call. Null at the end; the last call.
  absl::StatusOr<const Chunk::Block*> Next() {
    while (position_ == chunk_->blocks_size()) {
      ASSIGN_OR_RETURN(received_, next_chunk_());
      if (!received_.has_value()) return nullptr;
      chunk_ = &*received_;
      position_ = 0;
    }
    return &chunk_->blocks(position_++);
  }

 private:
  const Chunk* chunk_;
  const ParameterControl::ChunkSource next_chunk_;
  std::optional<Chunk> received_;
  int position_ = 0;
};

std::string NameOf(const std::vector<VariableSpec>& variables,
                   const ShardStore::BlockPosition& position) {
  return absl::StrCat("variable ", variables[position.variable].name, ", elements ",
                      position.first_element, " to ",
                      position.first_element + position.num_elements);
}

// Takes the values, then each slot.
absl::Status TakeElements(const std::string& elements, const std::string& name,
                          BlockContent* content) {
  const size_t array_bytes = content->values.size() * sizeof(float);
  const size_t expected = array_bytes * (1 + content->slots.size());
  if (elements.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": expected ", expected, " bytes of values and slots, found ", elements.size()));
  }
  const char* from = elements.data();
  std::memcpy(content->values.data(), from, array_bytes);
  for (AlignedBuffer& slot : content->slots) {
    from += array_bytes;
    std::memcpy(slot.data(), from, array_bytes);
  }
  return absl::OkStatus();
}

// Takes the values, or makes them where the peer leaves that to the variable's initializer.
absl::Status TakeInitialValues(const std::string& elements, const VariableSpec& variable,
                               uint64_t seed, const ShardStore::BlockPosition& position,
                               const std::string& name, BlockContent* content) {
  const size_t expected = content->values.size() * sizeof(float);
  if (elements.empty()) {
    FillInitialValues(variable, seed, position.first_element, content->values.span());
    return absl::OkStatus();
  }
  if (elements.size() != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected ", expected, " bytes of values, found ", elements.size()));
  }
  std::memcpy(content->values.data(), elements.data(), expected);
  return absl::OkStatus();
}

class SinkFile : public AppendFile {
 public:
  explicit SinkFile(ParameterControl::ByteSink sink) : sink_(sink) {}

  absl::Status Append(absl::string_view data) override { return sink_(data); }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  const ParameterControl::ByteSink sink_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardStore>> ReceiveShard(ShardStore::Options options,
                                                         const Chunk& first,
                                                         ParameterControl::ChunkSource next) {
  const std::vector<VariableSpec> variables = options.placement.variables();
  BlockStream stream(&first, next);
  ASSIGN_OR_RETURN(
      std::unique_ptr<ShardStore> store,
      ShardStore::Create(
          std::move(options),
          {first.shard_step(),
           {first.has_committed_round() ? first.committed_round() : -1,
            first.committed_contributions()}},
          [&](const ShardStore::BlockPosition& position, BlockState* state) -> absl::Status {
            ASSIGN_OR_RETURN(const Chunk::Block* block, stream.Next());
            const std::string name = NameOf(variables, position);
            if (block == nullptr) {
              return absl::InvalidArgumentError(
                  absl::StrCat(name, ": expected the block, found the end of the stream"));
            }
            BlockContent* content = state->content.Mutable();
            RETURN_IF_ERROR(first.start().has_restore_step()
                                ? TakeElements(block->elements(), name, content)
                                : TakeInitialValues(block->elements(), variables[position.variable],
                                                    first.start().seed(), position, name, content));
            content->version = block->version();
            content->updates = block->updates();
            for (const v1::ShardState::WorkerSequence& applied : block->applied()) {
              state->applied.push_back({applied.incarnation(), applied.sequence()});
            }
            return absl::OkStatus();
          }));
  ASSIGN_OR_RETURN(const Chunk::Block* rest, stream.Next());
  if (rest != nullptr) {
    return absl::InvalidArgumentError(
        "expected the end of the stream after the shard's last block, found another block");
  }
  return store;
}

std::unique_ptr<AppendFile> FileOn(ParameterControl::ByteSink sink) {
  return std::make_unique<SinkFile>(sink);
}

}  // namespace keelson
