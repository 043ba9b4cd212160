/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs. Ops are appended to all participating ranks at once, so the program's
 * dependences have no cycle. Every op follows the last ones that touched the same parts, by its
 * stream or by `after`. All calls of a communicator are on one stream, which gives all ranks the
 * same order. k and v travel together or alone.
 */
#include "random_program.h"

#include "base/rng.h"
#include "built.h"
#include "program/collective_semantics.h"

#define RANKS_MAX 5
/* Activations: ROWS x WIDTH elements per part, divisible among 2 to 5 ranks, as are weights. */
#define ROWS 2
#define WIDTH 60
#define ELEMENTS (ROWS * WIDTH)
#define HEAD_DIM 32 /* of the one head */
#define WEIGHT_PARTS 2
#define TEMP_PARTS 16
#define BEGUN 12    /* parts of each temporary slot allocated initially ... */
#define FILLED 6    /* ... and initially defined */
#define ATTEMPTS 20 /* at finding regions for a collective */
#define COMMUNICATORS 6
#define ACTIONS 60
#define DEPENDS_MAX LH_OP_AFTER_MAX
#define NOTHING UINT32_MAX /* no segment: the content cannot be used in computations */

/* Slots. Temporary ones hold activations, k and v, or weights; the last one is used at the end. */
enum {
    X,
    WEIGHTS,
    Q,
    KV,
    Y,
    GRADIENT,
    O,
    LSE,
    TEMP_BF16,
    TEMP_FP16,
    TEMP_FP32,
    TEMP_KV,
    TEMP_WEIGHTS,
    TEMP_END,
    ALL_KV = TEMP_END,
    SLOTS
};

/* State of one part of one slot on one rank. */
typedef struct {
    bool live, defined;
    uint8_t half;     /* LhHalf: the defined half of k and v */
    uint32_t segment; /* segment of its rows, or NOTHING */
    uint32_t birth;   /* the alloc op */
    uint32_t writer;  /* the last op that wrote it, or LH_OP_NONE */
    GArray *readers;  /* of uint32_t: ops that have read it since the last write */
} Cell;

typedef struct {
    uint64_t seed, drawn;
    Built built;
    LhProgram *program;
    uint32_t ranks, streams;
    uint8_t stream_of[COMMUNICATORS];
    Cell *cells; /* [ranks * cells per rank] */
} Maker;

static uint32_t
draw(Maker *m, uint32_t below)
{
    g_assert(below > 0);
    return (uint32_t)(lh_rng_bits(m->seed, m->drawn++, 0) % below);
}

static Cell *
cell(const Maker *m, uint32_t rank, LhRegion region, uint32_t i)
{
    return &m->cells[rank * lh_program_cells(m->program) +
                     m->program->slots[region.slot].first_cell + region.part + i];
}

/* ---- declarations ---- */

static uint16_t
declare_slot(Maker *m, const char *name, LhTensorKind kind, LhSlotRole role, LhDtype dtype,
             uint32_t parts)
{
    const uint64_t elements = kind == LH_TENSOR_WEIGHT   ? WIDTH * WIDTH / WEIGHT_PARTS
                              : kind == LH_TENSOR_HIDDEN ? (uint64_t)ELEMENTS
                              : kind == LH_TENSOR_KV     ? 2 * HEAD_DIM
                              : kind == LH_TENSOR_LSE    ? 1
                                                         : HEAD_DIM;

    return lh_program_add_slot(m->program,
                               (LhSlotParams){ .name = name,
                                               .kind = kind,
                                               .role = role,
                                               .dtype = dtype,
                                               .parts = parts,
                                               .part_bytes = elements * lh_dtype_bytes(dtype) });
}

static void
declare(Maker *m)
{
    declare_slot(m, "x", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_BF16, 1);
    declare_slot(m, "weights", LH_TENSOR_WEIGHT, LH_SLOT_INPUT, LH_DTYPE_FP32, WEIGHT_PARTS);
    declare_slot(m, "q", LH_TENSOR_Q, LH_SLOT_INPUT, LH_DTYPE_BF16, 1);
    declare_slot(m, "kv", LH_TENSOR_KV, LH_SLOT_INPUT, LH_DTYPE_BF16, 1);
    declare_slot(m, "y", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, 1);
    declare_slot(m, "gradient", LH_TENSOR_WEIGHT, LH_SLOT_OUTPUT, LH_DTYPE_FP32, WEIGHT_PARTS);
    declare_slot(m, "o", LH_TENSOR_O, LH_SLOT_OUTPUT, LH_DTYPE_BF16, 1);
    declare_slot(m, "lse", LH_TENSOR_LSE, LH_SLOT_OUTPUT, LH_DTYPE_FP32, 1);
    declare_slot(m, "bf16", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_BF16, TEMP_PARTS);
    declare_slot(m, "fp16", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP16, TEMP_PARTS);
    declare_slot(m, "fp32", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP32, TEMP_PARTS);
    declare_slot(m, "temp_kv", LH_TENSOR_KV, LH_SLOT_TEMP, LH_DTYPE_BF16, TEMP_PARTS);
    declare_slot(m, "temp_weights", LH_TENSOR_WEIGHT, LH_SLOT_TEMP, LH_DTYPE_FP32, TEMP_PARTS);
    declare_slot(m, "all_kv", LH_TENSOR_KV, LH_SLOT_TEMP, LH_DTYPE_BF16, m->ranks);
    for (uint32_t i = 0; i < m->streams; i++) {
        g_autofree char *name = g_strdup_printf("stream%u", i);

        lh_program_add_stream(m->program, name, i % 3 == 0 ? LH_STREAM_COMPUTE : LH_STREAM_COMM);
    }
    for (unsigned i = 0; i < COMMUNICATORS; i++)
        m->stream_of[i] = (uint8_t)draw(m, m->streams);
}

