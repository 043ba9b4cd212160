/* SPDX-License-Identifier: Apache-2.0 */
/* Describes what the ranks of a run wait for when nothing completes. */
#include "runtime/deadlock_report.h"

#include "program/op_names.h"

#define BLOCKED_LINES_MAX 64
#define STANDING_US 1000000 /* between two progress reports */

/* Lists the messages of @item that are not done, or all with @all. */
static void
describe_messages(const LhExecution *x, const LhRunner *rank, const LhItem *item, bool all,
                  GString *out)
{
    g_autofree char *text = lh_op_text(x->program, &item->op);

    for (uint32_t i = 0; i < item->messages_count; i++) {
        const LhMessage *m = &item->messages[i];

        if (m->done && !all)
            continue;
        g_string_append_printf(
            out, "\n  rank %u, %s: %s rank %u, slot %s (tag %u, %" G_GUINT64_FORMAT " bytes)",
            rank->index, text, m->send ? "sends to" : "receives from", m->peer,
            m->slot < 0 ? "?" : x->program->slots[m->slot].name, m->tag, m->bytes);
    }
}

/* Names the first incomplete dependency of @item; false: there is none. */
static bool
describe_after(const LhExecution *x, const LhRunner *rank, const LhItem *item, GString *out)
{
    g_autofree char *text = lh_op_text(x->program, &item->op);

    for (unsigned i = 0; i < item->op.after_count; i++) {
        if (rank->done[item->op.after[i]])
            continue;
        g_string_append_printf(out, "\n  rank %u, %s: waits for op %u, on which it depends",
                               rank->index, text, item->op.after[i]);
        return true;
    }
    return false;
}

static void
describe_running(const LhExecution *x, const LhRunner *rank, const LhItem *item, GString *out)
{
    g_autofree char *text = lh_op_text(x->program, &item->op);

    g_string_append_printf(out, "\n  rank %u, %s: is running", rank->index, text);
}

/* Describes a submitted op. Its messages are one operation to the device, so the missing one cannot
 * be identified. */
static void
describe_submitted(const LhExecution *x, const LhRunner *rank, const LhRunStream *s, GString *out)
{
    const LhItem *item = s->flying;

    if (s->at.device->passed(s->at.state, item->start, NULL) == 0 &&
        describe_after(x, rank, item, out))
        return;
    if (item->messages_count > 0)
        describe_messages(x, rank, item, true, out);
    else
        describe_running(x, rank, item, out);
}

static void
describe_stream(const LhExecution *x, const LhRunner *rank, const LhRunStream *s, GString *out)
{
    const LhItem *item = s->first;

    if (s->flying != NULL)
        describe_submitted(x, rank, s, out);
    else if (item != NULL && s->running && item->pending > 0)
        describe_messages(x, rank, item, false, out);
    else if (item != NULL && s->running)
        describe_running(x, rank, item, out);
    else if (item != NULL)
        describe_after(x, rank, item, out);
}

static bool
is_blocked(const LhExecution *x, const LhRunner *rank)
{
    if (!rank->ended)
        return true;
    for (uint32_t s = 0; s < x->program->streams_count; s++) {
        if (rank->streams[s].first != NULL || rank->streams[s].flying != NULL)
            return true;
    }
    return false;
}

char *
lh_execution_describe_blocked(LhExecution *x, uint32_t first, uint32_t count)
{
    GString *out = g_string_new(NULL);
    uint32_t described = 0, left_out = 0;

    for (uint32_t r = first; r < first + count; r++) {
        LhRunner *rank = &x->ranks[r];

        pthread_mutex_lock(&rank->lock);
        if (is_blocked(x, rank) && described++ >= BLOCKED_LINES_MAX) {
            left_out++;
        } else if (is_blocked(x, rank)) {
            for (uint32_t s = 0; s < x->program->streams_count; s++)
                describe_stream(x, rank, &rank->streams[s], out);
            if (rank->host_waits)
                g_string_append_printf(out,
                                       "\n  rank %u, host: waits for its device before op %u; the "
                                       "oldest op that is not complete is %u",
                                       rank->index, rank->host_op, rank->first_open);
        }
        pthread_mutex_unlock(&rank->lock);
    }
    if (left_out > 0)
        g_string_append_printf(out, "\n  and %u more ranks", left_out);
    return g_string_free(out, FALSE);
}

/* ---- ranks waited for ---- */

/* @all: also peers of messages that are done; for a submitted op, done only means handed over. */
static void
add_awaited(const LhExecution *x, GArray *awaited, const LhItem *item, bool all)
{
    for (uint32_t i = 0; i < item->messages_count; i++) {
        const LhMessage *m = &item->messages[i];
        bool known = (m->done && !all) || m->peer - x->place.first < x->place.count;

        for (guint at = 0; !known && at < awaited->len; at++)
            known = g_array_index(awaited, uint32_t, at) == m->peer;
        if (!known)
            g_array_append_val(awaited, m->peer);
    }
}

GArray *
lh_execution_awaited(LhExecution *x)
{
    GArray *awaited = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (uint32_t r = 0; r < x->place.count; r++) {
        LhRunner *rank = &x->ranks[r];

        pthread_mutex_lock(&rank->lock);
        for (uint32_t s = 0; s < x->program->streams_count; s++) {
            const LhRunStream *stream = &rank->streams[s];

            if (stream->flying != NULL)
                add_awaited(x, awaited, stream->flying, true);
            else if (stream->first != NULL && stream->running && stream->first->pending > 0)
                add_awaited(x, awaited, stream->first, false);
        }
        pthread_mutex_unlock(&rank->lock);
    }
    return awaited;
}

void
lh_execution_say_standing(LhExecution *x, bool now)
{
    const LhControl *control = x->params->backend->control;
    const gint64 now_us = g_get_monotonic_time();
    g_autoptr(GArray) awaited = NULL;
    g_autofree char *text = NULL;
    uint64_t ops = 0;

    if (control->standing == NULL || (!now && now_us - x->said_us < STANDING_US))
        return;
    x->said_us = now_us;
    awaited = lh_execution_awaited(x);
    for (uint32_t r = 0; r < x->place.count; r++) {
        pthread_mutex_lock(&x->ranks[r].lock);
        ops += x->ranks[r].counted.ops;
        pthread_mutex_unlock(&x->ranks[r].lock);
    }
    text = g_strdup_printf("%" G_GUINT64_FORMAT " ops of its program are complete", ops);
    control->standing(x->control, text, (const uint32_t *)(const void *)awaited->data,
                      awaited->len);
}
