/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs as GOAL (Hoefler, Siebert, Lumsdaine 2009), the text format of LogGOPSim and ATLAHS.
 * Each rank has kernels as calculations with a duration in nanoseconds, sends, receives, and
 * dependencies. Streams are processors, so they overlap. Op 12 has the label o12; if it consists of
 * several messages, these are o12_0, o12_1, ..., and o12 is their completion.
 */
#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "report/export/export_format.h"
#include "report/export/export_tags.h"
#include "report/export/export_walk.h"
#include "sim/network/collectives/collectives.h"
#include "sim/network/collectives/script.h"

#define NO_PART UINT32_MAX

typedef struct {
    LhExportWalk walk;
    LhCollectives *collectives;
    LhOutputStream *stream; /* NULL once complete */
    GString *text;          /* not yet written */
    LhExportTags *tags;     /* of the current rank */
} Goal;

/* An op that consists of several statements. */
typedef struct {
    Goal *goal;
    const LhOp *op;
    uint32_t communicator;
    bool gate;           /* has a statement of its own that waits for what the op waits for */
    uint32_t joined;     /* the last part that all later ones wait for; NO_PART: none */
    GByteArray *awaited; /* by part: whether a later part waits for it */
} Parts;

static void
goal_clear(Goal *goal)
{
    lh_output_discard(goal->stream);
    lh_export_walk_clear(&goal->walk);
    lh_collectives_free(goal->collectives);
    if (goal->text != NULL)
        g_string_free(goal->text, TRUE);
    if (goal->tags != NULL)
        lh_export_tags_free(goal->tags);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Goal, goal_clear)

static void
write_text(Goal *goal)
{
    lh_output_write(goal->stream, goal->text->str, goal->text->len);
    g_string_truncate(goal->text, 0);
}

/* --- statements ---------------------------------------------------------------------------------
 */

/* Writes a calculation, in nanoseconds, rounded to nearest. */
static void
put_calculation(GString *out, LhTime time_ps, const LhOp *op)
{
    g_string_append_printf(out, "calc %" G_GINT64_FORMAT " cpu %u\n",
                           (gint64)((time_ps + 500) / 1000), op->stream);
}

static void
put_waits(const Goal *goal, const LhOp *op, const char *suffix)
{
    for (uint32_t i = 0; i < goal->walk.waits_count; i++)
        g_string_append_printf(goal->text, "o%u%s requires o%u\n", op->id, suffix,
                               goal->walk.waits[i]);
}

/* Writes a message. GOAL has no empty messages: one of zero bytes only keeps its place in the
 * order. */
static void
put_message(Goal *goal, const LhOp *op, uint32_t communicator, const LhScriptMessage *m)
{
    const bool send = m->kind == LH_SCRIPT_SEND;

    if (m->kind == LH_SCRIPT_JOIN || m->bytes == 0) {
        put_calculation(goal->text, 0, op);
        return;
    }
    g_string_append_printf(goal->text, "%s %" G_GUINT64_FORMAT "b %s %u tag %u cpu %u\n",
                           send ? "send" : "recv", m->bytes, send ? "to" : "from", m->peer,
                           lh_export_tag(goal->tags, communicator, m->peer, send), op->stream);
}

/* --- ops of several statements ------------------------------------------------------------------
 */

static void
put_part_wait(const Parts *parts, uint32_t part, uint32_t after)
{
    g_string_append_printf(parts->goal->text, "o%u_%u requires o%u_%u\n", parts->op->id, part,
                           parts->op->id, after);
    parts->awaited->data[after] = 1;
}

/* Waits for all parts since the last join. */
static void
put_join_waits(const Parts *parts, uint32_t part)
{
    for (uint32_t i = parts->joined == NO_PART ? 0 : parts->joined; i < part; i++)
        if (parts->awaited->data[i] == 0)
            put_part_wait(parts, part, i);
}

static void
put_first_waits(const Parts *parts, uint32_t part)
{
    g_autofree char *suffix = g_strdup_printf("_%u", part);

    if (parts->gate)
        g_string_append_printf(parts->goal->text, "o%u_%u requires o%u_begin\n", parts->op->id,
                               part, parts->op->id);
    else
        put_waits(parts->goal, parts->op, suffix);
}

/* Adds the next part; a sink of LhScriptMessage. */
static void
add_part(void *data, const LhScriptMessage *m)
{
    static const uint8_t no = 0;
    Parts *parts = data;
    Goal *goal = parts->goal;
    const uint32_t part = parts->awaited->len;

    g_byte_array_append(parts->awaited, &no, 1);
    g_string_append_printf(goal->text, "o%u_%u: ", parts->op->id, part);
    put_message(goal, parts->op, parts->communicator, m);
    for (uint32_t i = 0; i < m->after_count; i++)
        put_part_wait(parts, part, m->after[i]);
    if (m->kind == LH_SCRIPT_JOIN) {
        put_join_waits(parts, part);
        parts->joined = part;
    } else if (m->after_count == 0 && parts->joined != NO_PART) {
        put_part_wait(parts, part, parts->joined);
    } else if (m->after_count == 0) {
        put_first_waits(parts, part);
    }
    if (goal->text->len >= LH_EXPORT_PIECE_BYTES)
        write_text(goal);
}