static void
fill_cells(Maker *m)
{
    const uint32_t count = lh_program_cells(m->program);

    m->cells = g_new0(Cell, m->ranks * count);
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        for (uint16_t slot = 0; slot < (uint16_t)SLOTS; slot++) {
            const LhRegion all = lh_region_whole(m->program, slot);

            for (uint32_t i = 0; i < all.count; i++)
                *cell(m, rank, all, i) =
                    (Cell){ .live = m->program->slots[slot].role != LH_SLOT_TEMP,
                            .defined = m->program->slots[slot].role == LH_SLOT_INPUT,
                            .segment = slot == X || slot == KV ? rank : NOTHING,
                            .birth = LH_OP_NONE,
                            .writer = LH_OP_NONE,
                            .readers = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
        }
    }
}

/* ---- order ---- */

/* The parts one op accesses on one rank. */
typedef struct {
    LhRegion region;
    bool write;
} Access;

typedef struct {
    Access list[16];
    unsigned count;
} Accesses;

static void
access_region(Accesses *a, LhRegion region, bool write)
{
    g_assert(a->count < G_N_ELEMENTS(a->list));
    a->list[a->count++] = (Access){ region, write };
}

/* Ops of the rank that op @id on @stream must follow, beside those of its stream. */
typedef struct {
    uint32_t ids[64];
    unsigned count;
} Before;

static void
add_before(const Maker *m, uint32_t rank, uint8_t stream, uint32_t id, Before *before)
{
    const LhOp *op = id == LH_OP_NONE ? NULL : &m->built.buffers[rank].ops[id];

    if (op == NULL || (op->stream == stream && lh_op_on_stream(op)))
        return;
    for (unsigned i = 0; i < before->count; i++) {
        if (before->ids[i] == id)
            return;
    }
    if (before->count < G_N_ELEMENTS(before->ids))
        before->ids[before->count++] = id;
}

static Before
find_before(const Maker *m, uint32_t rank, uint8_t stream, const Accesses *a)
{
    Before before = { .count = 0 };

    for (unsigned k = 0; k < a->count; k++) {
        for (uint32_t i = 0; i < a->list[k].region.count; i++) {
            const Cell *c = cell(m, rank, a->list[k].region, i);

            add_before(m, rank, stream, c->writer, &before);
            for (guint r = 0; a->list[k].write && r < c->readers->len; r++)
                add_before(m, rank, stream, g_array_index(c->readers, uint32_t, r), &before);
        }
    }
    return before;
}

/* Whether an op with these accesses has room in `after` for all its predecessors. */
static bool
can_order(const Maker *m, uint32_t rank, uint8_t stream, const Accesses *a)
{
    return find_before(m, rank, stream, a).count <= DEPENDS_MAX;
}

/* Orders the rank's last op, which has these accesses, after its predecessors and records the
 * accesses. */
static void
order(Maker *m, uint32_t rank, const Accesses *a)
{
    LhEmitter *e = &m->built.emitters[rank];
    const uint32_t id = lh_emit_last(e)->id;
    const Before before = find_before(m, rank, lh_emit_last(e)->stream, a);

    for (unsigned i = 0; i < before.count; i++)
        lh_emit_after(e, before.ids[i]);
    for (unsigned k = 0; k < a->count; k++) {
        for (uint32_t i = 0; i < a->list[k].region.count; i++) {
            Cell *c = cell(m, rank, a->list[k].region, i);

            if (a->list[k].write) {
                c->writer = id;
                g_array_set_size(c->readers, 0);
            } else {
                g_array_append_val(c->readers, id);
            }
        }
    }
}

/* ---- choosing ---- */

typedef enum { FREED, LIVE, DEFINED } State;

static bool
is_in(const Cell *c, State state, uint8_t half)
{
    return c->live == (state != FREED) &&
           (state != DEFINED || (c->defined && (c->half == LH_HALF_BOTH || c->half == half)));
}

/* Chooses consecutive parts, as many as @wanted has, whose half is in @state; false if none are
 * found. */
static bool
choose_half(Maker *m, uint32_t rank, LhRegion wanted, State state, LhRegion *region)
{
    const uint32_t parts = m->program->slots[wanted.slot].parts;

    for (unsigned attempt = 0; wanted.count <= parts && attempt < 8; attempt++) {
        uint32_t i = 0;

        *region = wanted;
        region->part = draw(m, parts - wanted.count + 1);
        while (i < wanted.count && is_in(cell(m, rank, *region, i), state, wanted.half))
            i++;
        if (i == wanted.count)
            return true;
    }
    return false;
}

