// For RowTable and RowCutReader alone.
#ifndef KEELSON_CORE_TABLE_ROW_TABLE_CUT_H_
#define KEELSON_CORE_TABLE_ROW_TABLE_CUT_H_

#include "core/table/row_index.h"
#include "core/table/row_slab.h"
#include "core/table/row_table.h"

namespace keelson {

// An open cut: the rows that have changed since, as they were.
struct RowTable::Cut {
  explicit Cut(const Options& options)
      : images(options.memory, options.layout->stride(), options.max_images),
        index(options.memory, &images, options.salt) {}

  RowSlab images;
  RowIndex index;
  // There was no place or no memory for an image.
  bool incomplete = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_TABLE_CUT_H_
