// The values of a server's answer, into the arrays where they belong.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_INCOMING_VALUES_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_INCOMING_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/plan/transfer_plan.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// `cursor` stands at the payload, the rest of the rope, which holds the blocks of `answer`. They
// are decoded into arrays of elements, and copied into arrays of bytes. `known_versions` (per block
// of `plan`) become the answer's. INTERNAL, and nothing is written: a block that was not asked for
// or stands in another order, a payload of another size than its blocks, a block missing although
// the caller does not know it (version 0) or, with `whole`, missing at all.
absl::Status TakeValues(const PlannedMessage& plan, const BulkResponse& answer, bool whole,
                        ByteCursor* cursor, const ParameterArrays& values,
                        std::vector<uint64_t>* known_versions);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_INCOMING_VALUES_H_
