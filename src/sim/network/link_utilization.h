/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What links carry over time: the bytes/s of the messages on each, told whenever they change.
 */
#pragma once

#include "sim/network/network.h"

/* Link @link of the network carries @bytes_per_s from @time_ps on: another rate than before. For
 * each link in the order of time. */
typedef void (*LhLinkSink)(void *data, uint32_t link, LhTime time_ps, double bytes_per_s);

typedef struct _LhLinkUtilization LhLinkUtilization;

/* Of @links_count links. Caller frees. */
LhLinkUtilization *lh_link_utilization_new(uint32_t links_count, LhLinkSink sink, void *data);
void lh_link_utilization_free(LhLinkUtilization *load);

/* Message @flow is on @route, at a rate of 0. */
void lh_link_utilization_start(LhLinkUtilization *load, uint32_t flow, const LhRoute *route);

/* It has another rate from now on. */
void lh_link_utilization_rate(LhLinkUtilization *load, uint32_t flow, double bytes_per_s);

/* It has left: at its rate until now, or, of links that carry one message after another, at
 * @bytes_per_s from @from_ps to @now. */
void lh_link_utilization_end(LhLinkUtilization *load, uint32_t flow);
void lh_link_utilization_end_alone(LhLinkUtilization *load, uint32_t flow, LhTime from_ps,
                                   LhTime now, double bytes_per_s);

/* Tells of the links whose rates are others than when they were told last. */
void lh_link_utilization_tell(LhLinkUtilization *load, LhTime now);
