/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchanges of a program as an algorithm in MSCCL's XML: an all-gather made of messages.
 * Kernels are left out, except copies, whose targets hold what their sources do. So a program can
 * be exported if its messages carry only unmodified parts of one input, until every rank has had
 * every part once, such as the forward pass of ring attention.
 *
 * The program is executed symbolically, tracking the parts that every buffer holds. A part has a
 * fixed place in the gathered buffer, where it is received and sent from. A rank has one
 * threadblock per peer that it sends to, and one per peer that it receives from. A step sends
 * contiguous parts, and waits for the step that received them. Limits are those of MSCCL's parser.
 */
#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "report/export/export_format.h"

#define STEPS_MAX 63  /* per threadblock */
#define CHUNKS_MAX 71 /* per step */
#define BLOCKS_MAX 32 /* per GPU, on its only channel */
#define NOWHERE UINT32_MAX

/* Content of a cell: a cell of some rank's input. */
typedef struct {
    uint32_t rank; /* NOWHERE: nothing yet, or computed data */
    uint32_t cell;
} Content;

typedef enum {
    STEP_SEND,
    STEP_RECEIVE,
    STEP_WAIT,
} StepKind;

typedef struct {
    StepKind kind;
    uint32_t first, count; /* range of chunks in the gathered buffer */
    uint32_t block, step;  /* of the same rank, to wait for; NOWHERE: none */
    bool awaited;
} Step;

typedef struct {
    uint32_t peer;
    bool send;
    GArray *steps; /* of Step */
} Block;

typedef struct {
    LhCursor cursor;
    LhOpBuffer buffer; /* of the current step of the program */
    uint32_t op;       /* next op of that step */
    uint32_t received; /* messages of that op received so far; its sends are done */
    bool sent, ended;
    Content *cells;
    GArray *blocks;      /* of Block */
    GHashTable *arrived; /* by chunk + 1: block and step, counted from (1, 0) */
} Rank;

typedef struct {
    const LhProgram *program;
    Rank *ranks;
    uint32_t ranks_count;
    GHashTable *messages; /* of Channel: messages sent and not yet received */
    uint32_t slot;        /* the gathered input; NOWHERE: nothing sent yet */
} Gather;

/* From one rank to another on a communicator; begins with its hash key. */
typedef struct {
    gint64 key;
    GQueue *messages; /* of GArray of Content */
} Channel;

static void
block_clear(gpointer data)
{
    g_array_unref(((Block *)data)->steps);
}

static void
message_free(gpointer data)
{
    g_array_unref(data);
}

static void
channel_free(gpointer data)
{
    Channel *channel = data;

    g_queue_free_full(channel->messages, message_free);
    g_free(channel);
}

static void
gather_clear(Gather *g)
{
    for (uint32_t r = 0; r < g->ranks_count; r++) {
        lh_op_buffer_clear(&g->ranks[r].buffer);
        g_free(g->ranks[r].cells);
        g_array_unref(g->ranks[r].blocks);
        g_hash_table_unref(g->ranks[r].arrived);
    }
    g_free(g->ranks);
    g_hash_table_unref(g->messages);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Gather, gather_clear)

static void
hold_inputs(const Gather *g, uint32_t rank)
{
    for (uint32_t s = 0; s < g->program->slots_count; s++) {
        const LhSlot *slot = &g->program->slots[s];

        for (uint32_t i = 0; i < slot->parts; i++) {
            const uint32_t cell = slot->first_cell + i;

            g->ranks[rank].cells[cell] = (Content){ lh_slot_is_given(slot) ? rank : NOWHERE, cell };
        }
    }
}

