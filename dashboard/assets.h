// The files of the dashboard's page, which are built into the program.
#ifndef KEELSON_DASHBOARD_ASSETS_H_
#define KEELSON_DASHBOARD_ASSETS_H_

#include <map>
#include <string>

namespace keelson {

struct Asset {
  std::string content_type;  // "text/css; charset=utf-8"
  std::string bytes;
  bool gzipped = false;  // what `bytes` are
};

// By path: "/" is the page, "/assets/…" are the files that it loads, which are named after their
// content, since browsers cache them.
using AssetTable = std::map<std::string, Asset>;

// The page that was built in (library keelson_dashboard_page); empty when KEELSON_DASHBOARD_PAGE is
// off.
AssetTable EmbeddedDashboardAssets();

// One plain page that says that the page was not built in, and where the API is.
AssetTable PlainDashboardAssets();

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_ASSETS_H_
