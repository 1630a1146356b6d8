#include "worker/script/row_answers.h"

#include "core/base/status_macros.h"
#include "core/script/row_spaces.h"

namespace keelson {

absl::Status RowAnswers::SendMemory(ScriptMessageReader* reader) {
  return rows_->MakeSpace(reader, script_);
}

absl::Status RowAnswers::SendRows(ScriptMessageReader* reader, ScriptSteps* steps) {
  ASSIGN_OR_RETURN(const RowRequest request, rows_->Read(reader));
  if (steps != nullptr) RETURN_IF_ERROR(steps->FetchRows(request));
  return script_->Send(RowSpaces::Answer(request, /*came=*/steps != nullptr));
}

absl::Status RowAnswers::SendRowsAhead() {
  return rows_->has_ahead() ? script_->Send(rows_->TakeAheadAnswer()) : absl::OkStatus();
}

}  // namespace keelson
