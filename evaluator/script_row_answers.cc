#include "evaluator/script_row_answers.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"

namespace keelson {

void ScriptRowAnswers::SetSource(std::unique_ptr<RowSource> source) {
  source_ = std::move(source);
  trouble_ = absl::OkStatus();
}

absl::StatusOr<bool> ScriptRowAnswers::Answer(const ScriptMessage& message) {
  ScriptMessageReader reader(message);
  if (message.kind == ScriptMessageKind::kRowSpace) {
    RETURN_IF_ERROR(spaces_.MakeAndSend(&reader, script_).status());
  } else if (message.kind == ScriptMessageKind::kRows) {
    ASSIGN_OR_RETURN(const RowRequest request, spaces_.Read(&reader));
    const absl::Status read = ReadRows(request);
    trouble_.Update(read);
    RETURN_IF_ERROR(script_->Send(RowSpaces::Answer(request, /*came=*/read.ok())));
  } else {
    return false;
  }
  if (reader.AtEnd()) return true;
  return absl::InvalidArgumentError(
      absl::StrCat("the script's message: expected kind ", static_cast<uint32_t>(message.kind),
                   " with its fields alone, found ", message.body.size(), " bytes"));
}

absl::Status ScriptRowAnswers::ReadRows(const RowRequest& request) {
  for (const RowRequest::Part& part : request.parts) {
    const size_t elements = part.distinct * static_cast<size_t>(tables()[part.table].dim);
    RETURN_IF_ERROR(source_->ReadRows(part.table, (*request.ids)[spaces_.by_name(part.table)],
                                      part.values.subspan(0, elements)));
  }
  return absl::OkStatus();
}

}  // namespace keelson
