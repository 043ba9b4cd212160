/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual ranks: all ranks share one device, and a message is a copy on the receiver's stream. It
 * is enqueued when both ends have been posted, after the start of both groups; the sender's stream
 * continues when all it sends has been copied. This exercises numerics, memory and message
 * matching. Its times predict nothing: copies that one rank receives are serialised.
 */
#include "runtime/api/links.h"

typedef struct _Group Group;

/* A posted end of a message. */
typedef struct _MessageEnd MessageEnd;
struct _MessageEnd {
    MessageEnd *next; /* in the list of unmatched ends, oldest first */
    Group *group;
    LhMessage *message;
    /* Mark after the copy on the receiver's stream; only for sends, until the group continues. */
    LhDeviceMark copied;
    LhDeviceState *copied_on;
};

typedef struct {
    const LhRunDevice *device;
    MessageEnd *first, *last;
    Group *groups; /* groups still waiting */
} Copies;

/* Messages posted together by one rank on one stream. */
struct _Group {
    Group *next;
    LhDeviceState *device;
    LhDeviceStream stream;
    LhDeviceMark start;
    uint32_t count, waiting;
    MessageEnd ends[];
};

static void *
copies_open(const LhLinksParams *params, GError **error)
{
    Copies *c = g_new0(Copies, 1);

    (void)error;
    c->device = params->device;
    return c;
}

static void *
copies_join(void *links, const LhLinksRank *rank, GError **error)
{
    (void)rank;
    (void)error;
    return links;
}

static bool
are_ends_of_one(const LhMessage *a, const LhMessage *b)
{
    return a->send != b->send && a->channel == b->channel && a->rank == b->peer &&
           a->peer == b->rank;
}

/* Removes the oldest match of @end from the list, or adds @end to it. */
static MessageEnd *
meet_end(Copies *c, MessageEnd *end)
{
    MessageEnd *before = NULL;

    for (MessageEnd *other = c->first; other != NULL; before = other, other = other->next) {
        if (!are_ends_of_one(other->message, end->message))
            continue;
        if (before == NULL)
            c->first = other->next;
        else
            before->next = other->next;
        if (c->last == other)
            c->last = before;
        return other;
    }
    end->next = NULL;
    if (c->last == NULL)
        c->first = end;
    else
        c->last->next = end;
    c->last = end;
    return NULL;
}

/* Enqueues the copies of a message, whose two ends may be cut into pieces differently. */
static bool
enqueue_copies(const Copies *c, const LhMessage *from, const LhMessage *to, GError **error)
{
    LhPieceWalk walk = { 0 };
    LhPieceCopy copy;

    while (lh_piece_walk(&walk, from, to, &copy)) {
        if (!c->device->copy(to->device, copy.to, copy.from, copy.bytes, to->stream, error))
            return false;
    }
    return true;
}

static bool
copy_message(const Copies *c, MessageEnd *send, MessageEnd *receive, GError **error)
{
    const LhMessage *to = receive->message;

    if (!c->device->wait(to->device, to->stream, send->group->start, error) ||
        !enqueue_copies(c, send->message, to, error))
        return false;
    send->copied = c->device->mark(to->device, to->stream, error);
    send->copied_on = to->device;
    send->group->waiting--;
    receive->group->waiting--;
    return send->copied != NULL;
}

static void
group_free(Copies *c, Group *g)
{
    Group **at = &c->groups;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->ends[i].copied != NULL)
            c->device->unmark(g->ends[i].copied_on, g->ends[i].copied);
    }
    if (g->start != NULL)
        c->device->unmark(g->device, g->start);
    g_free(g);
}

/* Completes a group whose copies are all enqueued; its stream continues after them. */
static bool
release_group(Copies *c, Group *g, GError **error)
{
    if (g->waiting > 0)
        return true;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->ends[i].copied != NULL &&
            !c->device->wait(g->device, g->stream, g->ends[i].copied, error))
            return false;
    }
    for (uint32_t i = 0; i < g->count; i++)
        g->ends[i].message->complete(g->ends[i].message, NULL);
    group_free(c, g);
    return true;
}

static bool
post(Copies *c, MessageEnd *end, GError **error)
{
    MessageEnd *other = meet_end(c, end);
    MessageEnd *send = end->message->send ? end : other;
    MessageEnd *receive = end->message->send ? other : end;

    if (other == NULL)
        return true;
    return copy_message(c, send, receive, error) &&
           (other->group == end->group || release_group(c, other->group, error));
}

static bool
copies_exchange(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
                GError **error)
{
    Copies *c = joined;
    Group *g;

    (void)op;
    if (count == 0)
        return true;
    g = g_malloc0(sizeof(*g) + count * sizeof(g->ends[0]));
    g->device = messages[0]->device;
    g->stream = messages[0]->stream;
    g->count = g->waiting = count;
    g->next = c->groups;
    c->groups = g;
    g->start = c->device->mark(g->device, g->stream, error);
    if (g->start == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        g->ends[i] = (MessageEnd){ .group = g, .message = messages[i] };
    for (uint32_t i = 0; i < count; i++) {
        if (!post(c, &g->ends[i], error))
            return false;
    }
    return release_group(c, g, error);
}

static void
copies_leave(void *joined)
{
    (void)joined;
}

static void
copies_close(void *links)
{
    Copies *c = links;

    while (c->groups != NULL)
        group_free(c, c->groups);
    g_free(c);
}

const LhLinks lh_links_copies = {
    .name = "copies",
    .needs_both = true,
    .open = copies_open,
    .join = copies_join,
    .exchange = copies_exchange,
    .leave = copies_leave,
    .close = copies_close,
};
