/* Describes what the ranks of a run wait for when nothing completes any more. */
#include "runtime/execution.h"

#include "program/text.h"

#define BLOCKED_LINES_MAX 64

static void
describe_messages(const LhExecution *x, const LhRunner *rank, const LhItem *item, GString *out)
{
    g_autofree char *text = lh_op_text(x->program, &item->op);

    for (uint32_t i = 0; i < item->messages_count; i++) {
        const LhMessage *m = &item->messages[i];

        if (m->done)
            continue;
        g_string_append_printf(
            out, "\n  rank %u, %s: %s rank %u, slot %s (tag %u, %" G_GUINT64_FORMAT " bytes)",
            rank->index, text, m->send ? "sends to" : "receives from", m->peer,
            m->slot < 0 ? "?" : x->program->slots[m->slot].name, m->tag, m->bytes);
    }
}

static void
describe_stream(const LhExecution *x, const LhRunner *rank, const LhRunStream *s, GString *out)
{
    const LhItem *item = s->first;
    g_autofree char *text = NULL;

    if (item == NULL)
        return;
    if (s->running && item->pending > 0) {
        describe_messages(x, rank, item, out);
        return;
    }
    text = lh_op_text(x->program, &item->op);
    if (s->running) {
        g_string_append_printf(out, "\n  rank %u, %s: is running", rank->index, text);
        return;
    }
    for (unsigned i = 0; i < item->op.after_count; i++) {
        if (!rank->done[item->op.after[i]]) {
            g_string_append_printf(out, "\n  rank %u, %s: waits for op %u, which it comes after",
                                   rank->index, text, item->op.after[i]);
            return;
        }
    }
}

static bool
is_blocked(const LhExecution *x, const LhRunner *rank)
{
    if (!rank->ended)
        return true;
    for (uint32_t s = 0; s < x->program->streams_count; s++) {
        if (rank->streams[s].first != NULL)
            return true;
    }
    return false;
}

char *
lh_execution_describe_blocked(LhExecution *x)
{
    GString *out = g_string_new(NULL);
    uint32_t described = 0, left_out = 0;

    for (uint32_t r = 0; r < x->place.count; r++) {
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
