// The rows of tables that a script asks for, and the memory in which it has them
// (docs/agent-protocol.md).
#ifndef KEELSON_CORE_SCRIPT_ROW_SPACES_H_
#define KEELSON_CORE_SCRIPT_ROW_SPACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/sealed_memory.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/row_indexer.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "core/table/row_id.h"
#include "core/tensor/table_spec.h"

namespace keelson {

// The rows of one message of the script.
struct RowRequest {
  // The rows of one table, which lie in the space's memory.
  struct Part {
    size_t table = 0;
    size_t distinct = 0;       // rows, of which the arrays have room for as many as there are ids
    absl::Span<float> values;  // [rows, dim]
    absl::Span<float> gradients;  // likewise
  };

  uint64_t space = 0;
  std::shared_ptr<const SealedMemory> memory;
  std::vector<Part> parts;
  std::shared_ptr<const RowIds> ids;  // the distinct ones, by RowSpaces::by_name of the table
};

// Used by one thread. INVALID_ARGUMENT: a message that names other tables, dims or spaces than
// there are, or more ids than its space has room for.
class RowSpaces {
 public:
  // As many spaces as a script may have, numbered from 0.
  static constexpr uint64_t kMostSpaces = 256;

  // In the order of the configuration, by which the script knows them.
  explicit RowSpaces(std::vector<TableSpec> tables);

  const std::vector<TableSpec>& tables() const { return tables_; }
  // Where the table is among all, ordered by name.
  size_t by_name(size_t table) const { return by_name_[table]; }

  // Makes a space, in place of one of the same number. RESOURCE_EXHAUSTED: as SealedMemory.
  absl::StatusOr<std::shared_ptr<const SealedMemory>> Make(uint64_t space, uint64_t bytes);
  // kRowSpace: makes the space, sends its memory, and returns its number. Also the socket's errors.
  absl::StatusOr<uint64_t> MakeAndSend(ScriptMessageReader* reader, ScriptSocket* script);
  // The space's memory; null: there is no such space.
  std::shared_ptr<const SealedMemory> Memory(uint64_t space) const;

  // kRows and kRowsAhead: reads which rows are wanted, and says where each id's row will be.
  absl::StatusOr<RowRequest> Read(ScriptMessageReader* reader);
  // kRowsReady. `came` is false where nobody has them.
  static ScriptMessage Answer(const RowRequest& request, bool came);

 private:
  absl::StatusOr<RowRequest::Part> ReadPart(const SealedMemory& memory, ScriptMessageReader* reader,
                                            size_t* at);
  // Finds the distinct ids of the request and tells the script where each is.
  void Index(RowRequest* request);

  const std::vector<TableSpec> tables_;
  std::vector<size_t> by_name_;
  std::map<uint64_t, std::shared_ptr<const SealedMemory>> spaces_;

  // Read uses these; the batch has a feature for each part.
  std::vector<absl::Span<int32_t>> positions_;
  std::vector<size_t> indexed_;  // the tables of indexer_
  std::optional<RowIndexer> indexer_;
  Batch batch_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCRIPT_ROW_SPACES_H_
