/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an op on its device and with its peers: a kernel, or messages.
 */
#pragma once

#include "runtime/execution.h"

/*
 * An op runs in rounds: device work, then messages, then remaining device work. A compute op has
 * one round without messages, an exchange one round of messages only, a collective one or more.
 * Each function only enqueues; false if the run has failed.
 */
bool lh_run_begin_round(LhRunStream *stream, LhItem *item); /* creates item->messages */
bool lh_run_end_round(LhItem *item);                        /* after their arrival */
bool lh_run_has_round(const LhItem *item);

/* Prepares a message for posting; sets @post to false if a hook suppresses it. */
bool lh_run_ready_message(LhRunStream *stream, LhItem *item, LhMessage *message, bool *post);