static Parts
begin_parts(Goal *goal, const LhOp *op, uint32_t communicator)
{
    Parts parts = { .goal = goal,
                    .op = op,
                    .communicator = communicator,
                    .gate = goal->walk.waits_count > 1,
                    .joined = NO_PART,
                    .awaited = g_byte_array_new() };

    if (parts.gate) {
        g_string_append_printf(goal->text, "o%u_begin: ", op->id);
        put_calculation(goal->text, 0, op);
        put_waits(goal, op, "_begin");
    }
    return parts;
}

static void
end_parts(Parts *parts)
{
    GString *text = parts->goal->text;

    g_string_append_printf(text, "o%u: ", parts->op->id);
    put_calculation(text, 0, parts->op);
    if (parts->awaited->len == 0 && parts->gate)
        g_string_append_printf(text, "o%u requires o%u_begin\n", parts->op->id, parts->op->id);
    else if (parts->awaited->len == 0)
        put_waits(parts->goal, parts->op, "");
    for (uint32_t i = 0; i < parts->awaited->len; i++)
        if (parts->awaited->data[i] == 0)
            g_string_append_printf(text, "o%u requires o%u_%u\n", parts->op->id, parts->op->id, i);
    g_byte_array_unref(parts->awaited);
}

/* --- ops ----------------------------------------------------------------------------------------
 */

static LhScriptMessage
message_of(const LhPart *part)
{
    return (LhScriptMessage){ .kind = part->send ? LH_SCRIPT_SEND : LH_SCRIPT_RECEIVE,
                              .peer = part->peer,
                              .bytes = part->wire_bytes };
}

static void
put_exchange(Goal *goal, const LhOp *op)
{
    const LhPart *messages = &goal->walk.buffer.parts[op->exchange.parts_first];
    Parts parts;

    if (op->exchange.parts_count == 1) {
        const LhScriptMessage only = message_of(&messages[0]);

        g_string_append_printf(goal->text, "o%u: ", op->id);
        put_message(goal, op, op->communicator, &only);
        put_waits(goal, op, "");
        return;
    }
    parts = begin_parts(goal, op, op->communicator);
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhScriptMessage m = message_of(&messages[i]);

        add_part(&parts, &m);
    }
    end_parts(&parts);
}

static bool
put_collective(Goal *goal, const LhOp *op, GError **error)
{
    const LhExportWalk *walk = &goal->walk;
    const LhScriptCall call = { walk->program, walk->rank, op, walk->buffer.counts };
    const uint64_t communicator =
        (uint64_t)LH_EXPORT_EXCHANGES + lh_collectives_number(goal->collectives, &call);
    Parts parts;

    if (communicator >> (32 - LH_EXPORT_TAG_BITS) != 0) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_NO,
            "GOAL tags have room for at most %u communicators of collectives; the program has more",
            (1u << (32 - LH_EXPORT_TAG_BITS)) - LH_EXPORT_EXCHANGES);
        return false;
    }
    parts = begin_parts(goal, op, (uint32_t)communicator);
    lh_collectives_script(goal->collectives, &call, add_part, &parts);
    end_parts(&parts);
    return true;
}

static bool
put_op(void *data, const LhOp *op, GError **error)
{
    Goal *goal = data;

    if (op->kind == LH_OP_COMPUTE) {
        g_string_append_printf(goal->text, "o%u: ", op->id);
        put_calculation(goal->text, lh_export_kernel_ps(&goal->walk, op), op);
        put_waits(goal, op, "");
    } else if (op->kind == LH_OP_EXCHANGE) {
        put_exchange(goal, op);
    } else if (!put_collective(goal, op, error)) {
        return false;
    }
    if (goal->text->len >= LH_EXPORT_PIECE_BYTES)
        write_text(goal);
    return true;
}

static void
put_heading(Goal *goal)
{
    const LhProgram *program = goal->walk.program;
    g_autofree char *name = lh_escaped_line(program->name);
    g_autofree char *cluster = lh_escaped_line(goal->walk.setup->topology->name);

    g_string_append_printf(goal->text, "num_ranks %u\n\n// %s on %s; times in ns\n",
                           lh_program_ranks(program), name, cluster);
}

static bool
write_goal(const char *path, const LhSetup *setup, const LhProgram *program, GError **error)
{
    g_auto(Goal) goal = { .stream = lh_output_open(path, error) };

    if (goal.stream == NULL)
        return false;
    lh_export_walk_init(&goal.walk, setup, program);
    goal.collectives =
        lh_collectives_new(&setup->network, setup->device, setup->collectives, true, NULL);
    goal.text = g_string_sized_new(LH_EXPORT_PIECE_BYTES);
    goal.tags = lh_export_tags_new();
    put_heading(&goal);
    for (uint32_t r = 0; r < lh_program_ranks(program); r++) {
        g_string_append_printf(goal.text, "\nrank %u {\n", r);
        lh_export_tags_clear(goal.tags);
        if (!lh_export_walk_rank(&goal.walk, r, put_op, &goal, error))
            return false;
        g_string_append(goal.text, "}\n");
    }
    write_text(&goal);
    return lh_output_close(g_steal_pointer(&goal.stream), error);
}

const LhExportFormat lh_export_goal = { .ending = ".goal", .write = write_goal };
