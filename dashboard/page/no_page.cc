#include "dashboard/assets.h"

namespace keelson {

AssetTable EmbeddedDashboardAssets() { return {}; }

}  // namespace keelson