static bool
choose(Maker *m, uint32_t rank, uint16_t slot, uint32_t count, State state, LhRegion *region)
{
    return choose_half(m, rank, (LhRegion){ .slot = slot, .count = count }, state, region);
}

/* Draws both halves of k and v, or one. */
static uint8_t
any_half(Maker *m, uint16_t slot)
{
    return slot == TEMP_KV ? (uint8_t)draw(m, LH_HALVES) : LH_HALF_BOTH;
}

/* Operands whose parts come from one alloc. */
static bool
of_one_birth(const Maker *m, uint32_t rank, LhRegion region)
{
    for (uint32_t i = 1; i < region.count; i++) {
        if (cell(m, rank, region, i)->birth != cell(m, rank, region, 0)->birth)
            return false;
    }
    return true;
}

static bool
overlap(LhRegion a, LhRegion b)
{
    return a.slot == b.slot && a.part < b.part + b.count && b.part < a.part + a.count;
}

static void
define(Maker *m, uint32_t rank, LhRegion region, uint32_t i, uint32_t segment)
{
    Cell *c = cell(m, rank, region, i);

    if (region.half == LH_HALF_BOTH || !c->defined || c->segment != segment)
        c->half = region.half;
    else if (c->half != region.half)
        c->half = LH_HALF_BOTH;
    c->defined = true;
    c->segment = segment;
}

static uint8_t
any_stream(Maker *m)
{
    return (uint8_t)draw(m, m->streams);
}

/* ---- actions ---- */

static void
allocate(Maker *m)
{
    const uint32_t rank = draw(m, m->ranks);
    const uint16_t slot = (uint16_t)(TEMP_BF16 + draw(m, TEMP_END - TEMP_BF16));
    LhRegion region;
    uint32_t id;

    if (!choose(m, rank, slot, 1 + draw(m, 4), FREED, &region))
        return;
    id = lh_emit_alloc_region(&m->built.emitters[rank], region);
    for (uint32_t i = 0; i < region.count; i++) {
        cell(m, rank, region, i)->live = true;
        cell(m, rank, region, i)->defined = false;
        cell(m, rank, region, i)->birth = id;
    }
}

static void
free_region(Maker *m, uint32_t rank, LhRegion region)
{
    lh_emit_free_region(&m->built.emitters[rank], region);
    for (uint32_t i = 0; i < region.count; i++)
        cell(m, rank, region, i)->live = cell(m, rank, region, i)->defined = false;
}

static void
release(Maker *m)
{
    const uint32_t rank = draw(m, m->ranks);
    const uint16_t slot = (uint16_t)(TEMP_BF16 + draw(m, TEMP_END - TEMP_BF16));
    LhRegion region;

    if (choose(m, rank, slot, 1 + draw(m, 3), LIVE, &region))
        free_region(m, rank, region);
}

static void
label(Maker *m, LhEmitter *e)
{
    e->layer = (uint16_t)draw(m, 3);
    e->micro_batch = (uint16_t)draw(m, 2);
    lh_emit_last(e)->module = (uint8_t)draw(m, 4);
}

/* Whether two regions hold rows of the same, known segments. */
static bool
same_rows(const Maker *m, uint32_t rank, LhRegion a, LhRegion b)
{
    for (uint32_t i = 0; i < a.count; i++) {
        const uint32_t segment = cell(m, rank, a, i)->segment;

        if (segment == NOTHING || segment != cell(m, rank, b, i)->segment)
            return false;
    }
    return true;
}

/* A slot of activations in @dtype or fp32, the two types that kernels combine. */
static uint16_t
operand_slot(Maker *m, bool half, bool target)
{
    const uint16_t narrow = half ? TEMP_FP16 : TEMP_BF16;

    switch (draw(m, 4)) {
    case 0:
        return target ? (uint16_t)Y : half ? narrow : (uint16_t)X;
    case 1:
        return TEMP_FP32;
    default:
        return narrow;
    }
}

static void
compute_residual(Maker *m, uint32_t rank)
{
    const bool half = draw(m, 2) == 1;
    const uint32_t count = 1 + draw(m, 2);
    LhEmitter *e = &m->built.emitters[rank];
    const LhKernelArgs args = { .elements.count = (uint64_t)count * ELEMENTS };
    const uint8_t stream = any_stream(m);
    Accesses accesses = { .count = 0 };
    LhRegion x, y, z;

    if (!choose(m, rank, operand_slot(m, half, false), count, DEFINED, &x) ||
        !choose(m, rank, operand_slot(m, half, false), count, DEFINED, &y) ||
        !choose(m, rank, operand_slot(m, half, true), count, LIVE, &z) ||
        !same_rows(m, rank, x, y) || !of_one_birth(m, rank, x) || !of_one_birth(m, rank, y) ||
        !of_one_birth(m, rank, z) || overlap(x, z) || overlap(y, z) ||
        (z.slot == Y && cell(m, rank, x, 0)->segment != rank))
        return;
    access_region(&accesses, x, false);
    access_region(&accesses, y, false);
    access_region(&accesses, z, true);
    if (!can_order(m, rank, stream, &accesses))
        return;
    lh_emit_compute(e, stream, LH_KERNEL_ID_residual, &args);
    lh_emit_operand(e, x.slot, x.part, x.count);
    lh_emit_operand(e, y.slot, y.part, y.count);
    lh_emit_operand(e, z.slot, z.part, z.count);
    order(m, rank, &accesses);
    label(m, e);
    for (uint32_t i = 0; i < count; i++)
        define(m, rank, z, i, cell(m, rank, x, i)->segment);
}

