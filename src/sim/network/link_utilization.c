/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/link_utilization.h"

#include <math.h>

/* Sums of rates that differ by less are equal: the order of addition varies. */
#define SAME_SHARE 1e-9

typedef struct {
    double rate, told; /* bytes/s: current, last reported */
    uint32_t messages;
    bool touched;
} Link;

typedef struct {
    double rate;
    uint32_t links[LH_ROUTE_MAX];
    uint32_t links_count;
} Message;

struct _LhLinkUtilization {
    LhLinkSink sink;
    void *data;
    Link *links;
    GArray *messages; /* of Message, by flow */
    GArray *touched;  /* of uint32_t: links whose rate may differ from the last report */
};

LhLinkUtilization *
lh_link_utilization_new(uint32_t links_count, LhLinkSink sink, void *data)
{
    LhLinkUtilization *load = g_new(LhLinkUtilization, 1);

    *load = (LhLinkUtilization){ .sink = sink,
                                 .data = data,
                                 .links = g_new0(Link, links_count),
                                 .messages = g_array_new(FALSE, TRUE, sizeof(Message)),
                                 .touched = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    return load;
}

void
lh_link_utilization_free(LhLinkUtilization *load)
{
    if (load == NULL)
        return;
    g_array_unref(load->messages);
    g_array_unref(load->touched);
    g_free(load->links);
    g_free(load);
}

static Message *
message_of(LhLinkUtilization *load, uint32_t flow)
{
    if (flow >= load->messages->len)
        g_array_set_size(load->messages, flow + 1);
    return &g_array_index(load->messages, Message, flow);
}

static Link *
touched_link(LhLinkUtilization *load, uint32_t id)
{
    Link *link = &load->links[id];

    if (!link->touched)
        g_array_append_val(load->touched, id);
    link->touched = true;
    return link;
}

void
lh_link_utilization_start(LhLinkUtilization *load, uint32_t flow, const LhRoute *route)
{
    Message *message = message_of(load, flow);

    message->rate = 0;
    message->links_count = route->links_count;
    for (uint32_t i = 0; i < route->links_count; i++) {
        message->links[i] = route->links[i];
        load->links[route->links[i]].messages++;
    }
}

void
lh_link_utilization_rate(LhLinkUtilization *load, uint32_t flow, double bytes_per_s)
{
    Message *message = message_of(load, flow);

    for (uint32_t i = 0; i < message->links_count; i++)
        touched_link(load, message->links[i])->rate += bytes_per_s - message->rate;
    message->rate = bytes_per_s;
}

/* A link without messages has a rate of exactly 0. */
static void
leave(LhLinkUtilization *load, const Message *message)
{
    for (uint32_t i = 0; i < message->links_count; i++) {
        Link *link = touched_link(load, message->links[i]);

        if (--link->messages == 0)
            link->rate = 0;
    }
}

void
lh_link_utilization_end(LhLinkUtilization *load, uint32_t flow)
{
    lh_link_utilization_rate(load, flow, 0);
    leave(load, message_of(load, flow));
}

void
lh_link_utilization_end_alone(LhLinkUtilization *load, uint32_t flow, LhTime from_ps, LhTime now,
                              double bytes_per_s)
{
    const Message *message = message_of(load, flow);

    for (uint32_t i = 0; i < message->links_count && now > from_ps; i++) {
        load->sink(load->data, message->links[i], from_ps, bytes_per_s);
        load->sink(load->data, message->links[i], now, 0);
    }
    leave(load, message);
}

void
lh_link_utilization_tell(LhLinkUtilization *load, LhTime now)
{
    for (guint i = 0; i < load->touched->len; i++) {
        const uint32_t id = g_array_index(load->touched, uint32_t, i);
        Link *link = &load->links[id];

        link->touched = false;
        if (fabs(link->rate - link->told) <= SAME_SHARE * link->told)
            continue;
        link->told = link->rate;
        load->sink(load->data, id, now, link->rate);
    }
    g_array_set_size(load->touched, 0);
}