static void
gather_init(Gather *g, const LhProgram *program)
{
    *g = (Gather){ .program = program,
                   .ranks_count = lh_program_ranks(program),
                   .messages =
                       g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, channel_free),
                   .slot = NOWHERE };
    g->ranks = g_new0(Rank, g->ranks_count);
    for (uint32_t r = 0; r < g->ranks_count; r++) {
        Rank *rank = &g->ranks[r];

        lh_cursor_init(&rank->cursor, program, r);
        rank->cells = g_new(Content, lh_program_cells(program));
        rank->blocks = g_array_new(FALSE, FALSE, sizeof(Block));
        g_array_set_clear_func(rank->blocks, block_clear);
        rank->arrived = g_hash_table_new(NULL, NULL);
        hold_inputs(g, r);
    }
}

static bool G_GNUC_PRINTF(2, 3) refuse(GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, LH_ERROR, LH_ERROR_NO, "MSCCL's XML cannot represent this program: %s",
                text);
    return false;
}

/* --- steps --------------------------------------------------------------------------------------
 */

static Block *
block_at(const Rank *rank, uint32_t index)
{
    return &g_array_index(rank->blocks, Block, index);
}

static bool
find_block(Rank *rank, uint32_t peer, bool send, uint32_t *index, GError **error)
{
    const Block block = { .peer = peer, .send = send };

    for (*index = 0; *index < rank->blocks->len; (*index)++)
        if (block_at(rank, *index)->peer == peer && block_at(rank, *index)->send == send)
            return true;
    if (rank->blocks->len == BLOCKS_MAX)
        return refuse(error, "rank %u sends to and receives from more than %u peers in total",
                      rank->cursor.rank, BLOCKS_MAX);
    g_array_append_val(rank->blocks, block);
    block_at(rank, *index)->steps = g_array_new(FALSE, FALSE, sizeof(Step));
    return true;
}

static bool
add_step(Rank *rank, uint32_t block, const Step *step, GError **error)
{
    GArray *steps = block_at(rank, block)->steps;

    if (steps->len == STEPS_MAX)
        return refuse(error, "rank %u has more than %u steps with rank %u in one direction",
                      rank->cursor.rank, STEPS_MAX, block_at(rank, block)->peer);
    g_array_append_val(steps, *step);
    if (step->block != NOWHERE)
        g_array_index(block_at(rank, step->block)->steps, Step, step->step).awaited = true;
    return true;
}

/* Finds the step that received the chunk; NOWHERE: the rank's own chunk. */
static void
find_arrival(const Rank *rank, uint32_t chunk, Step *of)
{
    const guint at =
        GPOINTER_TO_UINT(g_hash_table_lookup(rank->arrived, GUINT_TO_POINTER(chunk + 1)));

    of->block = at == 0 ? NOWHERE : (at - 1) / STEPS_MAX;
    of->step = at == 0 ? NOWHERE : (at - 1) % STEPS_MAX;
}

/* Adds a send. A step can wait for only one other: further waits become steps without data before
 * it. */
static bool
add_send(Rank *rank, uint32_t block, uint32_t first, uint32_t count, GError **error)
{
    Step send = { .kind = STEP_SEND, .first = first, .count = count, .block = NOWHERE };

    for (uint32_t chunk = first; chunk < first + count; chunk++) {
        Step wait = { .kind = STEP_WAIT };

        find_arrival(rank, chunk, &wait);
        if (wait.block == NOWHERE || (wait.block == send.block && wait.step == send.step))
            continue;
        if (send.block != NOWHERE) {
            const Step before = { .kind = STEP_WAIT, .block = send.block, .step = send.step };

            if (!add_step(rank, block, &before, error))
                return false;
        }
        send.block = wait.block;
        send.step = wait.step;
    }
    return add_step(rank, block, &send, error);
}

static bool
add_receive(const Gather *g, Rank *rank, uint32_t block, uint32_t first, uint32_t count,
            GError **error)
{
    const Step receive = { .kind = STEP_RECEIVE, .first = first, .count = count, .block = NOWHERE };
    const guint at = block * STEPS_MAX + block_at(rank, block)->steps->len + 1;

    for (uint32_t chunk = first; chunk < first + count; chunk++)
        if (!g_hash_table_insert(rank->arrived, GUINT_TO_POINTER(chunk + 1), GUINT_TO_POINTER(at)))
            return refuse(error, "rank %u receives %s of rank %u twice", rank->cursor.rank,
                          g->program->slots[g->slot].name,
                          chunk / g->program->slots[g->slot].parts);
    return add_step(rank, block, &receive, error);
}

