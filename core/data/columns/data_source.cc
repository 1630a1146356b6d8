#include "core/data/columns/data_source.h"

namespace keelson {

bool HasNamedFiles(const v1::DataConfig& data) {
  return data.has_libsvm() || data.has_libffm() || data.has_criteo() || data.has_columnar() ||
         HasColumns(data);
}

bool HasColumns(const v1::DataConfig& data) { return data.has_csv() || HasLists(data); }

bool HasLists(const v1::DataConfig& data) {
  return data.has_tf_record() || data.has_npz() || data.has_parquet();
}

}  // namespace keelson