static void
compute_product(Maker *m, uint32_t rank)
{
    const bool half = draw(m, 2) == 1;
    const uint32_t count = 1 + draw(m, 2);
    LhEmitter *e = &m->built.emitters[rank];
    const LhKernelArgs args = { .product = { (uint64_t)count * ROWS, WIDTH, WIDTH } };
    const uint8_t stream = any_stream(m);
    const uint16_t weights = draw(m, 2) == 0 ? WEIGHTS : TEMP_WEIGHTS;
    Accesses accesses = { .count = 0 };
    LhRegion x, w, y;

    if (!choose(m, rank, operand_slot(m, half, false), count, DEFINED, &x) ||
        !choose(m, rank, weights, WEIGHT_PARTS, DEFINED, &w) ||
        !choose(m, rank, operand_slot(m, half, true), count, LIVE, &y) ||
        !same_rows(m, rank, x, x) || !of_one_birth(m, rank, x) || !of_one_birth(m, rank, w) ||
        !of_one_birth(m, rank, y) || overlap(x, y) ||
        (y.slot == Y && cell(m, rank, x, 0)->segment != rank))
        return;
    access_region(&accesses, x, false);
    access_region(&accesses, w, false);
    access_region(&accesses, y, true);
    if (!can_order(m, rank, stream, &accesses))
        return;
    lh_emit_compute(e, stream, LH_KERNEL_ID_product, &args);
    lh_emit_operand(e, x.slot, x.part, x.count);
    lh_emit_operand(e, w.slot, w.part, w.count);
    lh_emit_operand(e, y.slot, y.part, y.count);
    order(m, rank, &accesses);
    label(m, e);
    for (uint32_t i = 0; i < count; i++)
        define(m, rank, y, i, cell(m, rank, x, i)->segment);
}

static LhKernelArgs
attention_args(void)
{
    return (LhKernelArgs){ .nk = 1, .batch = 1, .heads = 1, .groups = 1, .head_dim = HEAD_DIM };
}

static void
copy_kv(Maker *m, uint32_t rank)
{
    const LhKernelArgs args = attention_args();
    const uint8_t stream = any_stream(m);
    LhEmitter *e = &m->built.emitters[rank];
    Accesses accesses = { .count = 0 };
    LhRegion from, to;

    if (!choose(m, rank, draw(m, 3) == 0 ? (uint16_t)KV : (uint16_t)TEMP_KV, 1, DEFINED, &from) ||
        !choose(m, rank, TEMP_KV, 1, LIVE, &to) || overlap(from, to))
        return;
    access_region(&accesses, from, false);
    access_region(&accesses, to, true);
    if (!can_order(m, rank, stream, &accesses))
        return;
    lh_emit_compute(e, stream, LH_KERNEL_ID_copy, &args);
    lh_emit_operand(e, from.slot, from.part, 1);
    lh_emit_operand(e, to.slot, to.part, 1);
    order(m, rank, &accesses);
    label(m, e);
    define(m, rank, to, 0, cell(m, rank, from, 0)->segment);
}

static void
compute(Maker *m)
{
    static void (*const computations[])(Maker * m, uint32_t rank) = { compute_product, copy_kv,
                                                                      compute_residual,
                                                                      compute_residual };

    computations[draw(m, G_N_ELEMENTS(computations))](m, draw(m, m->ranks));
}

/* Emits a message of one region, from defined parts to live ones. */
static bool
choose_message(Maker *m, uint32_t from, uint32_t to, LhRegion *sent, LhRegion *received)
{
    const uint16_t slot = (uint16_t)(TEMP_BF16 + draw(m, TEMP_END - TEMP_BF16));
    const uint32_t count = 1 + draw(m, 2);
    const uint8_t half = any_half(m, slot);
    const uint16_t source = slot == TEMP_BF16 && count == 1 && draw(m, 2) == 0 ? (uint16_t)X
                            : slot == TEMP_KV && count == 1 && draw(m, 2) == 0 ? (uint16_t)KV
                            : slot == TEMP_WEIGHTS && draw(m, 2) == 0          ? (uint16_t)WEIGHTS
                                                                               : slot;

    return choose_half(m, from, (LhRegion){ source, 0, count, half }, DEFINED, sent) &&
           choose_half(m, to, (LhRegion){ slot, 0, count, half }, LIVE, received);
}