static uint32_t
chunk_of(const Gather *g, Content content)
{
    const LhSlot *slot = &g->program->slots[g->slot];

    return content.rank * slot->parts + content.cell - slot->first_cell;
}

/* Adds the steps of a message, each with contiguous chunks. */
static bool
add_steps(const Gather *g, Rank *rank, const LhPart *part, const GArray *contents, GError **error)
{
    uint32_t block, first = 0;

    if (!find_block(rank, part->peer, part->send, &block, error))
        return false;
    for (uint32_t i = 1; i <= contents->len; i++) {
        const uint32_t chunk = chunk_of(g, g_array_index(contents, Content, first));

        if (i < contents->len && i - first < CHUNKS_MAX &&
            chunk_of(g, g_array_index(contents, Content, i)) == chunk + i - first)
            continue;
        if (part->send ? !add_send(rank, block, chunk, i - first, error)
                       : !add_receive(g, rank, block, chunk, i - first, error))
            return false;
        first = i;
    }
    return true;
}

/* --- symbolic execution -------------------------------------------------------------------------
 */

static Content *
cells_of(const Gather *g, const Rank *rank, LhRegion region)
{
    return &rank->cells[g->program->slots[region.slot].first_cell + region.part];
}

/* The slot that a cell belongs to. */
static uint32_t
slot_of(const LhProgram *program, uint32_t cell)
{
    uint32_t s = 0;

    while (cell - program->slots[s].first_cell >= program->slots[s].parts)
        s++;
    return s;
}

/* Checks that all sent parts are of the same input. */
static bool
check_sent(Gather *g, const Rank *rank, const LhOp *op, LhRegion region, GError **error)
{
    const Content *cells = cells_of(g, rank, region);

    if (region.half != LH_HALF_BOTH)
        return refuse(error, "rank %u, op %u sends one half of a part", rank->cursor.rank, op->id);
    for (uint32_t i = 0; i < region.count; i++) {
        uint32_t slot;

        if (cells[i].rank == NOWHERE)
            return refuse(error,
                          "rank %u, op %u sends computed data (%s), and the format has no kernels",
                          rank->cursor.rank, op->id, g->program->slots[region.slot].name);
        slot = slot_of(g->program, cells[i].cell);
        if (g->slot == NOWHERE)
            g->slot = slot;
        if (g->slot != slot)
            return refuse(
                error,
                "rank %u, op %u sends %s, but %s was sent before; the format gathers one buffer",
                rank->cursor.rank, op->id, g->program->slots[slot].name,
                g->program->slots[g->slot].name);
    }
    return true;
}

static Channel *
channel_of(Gather *g, uint8_t communicator, uint32_t from, uint32_t to)
{
    const gint64 key = ((gint64)communicator * LH_RANKS_MAX + from) * LH_RANKS_MAX + to;
    Channel *channel = g_hash_table_lookup(g->messages, &key);

    if (channel == NULL) {
        channel = g_new(Channel, 1);
        *channel = (Channel){ .key = key, .messages = g_queue_new() };
        g_hash_table_insert(g->messages, &channel->key, channel);
    }
    return channel;
}

static bool
send(Gather *g, Rank *rank, const LhOp *op, const LhPart *part, GError **error)
{
    GArray *contents = g_array_new(FALSE, FALSE, sizeof(Content));

    g_queue_push_tail(channel_of(g, op->communicator, rank->cursor.rank, part->peer)->messages,
                      contents);
    for (uint32_t i = 0; i < part->regions_count; i++) {
        if (!check_sent(g, rank, op, part->regions[i], error))
            return false;
        g_array_append_vals(contents, cells_of(g, rank, part->regions[i]), part->regions[i].count);
    }
    return add_steps(g, rank, part, contents, error);
}

