/*
 * What links carry over time: the bytes/s of the messages on each, told whenever they change.
 */
#pragma once

#include "sim/network/network.h"

/* Link @link of the network carries @bytes_per_s from @time_ps on: another rate than before. For
 * each link in the order of time. */
typedef void (*LhLinkSink)(void *data, uint32_t link, LhTime time_ps, double bytes_per_s);

typedef struct _LhLoad LhLoad;

/* Of @links_count links. Caller frees. */
LhLoad *lh_load_new(uint32_t links_count, LhLinkSink sink, void *data);
void lh_load_free(LhLoad *load);

/* Message @flow is on @route, at a rate of 0. */
void lh_load_start(LhLoad *load, uint32_t flow, const LhRoute *route);

/* It has another rate from now on. */
void lh_load_rate(LhLoad *load, uint32_t flow, double bytes_per_s);

/* It has left: at its rate until now, or, of links that carry one message after another, at
 * @bytes_per_s from @from_ps to @now. */
void lh_load_end(LhLoad *load, uint32_t flow);
void lh_load_end_alone(LhLoad *load, uint32_t flow, LhTime from_ps, LhTime now, double bytes_per_s);

/* Tells of the links whose rates are others than when they were told last. */
void lh_load_tell(LhLoad *load, LhTime now);
