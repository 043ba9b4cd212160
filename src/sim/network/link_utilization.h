/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link utilisation over time: the rate of the messages on each link, reported at every change.
 */
#pragma once

#include "sim/network/network.h"

/* Link @link of the network carries @bytes_per_s from @time_ps on, a changed rate. Reports of one
 * link come in order of time. */
typedef void (*LhLinkSink)(void *data, uint32_t link, LhTime time_ps, double bytes_per_s);

typedef struct _LhLinkUtilization LhLinkUtilization;

/* For @links_count links. Caller frees. */
LhLinkUtilization *lh_link_utilization_new(uint32_t links_count, LhLinkSink sink, void *data);
void lh_link_utilization_free(LhLinkUtilization *load);

/* Adds message @flow to the links of @route, at rate 0. */
void lh_link_utilization_start(LhLinkUtilization *load, uint32_t flow, const LhRoute *route);

/* Changes the rate of the message from now on. */
void lh_link_utilization_rate(LhLinkUtilization *load, uint32_t flow, double bytes_per_s);

/* Removes the message: it moved at its rate until now; or, on links that carry one message after
 * another, at @bytes_per_s from @from_ps to @now. */
void lh_link_utilization_end(LhLinkUtilization *load, uint32_t flow);
void lh_link_utilization_end_alone(LhLinkUtilization *load, uint32_t flow, LhTime from_ps,
                                   LhTime now, double bytes_per_s);

/* Reports the links whose rates differ from the ones last reported. */
void lh_link_utilization_tell(LhLinkUtilization *load, LhTime now);
