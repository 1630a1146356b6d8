#include "ps_server/snapshots/streamed_shard.h"

#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/table/row_id.h"
#include "ps_server/snapshots/table_files.h"

namespace keelson {
namespace {

using Chunk = v1::InitializeChunk;

// Reads the blocks of a stream, one after another, and then the rows.
class ChunkStream {
 public:
  ChunkStream(const Chunk* first, ParameterControl::ChunkSource next)
      : chunk_(first), next_chunk_(next) {}

  // Valid until the next call. Null: there is none before the rows, or the end.
  absl::StatusOr<const Chunk::Block*> NextBlock() {
    while (chunk_ != nullptr && block_ == chunk_->blocks_size()) {
      if (!chunk_->rows().empty()) return nullptr;
      RETURN_IF_ERROR(Receive());
    }
    return chunk_ == nullptr ? nullptr : &chunk_->blocks(block_++);
  }
  // The same of rows, when all blocks have been read.
  absl::StatusOr<const Chunk::Rows*> NextRows() {
    while (chunk_ != nullptr && block_ == chunk_->blocks_size() && row_ == chunk_->rows_size()) {
      RETURN_IF_ERROR(Receive());
    }
    const bool end = chunk_ == nullptr || block_ < chunk_->blocks_size();
    return end ? nullptr : &chunk_->rows(row_++);
  }
  bool at_end() const { return chunk_ == nullptr; }

 private:
  absl::Status Receive() {
    ASSIGN_OR_RETURN(received_, next_chunk_());
    chunk_ = received_.has_value() ? &*received_ : nullptr;
    block_ = 0;
    row_ = 0;
    return absl::OkStatus();
  }

  const Chunk* chunk_;  // null: the stream has ended
  const ParameterControl::ChunkSource next_chunk_;
  std::optional<Chunk> received_;
  int block_ = 0;
  int row_ = 0;
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

// Takes numbers that are `width` in each of `rows` rows.
template <typename T>
absl::Status TakeNumbers(const std::string& bytes, size_t rows, size_t width,
                         absl::string_view name, absl::string_view what, std::vector<T>* numbers) {
  const size_t expected = rows * width * sizeof(T);
  if (bytes.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected ", expected, " bytes of ",
                                                   what, " for ", rows, " rows, found ",
                                                   bytes.size()));
  }
  numbers->resize(rows * width);
  std::memcpy(numbers->data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

// Adds the rows of a stream to the tables, which have none.
class RowReceiver {
 public:
  explicit RowReceiver(TableStore* store) : store_(store) {}

  absl::Status Take(const Chunk::Rows& rows) {
    const RowPartitionRun run = store_->partitions();
    if (rows.table() >= store_->tables_and_ghosts().size() ||
        rows.partition() - run.first >= run.count) {
      return absl::InvalidArgumentError(
          absl::StrCat("rows of table ", rows.table(), ", partition ", rows.partition(),
                       ": expected one of ", store_->tables_and_ghosts().size(),
                       " tables and partitions ", run.first, " to ", run.first + run.count));
    }
    const ServedTable& table = store_->tables_and_ghosts()[rows.table()];
    const std::string name =
        absl::StrCat("table ", table.spec.name, ", partition ", rows.partition());
    const size_t count = rows.keys().size() / sizeof(uint64_t);
    TableColumns columns;
    columns.Clear(table.layout.slots().size());
    RETURN_IF_ERROR(TakeNumbers(rows.keys(), count, 1, name, "ids", &columns.ids));
    RETURN_IF_ERROR(TakeNumbers(rows.last_steps(), count, 1, name, "steps", &columns.last_steps));
    RETURN_IF_ERROR(TakeNumbers(rows.updates(), count, 1, name, "updates", &columns.updates));
    std::vector<float> elements;
    RETURN_IF_ERROR(TakeNumbers(rows.elements(), count, static_cast<size_t>(table.layout.floats()),
                                name, "values and slots", &elements));
    RETURN_IF_ERROR(CheckIds(rows, table, name, columns.ids));
    Split(table.layout, elements, &columns);
    return AddRows(rows.table(), rows.partition(), columns, store_);
  }

 private:
  using Place = std::tuple<uint32_t, uint32_t, uint64_t>;  // partition, table, id

  // By partition, then table, then id.
  absl::Status CheckIds(const Chunk::Rows& rows, const ServedTable& table, const std::string& name,
                        const std::vector<uint64_t>& ids) {
    const uint64_t salt = table.rows.salt;
    for (const uint64_t id : ids) {
      const Place place = {rows.partition(), rows.table(), id};
      if (RowPartitionOf(MixId(id, salt)) != rows.partition() || (any_ && place <= last_)) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": id ", id, " is of another partition or out of order"));
      }
      last_ = place;
      any_ = true;
    }
    return absl::OkStatus();
  }

