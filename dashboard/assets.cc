#include "dashboard/assets.h"

namespace keelson {

AssetTable PlainDashboardAssets() {
  Asset page;
  page.content_type = "text/html; charset=utf-8";
  page.bytes =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Keelson</title></head>"
      "<body><h1>Keelson</h1><p>The dashboard's page was not built into this program "
      "(KEELSON_DASHBOARD_PAGE is off). What it shows is there as JSON: "
      "<a href=\"/api/v1/runs\">/api/v1/runs</a>, see docs/dashboard-api.md.</p></body></html>\n";
  return {{"/", page}};
}

}  // namespace keelson
