// The forwarder: takes the frames that enter by each port of a rail and sends them out of the others as wire.h says.
#pragma once
#include <stdint.h>

#include "common/outcome.h"

namespace impair {

using common::Outcome;

/**
 * Runs in the network namespace of the ports (interface names) until it is told `end` on descriptor 0, or that is closed. Orders, one a
 * line, each answered by a line on descriptor 1, `ok` unless said otherwise:
 *   set PORT LOSS DELAY_NS SPREAD_NS REORDER HOLD_NS FLIP   what happens to what enters by that port (a number from 0); chances of 2^32
 *   on            frames are taken from now on; before, none is
 *   stats         {"ports":[{"taken":0, ...}]}
 *   end           what it holds is sent at once, in the order in which it is due, and it returns
 * An order that makes no sense is answered by a line that begins with `no`. Answers 0, or what was refused before the first order.
 */
Outcome forward(const char* const* ports, int portCount, uint64_t seed);

}  // namespace impair