/* Some pairs of ranks exchange messages; each rank posts all of its own in one op. */
static void
exchange(Maker *m)
{
    const uint8_t communicator = (uint8_t)draw(m, COMMUNICATORS);
    const uint8_t stream = m->stream_of[communicator];
    struct {
        uint32_t from, to;
        LhRegion sent, received;
    } messages[3];
    Accesses accesses[RANKS_MAX] = { 0 };
    unsigned count = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(messages); i++) {
        const uint32_t from = draw(m, m->ranks);
        const uint32_t to = (from + 1 + draw(m, m->ranks - 1)) % m->ranks;
        bool clash = false;

        if (!choose_message(m, from, to, &messages[count].sent, &messages[count].received))
            continue;
        for (unsigned k = 0; k < count; k++) {
            clash = clash || (messages[k].to == to &&
                              overlap(messages[k].received, messages[count].received));
            clash = clash ||
                    (messages[k].from == to && overlap(messages[k].sent, messages[count].received));
            clash = clash ||
                    (messages[k].to == from && overlap(messages[k].received, messages[count].sent));
        }
        if (clash)
            continue;
        messages[count].from = from;
        messages[count].to = to;
        access_region(&accesses[from], messages[count].sent, false);
        access_region(&accesses[to], messages[count].received, true);
        count++;
    }
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        if (!can_order(m, rank, stream, &accesses[rank]))
            return;
    }
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        LhEmitter *e = &m->built.emitters[rank];

        if (accesses[rank].count == 0)
            continue;
        lh_emit_exchange(e, stream);
        lh_emit_last(e)->communicator = communicator;
        for (unsigned i = 0; i < count; i++) {
            const bool send = messages[i].from == rank;
            const LhRegion region = send ? messages[i].sent : messages[i].received;

            if (messages[i].from != rank && messages[i].to != rank)
                continue;
            lh_emit_part(e, send, send ? messages[i].to : messages[i].from, communicator,
                         lh_region_bytes(m->program, region));
            lh_emit_part_region(e, region);
        }
        order(m, rank, &accesses[rank]);
        label(m, e);
    }
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t k = 0; k < messages[i].sent.count; k++)
            define(m, messages[i].to, messages[i].received, k,
                   cell(m, messages[i].from, messages[i].sent, k)->segment);
    }
}

/* An affine group of at least two ranks. */
static LhGroup
choose_group(Maker *m)
{
    for (;;) {
        const LhGroup group = { draw(m, m->ranks), 1 + draw(m, 3), 1 + draw(m, m->ranks),
                                1 + draw(m, 4), 1 + draw(m, 2) };

        if (lh_group_is_valid(&group, m->ranks) && lh_group_size(&group) > 1)
            return group;
    }
}

/* One member's part in a collective. */
typedef struct {
    uint32_t rank;
    LhRegion send, receive;
    uint32_t sent[RANKS_MAX], received[RANKS_MAX]; /* of an uneven all-to-all, by member */
    Accesses accesses;
} Member;

typedef struct {
    LhCollectiveKind kind;
    LhGroup group;
    bool uneven;
    uint8_t communicator;
    Member members[RANKS_MAX];
    uint32_t count;
} Meeting;

/* Draws the number of parts the members send and receive. */
static void
size_members(Maker *m, Meeting *c, uint32_t *sends, uint32_t *receives)
{
    const uint32_t n = c->count;

    for (uint32_t i = 0; i < n; i++)
        sends[i] = receives[i] = 1;
    if (c->kind == LH_COLL_ALL_TO_ALL && c->uneven) {
        for (uint32_t i = 0; i < n; i++)
            sends[i] = receives[i] = 0;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < n; k++) {
                const uint32_t parts = draw(m, 3);

                c->members[i].sent[k] = c->members[k].received[i] = parts;
                sends[i] += parts;
                receives[k] += parts;
            }
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (c->kind == LH_COLL_ALL_TO_ALL || c->kind == LH_COLL_REDUCE_SCATTER)
            sends[i] = n;
        if (c->kind == LH_COLL_ALL_TO_ALL || c->kind == LH_COLL_ALL_GATHER)
            receives[i] = n;
    }
}

static bool
choose_members(Maker *m, Meeting *c)
{
    const bool reduces = lh_collective_reduces(c->kind);
    const uint16_t slot =
        reduces || draw(m, 3) == 0 ? (uint16_t)TEMP_WEIGHTS : (uint16_t)(TEMP_BF16 + draw(m, 4));
    const uint8_t half = any_half(m, slot);
    uint32_t sends[RANKS_MAX] = { 0 }, receives[RANKS_MAX] = { 0 };

    size_members(m, c, sends, receives);
    for (uint32_t i = 0; i < c->count; i++) {
        Member *member = &c->members[i];

        member->rank = (uint32_t)lh_group_member(&c->group, i);
        if (sends[i] == 0 || receives[i] == 0 ||
            !choose_half(m, member->rank, (LhRegion){ slot, 0, sends[i], half }, DEFINED,
                         &member->send) ||
            !choose_half(m, member->rank, (LhRegion){ slot, 0, receives[i], half }, LIVE,
                         &member->receive) ||
            overlap(member->send, member->receive))
            return false;
        access_region(&member->accesses, member->send, false);
        access_region(&member->accesses, member->receive, true);
        if (!can_order(m, member->rank, m->stream_of[c->communicator], &member->accesses))
            return false;
    }
    return true;
}

