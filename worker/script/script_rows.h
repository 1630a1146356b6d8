// The rows of tables that a script computes with: between its spaces and the client's tables.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_ROWS_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/client/services/table_rows.h"
#include "core/script/row_spaces.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "core/tensor/table_spec.h"

namespace keelson {

// The spaces of a script last over all memberships. Used by one thread. Errors of what reads
// messages are those of RowSpaces.
class ScriptRows {
 public:
  // In the order of the configuration, by which the script knows them.
  explicit ScriptRows(std::vector<TableSpec> tables);

  bool has_tables() const { return !spaces_.tables().empty(); }

  // kRowSpace: makes a space and sends its memory.
  absl::Status MakeSpace(ScriptMessageReader* reader, ScriptSocket* script);

  // kRows: reads which rows are wanted.
  absl::StatusOr<RowRequest> Read(ScriptMessageReader* reader);
  // Gives the script the rows that the client has, those of the request.
  void Deliver(const RowRequest& request, TableRows* rows);

  // kRowsAhead: they are wanted with the next values. It takes the place of an earlier one.
  absl::Status SetAhead(ScriptMessageReader* reader);
  bool has_ahead() const { return ahead_.has_value(); }
  // Has the client's next pull or step bring the rows that are wanted ahead, or none.
  absl::Status WantAhead(TableRows* rows) const;
  // They have come.
  void DeliverAhead(TableRows* rows);
  // The answer to kRowsAhead: whether they have come. Nothing is wanted ahead any more.
  ScriptMessage TakeAheadAnswer();

  // Offers the client the sum of the gradients of these spaces' rows, for the step that has begun.
  absl::Status Offer(absl::Span<const uint64_t> spaces, TableRows* rows) const;

 private:
  absl::StatusOr<std::vector<const RowRequest*>> RequestsOf(
      absl::Span<const uint64_t> spaces) const;
  // The ids and gradients of a table in all requests, those of an id added up.
  void AddUp(size_t table, absl::Span<const RowRequest* const> requests, std::vector<uint64_t>* ids,
             std::vector<float>* gradients) const;

  RowSpaces spaces_;
  std::map<uint64_t, RowRequest> came_;  // by space
  std::optional<RowRequest> ahead_;
  bool ahead_came_ = false;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_ROWS_H_