/* Receives a message that has been sent. */
static bool
receive(const Gather *g, Rank *rank, const LhPart *part, const GArray *contents, GError **error)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < part->regions_count; i++) {
        Content *cells = cells_of(g, rank, part->regions[i]);

        for (uint32_t k = 0; k < part->regions[i].count && taken < contents->len; k++)
            cells[k] = g_array_index(contents, Content, taken++);
    }
    return add_steps(g, rank, part, contents, error);
}

/* Sends all messages and receives those available; @through: the op is complete. */
static bool
exchange(Gather *g, Rank *rank, const LhOp *op, bool *through, GError **error)
{
    const LhPart *parts = &rank->buffer.parts[op->exchange.parts_first];
    const uint32_t count = op->exchange.parts_count;

    for (uint32_t i = 0; i < count && !rank->sent; i++)
        if (parts[i].send && !send(g, rank, op, &parts[i], error))
            return false;
    rank->sent = true;
    for (; rank->received < count; rank->received++) {
        const LhPart *part = &parts[rank->received];
        g_autoptr(GArray) contents = NULL;

        if (part->send)
            continue;
        contents = g_queue_pop_head(
            channel_of(g, op->communicator, part->peer, rank->cursor.rank)->messages);
        *through = contents != NULL;
        if (contents == NULL)
            return true;
        if (!receive(g, rank, part, contents, error))
            return false;
    }
    rank->sent = false;
    rank->received = 0;
    *through = true;
    return true;
}

static void
compute(const Gather *g, const Rank *rank, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const bool copies = op->compute.kernel == LH_KERNEL_ID_copy && !op->compute.args.reversed;

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion region = op->compute.regions[i];
        Content *cells = cells_of(g, rank, region);

        for (uint32_t k = 0; k < region.count && kernel->operands[i].access != LH_OPERAND_READ; k++)
            cells[k] = copies ? cells_of(g, rank, op->compute.regions[0])[k]
                              : (Content){ .rank = NOWHERE };
    }
}

static bool
follow(Gather *g, Rank *rank, const LhOp *op, bool *through, GError **error)
{
    *through = true;
    switch (op->kind) {
    case LH_OP_EXCHANGE:
        return exchange(g, rank, op, through, error);
    case LH_OP_COMPUTE:
        compute(g, rank, op);
        return true;
    case LH_OP_COLLECTIVE:
        return refuse(error,
                      "rank %u, op %u is a collective (%s), and the format needs its messages",
                      rank->cursor.rank, op->id, lh_collective_names[op->collective.kind]);
    default:
        return true;
    }
}

/* Executes a rank as far as possible; @moved: it progressed. */
static bool
advance(Gather *g, Rank *rank, bool *moved, GError **error)
{
    bool through = true;

    while (!rank->ended) {
        for (; rank->op < rank->buffer.ops_count; rank->op++) {
            if (!follow(g, rank, &rank->buffer.ops[rank->op], &through, error))
                return false;
            if (!through)
                return true;
            *moved = true;
        }
        rank->op = 0;
        rank->ended = !lh_cursor_step(&rank->cursor, &rank->buffer);
    }
    return true;
}

static bool
follow_all(Gather *g, GError **error)
{
    uint32_t ended = 0;

    while (ended < g->ranks_count) {
        bool moved = false;

        ended = 0;
        for (uint32_t r = 0; r < g->ranks_count; r++) {
            if (!advance(g, &g->ranks[r], &moved, error))
                return false;
            ended += g->ranks[r].ended;
        }
        if (!moved && ended < g->ranks_count)
            return refuse(error, "one stream overtakes another");
    }
    return true;
}