static void
emit_member(Maker *m, const Meeting *c, const Member *member)
{
    LhEmitter *e = &m->built.emitters[member->rank];

    lh_emit_collective(e, m->stream_of[c->communicator], c->kind, c->group);
    lh_emit_last(e)->communicator = c->communicator;
    if (c->uneven)
        lh_emit_tensor_uneven(e, member->send, member->receive, member->sent, member->received);
    else
        lh_emit_tensor(e, member->send, member->receive);
    order(m, member->rank, &member->accesses);
    label(m, e);
}

/* Records the contents of the members' receive regions, computed before any is changed. */
static void
define_received(Maker *m, const Meeting *c)
{
    uint32_t segments[RANKS_MAX][TEMP_PARTS];

    for (uint32_t i = 0; i < c->count; i++) {
        const Member *to = &c->members[i];

        for (uint32_t k = 0; k < to->receive.count; k++)
            segments[i][k] = NOTHING;
        for (uint32_t j = 0; !lh_collective_reduces(c->kind) && j < c->count; j++) {
            const Member *from = &c->members[j];
            LhOp *sender = lh_emit_last(&m->built.emitters[from->rank]);
            LhOp *receiver = lh_emit_last(&m->built.emitters[to->rank]);
            const LhCollectiveCall sends =
                lh_collective_call(sender, m->built.buffers[from->rank].counts, from->rank);
            const LhCollectiveCall receives =
                lh_collective_call(receiver, m->built.buffers[to->rank].counts, to->rank);
            const LhShare sent = lh_collective_sends(&sends, 0, i);
            const LhShare received = lh_collective_receives(&receives, 0, j);

            for (uint32_t k = 0; k < sent.count; k++)
                segments[i][received.first + k] =
                    cell(m, from->rank, from->send, sent.first + k)->segment;
        }
    }
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t k = 0; k < c->members[i].receive.count; k++)
            define(m, c->members[i].rank, c->members[i].receive, k, segments[i][k]);
    }
}

static void
meet(Maker *m)
{
    Meeting c;
    unsigned attempt = 0;

    do {
        c = (Meeting){ .kind = (LhCollectiveKind)draw(m, LH_COLL_KINDS),
                       .group = choose_group(m),
                       .communicator = (uint8_t)draw(m, COMMUNICATORS) };
        c.count = (uint32_t)lh_group_size(&c.group);
        c.uneven = c.kind == LH_COLL_ALL_TO_ALL && draw(m, 2) == 0;
        if (attempt++ == ATTEMPTS)
            return;
    } while (!choose_members(m, &c));
    for (uint32_t i = 0; i < c.count; i++)
        emit_member(m, &c, &c.members[i]);
    define_received(m, &c);
}

static void
synchronise(Maker *m)
{
    lh_emit_sync(&m->built.emitters[draw(m, m->ranks)]);
}

/* ---- beginning and end ---- */

/* Defines one part of a slot: a product with the weights, or twice its source. */
static void
fill_part(Maker *m, uint32_t rank, LhRegion from, LhRegion into)
{
    const LhKernelArgs sum = { .elements.count = ELEMENTS };
    const LhKernelArgs product = { .product = { ROWS, WIDTH, WIDTH } };
    const LhRegion weights = { WEIGHTS, 0, WEIGHT_PARTS };
    const bool multiply = draw(m, 2) == 0;
    LhEmitter *e = &m->built.emitters[rank];
    Accesses accesses = { .count = 0 };

    access_region(&accesses, from, false);
    if (multiply)
        access_region(&accesses, weights, false);
    access_region(&accesses, into, true);
    lh_emit_compute(e, any_stream(m), multiply ? LH_KERNEL_ID_product : LH_KERNEL_ID_residual,
                    multiply ? &product : &sum);
    lh_emit_operand(e, from.slot, from.part, 1);
    lh_emit_operand(e, multiply ? WEIGHTS : from.slot, multiply ? 0 : from.part,
                    multiply ? WEIGHT_PARTS : 1);
    lh_emit_operand(e, into.slot, into.part, 1);
    order(m, rank, &accesses);
    define(m, rank, into, 0, rank);
}

static void
fill_kv(Maker *m, uint32_t rank, LhRegion into)
{
    const LhKernelArgs args = attention_args();
    const LhRegion from = { .slot = KV, .count = 1 };
    LhEmitter *e = &m->built.emitters[rank];
    Accesses accesses = { .count = 0 };

    access_region(&accesses, from, false);
    access_region(&accesses, into, true);
    lh_emit_compute(e, any_stream(m), LH_KERNEL_ID_copy, &args);
    lh_emit_operand(e, KV, 0, 1);
    lh_emit_operand(e, into.slot, into.part, 1);
    order(m, rank, &accesses);
    define(m, rank, into, 0, rank);
}