  static void Split(const RowLayout& layout, const std::vector<float>& elements,
                    TableColumns* columns) {
    const float* from = elements.data();
    for (size_t i = 0; i < columns->ids.size(); ++i) {
      columns->values.insert(columns->values.end(), from, from + layout.dim());
      from += layout.dim();
      for (size_t s = 0; s < columns->slots.size(); ++s) {
        const int64_t floats = layout.slots()[s].floats;
        columns->slots[s].insert(columns->slots[s].end(), from, from + floats);
        from += floats;
      }
    }
  }

  TableStore* const store_;
  Place last_;
  bool any_ = false;  // there is a last one
};

absl::Status RestoreApplied(const Chunk& first, TableStore* store) {
  const RowPartitionRun run = store->partitions();
  store->RestoreStepsDone(first.steps_done());
  for (const v1::ShardState::Applied& applied : first.applied_by_partitions()) {
    for (const v1::ShardState::Applied::Run& units : applied.runs()) {
      if (units.begin() < run.first || units.end() > run.first + run.count) {
        return absl::InvalidArgumentError(
            absl::StrCat("pushes of partitions ", units.begin(), " to ", units.end(),
                         ": expected from ", run.first, " to at most ", run.first + run.count));
      }
      for (uint32_t p = units.begin(); p < units.end(); ++p) {
        store->Partition(p)->RestoreApplied(applied.incarnation(), units.sequence());
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveRows(const Chunk& first, ChunkStream* stream, TableStore* store) {
  RETURN_IF_ERROR(RestoreApplied(first, store));
  RowReceiver receiver(store);
  while (true) {
    ASSIGN_OR_RETURN(const Chunk::Rows* rows, stream->NextRows());
    if (rows == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(receiver.Take(*rows));
  }
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
                                                         ParameterControl::ChunkSource next,
                                                         ReceivedBlocks blocks) {
  const std::vector<VariableSpec> variables = options.placement.variables();
  ChunkStream stream(&first, next);
  ASSIGN_OR_RETURN(
      std::unique_ptr<ShardStore> store,
      ShardStore::Create(
          std::move(options),
          {first.shard_step(),
           {first.has_committed_round() ? first.committed_round() : -1,
            first.committed_contributions()}},
          [&](const ShardStore::BlockPosition& position, BlockState* state) -> absl::Status {
            ASSIGN_OR_RETURN(const Chunk::Block* block, stream.NextBlock());
            const std::string name = NameOf(variables, position);
            if (block == nullptr) {
              return absl::InvalidArgumentError(
                  absl::StrCat(name, ": expected the block, found the end of the stream"));
            }
            BlockContent* content = state->content.Mutable();
            RETURN_IF_ERROR(blocks == ReceivedBlocks::kWithSlots
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
  ASSIGN_OR_RETURN(const Chunk::Block* rest, stream.NextBlock());
  if (rest == nullptr && store->tables() != nullptr) {
    RETURN_IF_ERROR(ReceiveRows(first, &stream, store->tables()));
  }
  if (!stream.at_end()) {
    return absl::InvalidArgumentError(
        "expected the end of the stream after the shard's last block and rows, found another block "
        "or rows");
  }
  return store;
}

std::unique_ptr<AppendFile> FileOn(ParameterControl::ByteSink sink) {
  return std::make_unique<SinkFile>(sink);
}

}  // namespace keelson
