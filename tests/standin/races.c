/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory and data races on it. For every 4 bytes the last write and up to three reads are
 * recorded. An access that vector clocks do not order after a write, or a write not ordered after a
 * read, is a race: a GPU may do the two in any order, or at once. If three unordered reads are
 * recorded, a further one is forgotten, so a race with it may be missed.
 *
 * The guide, Explicit Synchronization and Events, lists everything that orders streams: the stream
 * itself, cudaStreamWaitEvent, and a host that has waited or queried and then enqueues.
 */
#include "standin_private.h"

#include <stdlib.h>
#include <string.h>

#define GRANULE 4
#define READERS 3
#define ALIGNMENT 256 /* "at least 256 bytes" (the guide, Device Memory Accesses) */
#define POISON 0xff   /* NaN in every type of numbers */

/* A turn of an op; kept for the whole run. */
typedef struct {
    uint32_t slot, index;
    const char *label; /* interned */
} Turn;

typedef struct {
    uint32_t write, read[READERS]; /* turns; 0: none */
} Cell;

typedef struct _Memory Memory;
struct _Memory {
    Memory *next;
    unsigned char *at;
    uint64_t bytes;
    int device;
    bool freed;
    Cell *cells;
};

static Memory *memories, *last_found;
static GArray *turns; /* of Turn; 0 is none */
static uint64_t used_bytes;

/* ---- memory ---- */

static Memory *
memory_of(const void *at)
{
    const unsigned char *byte = at;

    if (last_found != NULL && byte >= last_found->at && byte < last_found->at + last_found->bytes)
        return last_found;
    for (Memory *m = memories; m != NULL; m = m->next) {
        if (byte >= m->at && byte < m->at + m->bytes)
            return last_found = m;
    }
    return NULL;
}

void *
standin_memory_new(uint64_t bytes)
{
    Memory *m;

    if (standin_options.memory_bytes > 0 && used_bytes + bytes > standin_options.memory_bytes)
        return NULL;
    m = g_new0(Memory, 1);
    m->bytes = (MAX(bytes, 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    m->at = aligned_alloc(ALIGNMENT, m->bytes);
    m->device = standin_device;
    if (!standin_is_idle()) {
        memset(m->at, POISON, m->bytes);
        m->cells = g_new0(Cell, m->bytes / GRANULE);
    }
    m->next = memories;
    memories = m;
    used_bytes += m->bytes;
    return m->at;
}

/* Unlinks the block and returns it to the system. */
static void
give_back(Memory *m)
{
    Memory **link = &memories;

    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    used_bytes -= m->bytes;
    last_found = NULL;
    free(m->at);
    g_free(m->cells);
    g_free(m);
}

/* Freed blocks stay allocated, so that later uses are detected and addresses are not reused; unless
 * nothing is watched and a long run needs the memory. */
bool
standin_memory_free(void *at)
{
    Memory *m = memory_of(at);

    if (m == NULL || m->at != at || m->freed)
        return false;
    if (standin_is_idle()) {
        give_back(m);
        return true;
    }
    m->freed = true;
    used_bytes -= m->bytes;
    memset(m->at, POISON, m->bytes);
    return true;
}

bool
standin_is_device_memory(const void *at)
{
    return memory_of(at) != NULL;
}

uint64_t
standin_memory_room(const void *at, int *device)
{
    const Memory *m = memory_of(at);

    if (m == NULL || m->freed)
        return 0;
    if (device != NULL)
        *device = m->device;
    return (uint64_t)(m->at + m->bytes - (const unsigned char *)at);
}

void
standin_races_start(void)
{
    while (memories != NULL) {
        Memory *m = memories;

        memories = m->next;
        free(m->at);
        g_free(m->cells);
        g_free(m);
    }
    last_found = NULL;
    used_bytes = 0;
    if (turns == NULL)
        turns = g_array_new(FALSE, TRUE, sizeof(Turn));
    g_array_set_size(turns, 0);
    g_array_set_size(turns, 1);
}

void
standin_races_end(void)
{
    for (const Memory *m = memories; m != NULL; m = m->next) {
        if (!m->freed)
            standin_finding("%" G_GUINT64_FORMAT " bytes of device memory are not freed", m->bytes);
    }
}

/* ---- accesses ---- */

uint32_t
standin_turn(const StandinOp *op)
{
    const Turn turn = { op->stream->slot, op->index, g_intern_string(op->label) };

    g_array_append_val(turns, turn);
    return turns->len - 1;
}

/* Whether @turn is complete when @op starts, or is earlier work of the op itself. */
static bool
is_before(uint32_t turn, const StandinOp *op)
{
    const Turn *t = &g_array_index(turns, Turn, turn);

    return turn == 0 || t->index <= op->clock.at[t->slot] ||
           (t->slot == op->stream->slot && t->index <= op->index);
}

static void
report(const StandinOp *op, uint32_t other, const char *does, const char *did)
{
    const Turn *t = &g_array_index(turns, Turn, other);

    standin_finding("RACE: %s (stream %u) %s what %s (stream %u) %s; nothing orders them",
                    op->label, op->stream->slot, does, t->label, t->slot, did);
}

static void
touch_cell(const StandinOp *op, uint32_t turn, Cell *c, bool write)
{
    uint32_t k = 0;

    if (c->write != turn && !is_before(c->write, op)) {
        report(op, c->write, write ? "overwrites" : "reads", "writes");
        c->write = turn;
    }
    if (!write) {
        while (k < READERS && c->read[k] != turn && !is_before(c->read[k], op))
            k++;
        if (k < READERS)
            c->read[k] = turn;
        return;
    }
    for (; k < READERS; k++) {
        if (c->read[k] != turn && !is_before(c->read[k], op))
            report(op, c->read[k], "overwrites", "reads");
        c->read[k] = 0;
    }
    c->write = turn;
}

bool
standin_touch(StandinOp *op, uint32_t turn, const void *at, uint64_t bytes, bool write)
{
    Memory *m = memory_of(at);
    uint64_t offset;

    if (bytes == 0)
        return true;
    if (m == NULL || bytes > (uint64_t)(m->at + m->bytes - (const unsigned char *)at)) {
        standin_finding("%s (stream %u) touches %" G_GUINT64_FORMAT " bytes that are nobody's",
                        op->label, op->stream->slot, bytes);
        return false;
    }
    if (m->freed) {
        standin_finding("%s (stream %u) touches memory that was freed", op->label,
                        op->stream->slot);
        return false;
    }
    if (standin_is_idle())
        return true;
    offset = (uint64_t)((const unsigned char *)at - m->at);
    for (uint64_t i = offset / GRANULE; i <= (offset + bytes - 1) / GRANULE; i++)
        touch_cell(op, turn, &m->cells[i], write);
    standin_counted.accesses += bytes / GRANULE;
    return true;
}