/* Checks that each rank received every part of all other ranks exactly once. */
static bool
check_gathered(const Gather *g, GError **error)
{
    const uint32_t parts = g->slot == NOWHERE ? 0 : g->program->slots[g->slot].parts;

    if (g->slot == NOWHERE)
        return refuse(error, "it sends no messages");
    for (uint32_t r = 0; r < g->ranks_count; r++) {
        const Rank *rank = &g->ranks[r];

        for (uint32_t i = 0; i < parts; i++)
            if (g_hash_table_contains(rank->arrived, GUINT_TO_POINTER(r * parts + i + 1)))
                return refuse(error, "rank %u receives its own data", r);
        for (uint32_t chunk = 0; chunk < g->ranks_count * parts; chunk++)
            if (chunk / parts != r &&
                !g_hash_table_contains(rank->arrived, GUINT_TO_POINTER(chunk + 1)))
                return refuse(error,
                              "rank %u never receives %s of rank %u, so this is no all-gather", r,
                              g->program->slots[g->slot].name, chunk / parts);
    }
    return true;
}

/* --- writing ------------------------------------------------------------------------------------
 */

static void
put_step(const Step *step, guint number, GString *out)
{
    static const char *const names[] = { "s", "r", "nop" };
    const bool moves = step->kind != STEP_WAIT;

    g_string_append_printf(
        out,
        "      <step s=\"%u\" type=\"%s\" srcbuf=\"%s\" srcoff=\"%d\" dstbuf=\"o\" dstoff=\"%d\" "
        "cnt=\"%u\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
        number, names[step->kind], moves ? "o" : "i", moves ? (int)step->first : -1,
        moves ? (int)step->first : -1, step->count, step->block == NOWHERE ? -1 : (int)step->block,
        step->block == NOWHERE ? -1 : (int)step->step, step->awaited);
}

static void
put_rank(const Gather *g, uint32_t number, GString *out)
{
    const Rank *rank = &g->ranks[number];

    g_string_append_printf(out, "  <gpu id=\"%u\" i_chunks=\"0\" o_chunks=\"%u\" s_chunks=\"0\">\n",
                           number, g->ranks_count * g->program->slots[g->slot].parts);
    for (guint b = 0; b < rank->blocks->len; b++) {
        const Block *block = block_at(rank, b);

        g_string_append_printf(out, "    <tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"0\">\n", b,
                               block->send ? (int)block->peer : -1,
                               block->send ? -1 : (int)block->peer);
        for (guint s = 0; s < block->steps->len; s++)
            put_step(&g_array_index(block->steps, Step, s), s, out);
        g_string_append(out, "    </tb>\n");
    }
    g_string_append(out, "  </gpu>\n");
}

static bool
write_gather(const Gather *g, const char *path, GError **error)
{
    LhOutputStream *stream = lh_output_open(path, error);
    g_autoptr(GString) out = g_string_new("<algo name=\"");

    if (stream == NULL)
        return false;
    lh_escape_html(out, g->program->name);
    g_string_append_printf(out,
                           "\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%u\" "
                           "ngpus=\"%u\" coll=\"allgather\" inplace=\"1\" outofplace=\"0\" "
                           "minBytes=\"0\" maxBytes=\"0\">\n",
                           g->ranks_count * g->program->slots[g->slot].parts, g->ranks_count);
    for (uint32_t r = 0; r < g->ranks_count; r++) {
        put_rank(g, r, out);
        lh_output_write(stream, out->str, out->len);
        g_string_truncate(out, 0);
    }
    g_string_append(out, "</algo>\n");
    lh_output_write(stream, out->str, out->len);
    return lh_output_close(stream, error);
}

static bool
write_msccl(const char *path, const LhSetup *setup, const LhProgram *program, GError **error)
{
    g_auto(Gather) g;

    (void)setup;
    gather_init(&g, program);
    return follow_all(&g, error) && check_gathered(&g, error) && write_gather(&g, path, error);
}

const LhExportFormat lh_export_msccl = { .ending = ".xml", .write = write_msccl };
