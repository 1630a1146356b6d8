// The rows of embedding tables as a worker sees them: those of one batch at a time.
#ifndef KEELSON_CORE_CLIENT_SERVICES_TABLE_ROWS_H_
#define KEELSON_CORE_CLIENT_SERVICES_TABLE_ROWS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/table/row_id.h"

namespace keelson {

// A part of ParameterClient, used by the same thread. Tables are those of the placement, in its
// order (by name). One step:
//   Begin(step)
//     Want(ids of the next batch)   if they are known
//     Offer(gradients)              of the rows in values(); the client sends them with the
//     variables'
//   End()                           values() are the next batch's rows
// A step's push and the pull of the next batch's rows are one exchange: the servers apply, then
// read, so that the rows have this step's update. Where ids() are not those of the batch to be
// computed (its ids were not known, another batch was wanted, the step had an Aggregation), the
// caller wants them and calls ParameterClient::Pull. Reading creates no rows: what a table has no
// row for has its initial values.
class TableRows {
 public:
  virtual ~TableRows() = default;

  // The batch whose rows the next Pull or End brings; it replaces one that was wanted before. At
  // the latest before Offer, to come with the step. INVALID_ARGUMENT: ids are not of as many
  // tables, not distinct or not in row order (RowIds); or the batch has more rows of one partition
  // than a message can carry.
  virtual absl::Status Want(std::shared_ptr<const RowIds> ids) = 0;

  // Whose rows values() are; null: nobody's. As Want was given them.
  virtual const std::shared_ptr<const RowIds>& ids() const = 0;
  // Per table a matrix [ids, dim], in the order of its ids. They stay until End or Pull brings
  // those of a batch that was wanted; a Pull without one brings the same again, as they are now.
  virtual absl::Span<const absl::Span<const float>> values() const = 0;

  // The gradients of this step's rows, laid out as values(); they have been read when it returns.
  // Once in each step, also for a batch without ids, before NextValues and End, which otherwise
  // fail (FAILED_PRECONDITION). INVALID_ARGUMENT: they are not of as many tables or elements as
  // values().
  virtual absl::Status Offer(absl::Span<const absl::Span<const float>> gradients) = 0;
  // Likewise, of the rows of `ids`, whosever values() are; no rows need have been fetched. Also
  // INVALID_ARGUMENT as Want.
  virtual absl::Status OfferOf(std::shared_ptr<const RowIds> ids,
                               absl::Span<const absl::Span<const float>> gradients) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_TABLE_ROWS_H_
