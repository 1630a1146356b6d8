// Writes the values of a server's answer into the variables' arrays.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_INCOMING_VALUES_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_INCOMING_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/plan/transfer_plan.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// `cursor` is at the payload, whose first `payload_bytes` have the blocks of `answer`. They are
// decoded into arrays of elements, or copied into arrays of bytes. `known_versions` (per block of
// `plan`) become the answer's. INTERNAL, and nothing is written: a block was not requested or is
// out of order, the payload has not the size of its blocks, or a block is missing (with `whole` any
// block, otherwise one of which the caller knows no version).
absl::Status TakeValues(const PlannedMessage& plan, const BulkResponse& answer, bool whole,
                        size_t payload_bytes, ByteCursor* cursor, const ParameterArrays& values,
                        std::vector<uint64_t>* known_versions);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_INCOMING_VALUES_H_
