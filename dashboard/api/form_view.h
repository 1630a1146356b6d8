// GET /api/v1/runs/{run}/form: what a form for one record of a run asks for, and records of the
// evaluation as it would have them.
#ifndef KEELSON_DASHBOARD_API_FORM_VIEW_H_
#define KEELSON_DASHBOARD_API_FORM_VIEW_H_

#include "core/http/message.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe. The examples are those of eval/examples.json that the model can take; without the
// file, or where it has another form, there are none.
HttpResponse FormAnswer(const HttpRequest& request, const Run& run);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_FORM_VIEW_H_
