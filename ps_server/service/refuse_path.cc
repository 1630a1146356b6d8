#include "ps_server/service/refuse_path.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"

namespace keelson {

absl::Status RefusePath(absl::string_view call, const google::protobuf::Message& request,
                        int field) {
  const google::protobuf::UnknownFieldSet& unknown =
      request.GetReflection()->GetUnknownFields(request);
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (unknown.field(i).number() == field) {
      return absl::FailedPreconditionError(absl::StrCat(
          call,
          ": expected the step of a snapshot, found a path: the chief is of another version"));
    }
  }
  return absl::OkStatus();
}

}  // namespace keelson
