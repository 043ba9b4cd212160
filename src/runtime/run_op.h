/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an op asks of its device and its peers: a kernel, or messages.
 */
#pragma once

#include "runtime/execution.h"

/*
 * An op is done in rounds: the device is asked for something, then messages travel, then it is
 * asked for what is left. A compute op has one round and no messages, an exchange one round with
 * nothing else, a collective one or two. Each function only enqueues; false: the run has failed.
 */
bool lh_run_begin_round(LhRunStream *stream, LhItem *item); /* makes item->messages */
bool lh_run_end_round(LhItem *item);                        /* they have arrived */
bool lh_run_has_round(const LhItem *item);

/* How a message is posted: what is behind it is made ready; @post is set to false if a hook does
 * not let it be posted. */
bool lh_run_ready_message(LhRunStream *stream, LhItem *item, LhMessage *message, bool *post);