/* Defines the weights of one rank in all initial parts; the other ranks send them. */
static void
fill_weights(Maker *m)
{
    const LhGroup all = { 0, 1, m->ranks, 0, 1 };

    for (uint32_t i = 0; i < FILLED; i += WEIGHT_PARTS) {
        for (uint32_t rank = 0; rank < m->ranks; rank++) {
            const LhRegion from = { WEIGHTS, 0, WEIGHT_PARTS };
            const LhRegion into = { TEMP_WEIGHTS, i, WEIGHT_PARTS };
            LhEmitter *e = &m->built.emitters[rank];
            Accesses accesses = { .count = 0 };

            access_region(&accesses, from, false);
            access_region(&accesses, into, true);
            lh_emit_collective(e, m->stream_of[0], LH_COLL_BROADCAST, all);
            lh_emit_tensor(e, from, into);
            order(m, rank, &accesses);
            for (uint32_t k = 0; k < WEIGHT_PARTS; k++)
                define(m, rank, into, k, NOTHING);
        }
    }
}

/* Defines initial parts of every kind on every rank. */
static void
begin(Maker *m)
{
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        for (uint16_t slot = TEMP_BF16; slot < (uint16_t)TEMP_END; slot++) {
            const LhRegion region = { slot, 0, BEGUN };
            const uint32_t id = lh_emit_alloc_region(&m->built.emitters[rank], region);

            for (uint32_t i = 0; i < region.count; i++) {
                cell(m, rank, region, i)->live = true;
                cell(m, rank, region, i)->birth = id;
            }
        }
        for (uint32_t i = 0; i < FILLED; i++) {
            const LhRegion x = { X, 0, 1 }, wide = { TEMP_FP32, i, 1 };

            fill_part(m, rank, x, wide);
            fill_part(m, rank, x, (LhRegion){ TEMP_BF16, i, 1 });
            fill_part(m, rank, wide, (LhRegion){ TEMP_FP16, i, 1 });
            fill_kv(m, rank, (LhRegion){ TEMP_KV, i, 1 });
        }
    }
    fill_weights(m);
}

/* Every rank gets k and v of all ranks, one after the other or together, and attends to them. */
static void
gather_kv(Maker *m, uint32_t rank, uint8_t half)
{
    const LhRegion from = { KV, 0, 1, half }, into = { ALL_KV, 0, m->ranks, half };
    LhEmitter *e = &m->built.emitters[rank];
    Accesses accesses = { .count = 0 };

    access_region(&accesses, from, false);
    access_region(&accesses, into, true);
    lh_emit_collective(e, m->stream_of[0], LH_COLL_ALL_GATHER, (LhGroup){ 0, 1, m->ranks, 0, 1 });
    lh_emit_tensor(e, from, into);
    order(m, rank, &accesses);
}

static void
attend(Maker *m, uint32_t rank)
{
    const LhRegion all = { ALL_KV, 0, m->ranks };
    LhEmitter *e = &m->built.emitters[rank];
    LhKernelArgs args = attention_args();
    Accesses accesses = { .count = 0 };

    args.nq = 1;
    args.nk = args.pairs = m->ranks;
    args.mask = LH_MASK_FULL;
    args.first = true;
    access_region(&accesses, all, false);
    lh_emit_compute(e, 0, LH_KERNEL_ID_attention, &args);
    lh_emit_operand(e, Q, 0, 1);
    lh_emit_operand(e, ALL_KV, 0, m->ranks);
    lh_emit_operand(e, O, 0, 1);
    lh_emit_operand(e, LSE, 0, 1);
    order(m, rank, &accesses);
}

static void
attend_to_all(Maker *m)
{
    const uint8_t first = (uint8_t)draw(m, LH_HALVES);

    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        lh_emit_alloc(&m->built.emitters[rank], ALL_KV);
        gather_kv(m, rank, first);
        if (first != LH_HALF_BOTH)
            gather_kv(m, rank, first == LH_HALF_K ? LH_HALF_V : LH_HALF_K);
        attend(m, rank);
        lh_emit_sync(&m->built.emitters[rank]);
        lh_emit_free(&m->built.emitters[rank], ALL_KV);
    }
}

/* Completes the outputs and frees all temporary parts. */
static void
end(Maker *m)
{
    const LhKernelArgs args = { .elements.count = ELEMENTS };
    const LhRegion x = { X, 0, 1 }, y = { Y, 0, 1 };
    const LhRegion weights = { WEIGHTS, 0, WEIGHT_PARTS }, gradient = { GRADIENT, 0, WEIGHT_PARTS };

    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        LhEmitter *e = &m->built.emitters[rank];
        Accesses sum = { .count = 0 }, reduce = { .count = 0 };

        e->step++;
        e->phase = LH_PHASE_OPTIMIZER;
        lh_emit_sync(e);
        for (uint32_t i = 0; i < lh_program_cells(m->program); i++) {
            Cell *c = &m->cells[rank * lh_program_cells(m->program) + i];

            c->writer = LH_OP_NONE;
            g_array_set_size(c->readers, 0);
        }
        access_region(&sum, x, false);
        access_region(&sum, y, true);
        lh_emit_compute(e, 0, LH_KERNEL_ID_residual, &args);
        lh_emit_operand(e, X, 0, 1);
        lh_emit_operand(e, X, 0, 1);
        lh_emit_operand(e, Y, 0, 1);
        order(m, rank, &sum);
        access_region(&reduce, weights, false);
        access_region(&reduce, gradient, true);
        lh_emit_collective(e, m->stream_of[0], LH_COLL_ALL_REDUCE,
                           (LhGroup){ 0, 1, m->ranks, 0, 1 });
        lh_emit_tensor(e, weights, gradient);
        order(m, rank, &reduce);
        for (uint16_t slot = TEMP_BF16; slot < (uint16_t)TEMP_END; slot++) {
            for (uint32_t i = 0; i < TEMP_PARTS; i++) {
                const LhRegion part = { slot, i, 1 };

                if (cell(m, rank, part, 0)->live)
                    free_region(m, rank, part);
            }
        }
    }
}

