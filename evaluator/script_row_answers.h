// Answers what a script asks of the tables of the snapshot that it scores.
#ifndef KEELSON_EVALUATOR_SCRIPT_ROW_ANSWERS_H_
#define KEELSON_EVALUATOR_SCRIPT_ROW_ANSWERS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/row_source.h"
#include "core/script/row_spaces.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "core/tensor/table_spec.h"

namespace keelson {

// Used by one thread at a time.
class ScriptRowAnswers {
 public:
  // In the order of the configuration. `script` outlives this.
  ScriptRowAnswers(std::vector<TableSpec> tables, ScriptSocket* script)
      : spaces_(std::move(tables)), script_(script) {}

  const std::vector<TableSpec>& tables() const { return spaces_.tables(); }

  // From now on rows are those of this snapshot; null: of a model without tables. There is one
  // before the first kRows.
  void SetSource(std::unique_ptr<RowSource> source);

  // kRowSpace and kRows; false: it is another message. Errors of RowSpaces and of the socket. Where
  // the source has no rows the script hears so, and TakeTrouble says why.
  absl::StatusOr<bool> Answer(const ScriptMessage& message);
  // The source's first error since this was asked before.
  absl::Status TakeTrouble() { return std::exchange(trouble_, absl::OkStatus()); }

 private:
  // Into the script's memory.
  absl::Status ReadRows(const RowRequest& request);

  RowSpaces spaces_;
  ScriptSocket* const script_;
  std::unique_ptr<RowSource> source_;
  absl::Status trouble_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_ROW_ANSWERS_H_
