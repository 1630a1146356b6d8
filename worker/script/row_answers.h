// Answers a script's messages about the rows of tables.
#ifndef KEELSON_WORKER_SCRIPT_ROW_ANSWERS_H_
#define KEELSON_WORKER_SCRIPT_ROW_ANSWERS_H_

#include "absl/status/status.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "worker/script/script_rows.h"
#include "worker/script/script_steps.h"

namespace keelson {

// Used by one thread. Errors are those of ScriptRows, the socket and the steps.
class RowAnswers {
 public:
  // Both outlive this.
  RowAnswers(ScriptRows* rows, ScriptSocket* script) : rows_(rows), script_(script) {}

  // kRowSpace.
  absl::Status SendMemory(ScriptMessageReader* reader);
  // kRows. `steps`: null where no membership is left, and so nobody has rows.
  absl::Status SendRows(ScriptMessageReader* reader, ScriptSteps* steps);
  // kRowsAhead, if one was not answered: behind the answer with which they came or would have come.
  absl::Status SendRowsAhead();

 private:
  ScriptRows* const rows_;
  ScriptSocket* const script_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_ROW_ANSWERS_H_