LhProgram *
random_program(uint64_t seed)
{
    static void (*const actions[])(Maker * m) = { allocate, allocate, release,  compute,
                                                  compute,  compute,  exchange, exchange,
                                                  meet,     meet,     meet,     synchronise };
    Maker m = { .seed = seed };
    LhProgramParams params;

    m.ranks = 2 + draw(&m, RANKS_MAX - 1);
    m.streams = 1 + draw(&m, LH_STREAMS_MAX);
    params = built_params(m.ranks);
    params.mask.causal = false;
    m.built = built_new("random", &params);
    m.program = m.built.program;
    declare(&m);
    fill_cells(&m);
    begin(&m);
    for (unsigned i = 0; i < ACTIONS; i++) {
        for (uint32_t rank = 0; rank < m.ranks; rank++) {
            m.built.emitters[rank].step = i / 8;
            m.built.emitters[rank].phase = (uint8_t)(i * LH_PHASE_OPTIMIZER / ACTIONS);
        }
        actions[draw(&m, G_N_ELEMENTS(actions))](&m);
    }
    end(&m);
    attend_to_all(&m);
    for (uint32_t i = 0; i < m.ranks * lh_program_cells(m.program); i++)
        g_array_unref(m.cells[i].readers);
    g_free(m.cells);
    return built_end(&m.built);
}

/* ---- damage ---- */

static LhOp *
any_op(const LhExplicit *all, uint64_t seed, LhExplicitRank **rank)
{
    *rank = &all->ranks[lh_rng_bits(seed, 0, 1) % all->ranks_count];
    return &(*rank)->ops[lh_rng_bits(seed, 1, 1) % (*rank)->ops_count];
}

static void
damage_exchange(LhExplicitRank *rank, const LhOp *op, uint64_t seed)
{
    LhPart *part =
        &rank->parts[op->exchange.parts_first + lh_rng_bits(seed, 3, 1) % op->exchange.parts_count];

    switch (lh_rng_bits(seed, 4, 1) % 5) {
    case 0:
        part->tag++;
        break;
    case 3:
        part->regions[0].half = (uint8_t)((part->regions[0].half + 1) % LH_HALVES);
        break;
    case 1:
        part->peer = (uint32_t)(lh_rng_bits(seed, 5, 1) % RANKS_MAX);
        break;
    case 2:
        part->send = !part->send;
        break;
    default:
        part->regions[0].part ^= 1;
    }
}

static void
damage_collective(LhOp *op, uint64_t seed)
{
    LhGroup *group = &op->collective.group;

    switch (lh_rng_bits(seed, 4, 1) % 5) {
    case 3:
        op->collective.send[0].half = (uint8_t)((op->collective.send[0].half + 1) % LH_HALVES);
        op->collective.receive[0].half = op->collective.send[0].half;
        break;
    case 0: /* has no meaning if the count is 1 */
        group->outer_stride = 7;
        break;
    case 1:
        group->base++;
        break;
    case 2:
        op->collective.kind = (LhCollectiveKind)(((int)op->collective.kind + 1) % LH_COLL_KINDS);
        break;
    default:
        op->collective.receive[0].part ^= 1;
    }
}

void
damage_program(LhProgram *program, uint64_t seed)
{
    LhExplicit *all = program->plan;
    LhExplicitRank *rank;
    LhOp *op = any_op(all, seed, &rank);

    switch (lh_rng_bits(seed, 2, 1) % 4) {
    case 0:
        op->stream = (uint8_t)((op->stream + 1u) % program->streams_count);
        return;
    case 1:
        op->communicator = (uint8_t)((op->communicator + 1u) % COMMUNICATORS);
        return;
    case 2:
        if (op->after_count > 0)
            op->after_count--;
        return;
    default:
        break;
    }
    if (op->kind == LH_OP_EXCHANGE)
        damage_exchange(rank, op, seed);
    else if (op->kind == LH_OP_COLLECTIVE)
        damage_collective(op, seed);
    else if (op->kind == LH_OP_COMPUTE)
        op->compute.regions[0].part ^= 1;
    else if (op->kind != LH_OP_SYNC)
        op->memory.region.part ^= 1;
}
