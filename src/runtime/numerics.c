/*
 * Inputs and gates; see the header. A number of the inputs depends on (seed, tensor, position,
 * head, dimension) and on nothing else, so that every placement gets the same sequence.
 */
#include "runtime/numerics.h"

#include "base/rng.h"
#include "kernels/cpu/rows.h"

#include <math.h>
#include <string.h>

#define GATE_O_FP32 3e-3
#define GATE_O_16BIT 4e-3
#define GATE_GRADIENT 5e-3
#define GATE_LSE 1e-4
#define KEY_LOGIT 60

const char *const lh_input_names[] = { "normal", "logits4", "logits20", "key60", "equal", NULL };

enum {
    STREAM_Q = 1,
    STREAM_K,
    STREAM_V,
    STREAM_DO,
    STREAM_OTHERS, /* and one for every slot from here on */
};

/* ---- inputs ---- */

/* Box and Muller. */
static double
normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    const double u = 1 - lh_rng_uniform(seed, 2 * stream, index); /* (0, 1] */
    const double angle = 2 * G_PI * lh_rng_uniform(seed, 2 * stream + 1, index);

    return sqrt(-2 * log(u)) * cos(angle);
}

static void
fill_normal(double *x, uint64_t count, uint64_t seed, uint64_t stream)
{
    for (uint64_t i = 0; i < count; i++)
        x[i] = normal(seed, stream, i);
}

static enum lh_storage
storage_of(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP32   ? LH_STORAGE_FP32
           : dtype == LH_DTYPE_FP16 ? LH_STORAGE_FP16
                                    : LH_STORAGE_BF16;
}

/* Rounds to the nearest number that the storage type has. */
static void
round_all(double *x, uint64_t count, enum lh_storage storage)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t cell;

        lh_element_put(&cell, storage, 0, x[i]);
        x[i] = lh_element_get(&cell, storage, 0);
    }
}

static void
scale_all(double *x, uint64_t count, double factor)
{
    for (uint64_t i = 0; i < count; i++)
        x[i] *= factor;
}

/* Dimension 0 is 1 in every q and 0 in every k but the middle one, which gives that one 60. */
static void
raise_key(LhReference *r)
{
    const LhAttention *a = &r->attention;
    const uint64_t q = lh_reference_q_elements(a), k = lh_reference_k_elements(a);
    const uint64_t row = (uint64_t)a->groups * a->head_dim;

    for (uint64_t i = 0; i < q; i += a->head_dim)
        r->q[i] = 1;
    for (uint64_t i = 0; i < k; i += a->head_dim)
        r->k[i] = i / row % a->seq_length == a->seq_length / 2 ? KEY_LOGIT * sqrt(a->head_dim) : 0;
}

static void
equal_keys(LhReference *r)
{
    const LhAttention *a = &r->attention;
    const uint64_t row = (uint64_t)a->groups * a->head_dim, sequence = row * a->seq_length;

    for (uint64_t i = 0; i < lh_reference_k_elements(a); i++)
        r->k[i] = r->k[i / sequence * sequence + i % row];
}

static void
shape_inputs(LhReference *r, LhInputKind inputs)
{
    const double factors[] = { [LH_INPUTS_LOGITS4] = 4, [LH_INPUTS_LOGITS20] = 20 };

    if (inputs == LH_INPUTS_LOGITS4 || inputs == LH_INPUTS_LOGITS20)
        scale_all(r->q, lh_reference_q_elements(&r->attention), factors[inputs]);
    else if (inputs == LH_INPUTS_KEY60)
        raise_key(r);
    else if (inputs == LH_INPUTS_EQUAL)
        equal_keys(r);
}

LhNumerics *
lh_numerics_new(const LhProgramParams *params, uint64_t seed, LhInputKind inputs)
{
    LhNumerics *n = g_new0(LhNumerics, 1);
    LhReference *r = &n->reference;
    const LhAttention *a = &params->attention;
    const uint64_t q = lh_reference_q_elements(a), k = lh_reference_k_elements(a);
    const enum lh_storage storage = storage_of(a->dtype);

    n->inputs = inputs;
    n->seed = seed;
    lh_reference_init(r, a, &params->mask);
    fill_normal(r->q, q, seed, STREAM_Q);
    fill_normal(r->dout, q, seed, STREAM_DO);
    fill_normal(r->k, k, seed, STREAM_K);
    fill_normal(r->v, k, seed, STREAM_V);
    shape_inputs(r, inputs);
    round_all(r->q, q, storage);
    round_all(r->dout, q, storage);
    round_all(r->k, k, storage);
    round_all(r->v, k, storage);
    lh_reference_run(r);
    return n;
}

void
lh_numerics_free(LhNumerics *n)
{
    if (n == NULL)
        return;
    lh_reference_clear(&n->reference);
    g_free(n);
}

/* ---- where tensors lie ---- */

/* A tensor of a slot, whole. */
typedef struct {
    const double *whole; /* [B][N][width] */
    const double *sizes; /* likewise, or NULL */
    uint64_t width;      /* elements of a token */
    enum lh_storage storage;
    uint64_t offset_bytes; /* in each part */
} Piece;

static unsigned
pieces_of(const LhReference *r, const LhSlot *slot, Piece pieces[2])
{
    const LhAttention *a = &r->attention;
    const enum lh_storage storage = lh_dtype_storage(slot->dtype);
    const uint64_t q = (uint64_t)a->heads * a->head_dim, k = (uint64_t)a->groups * a->head_dim;

    switch (slot->kind) {
    case LH_TENSOR_Q:
        pieces[0] = (Piece){ r->q, NULL, q, storage, 0 };
        return 1;
    case LH_TENSOR_DO:
        pieces[0] = (Piece){ r->dout, NULL, q, storage, 0 };
        return 1;
    case LH_TENSOR_O:
        pieces[0] = (Piece){ r->o, r->o_size, q, storage, 0 };
        return 1;
    case LH_TENSOR_DQ:
        pieces[0] = (Piece){ r->dq, r->dq_size, q, storage, 0 };
        return 1;
    case LH_TENSOR_LSE:
        pieces[0] = (Piece){ r->lse, NULL, a->heads, LH_STORAGE_FP32, 0 };
        return 1;
    case LH_TENSOR_KV:
        pieces[0] = (Piece){ r->k, NULL, k, storage, 0 };
        pieces[1] = (Piece){ r->v, NULL, k, storage, slot->part_bytes / 2 };
        return 2;
    case LH_TENSOR_DKV:
        pieces[0] = (Piece){ r->dk, r->dk_size, k, storage, 0 };
        pieces[1] = (Piece){ r->dv, r->dv_size, k, storage, slot->part_bytes / 2 };
        return 2;
    case LH_TENSOR_K:
        pieces[0] = (Piece){ r->k, NULL, k, storage, 0 };
        return 1;
    case LH_TENSOR_V:
        pieces[0] = (Piece){ r->v, NULL, k, storage, 0 };
        return 1;
    case LH_TENSOR_DK:
        pieces[0] = (Piece){ r->dk, r->dk_size, k, storage, 0 };
        return 1;
    case LH_TENSOR_DV:
        pieces[0] = (Piece){ r->dv, r->dv_size, k, storage, 0 };
        return 1;
    default:
        return 0;
    }
}

/* What a part holds: the tokens of a segment, and of each the heads of a slice. */
typedef struct {
    LhSegment segment;
    uint32_t slice, slices;
} Cell;

static Cell
cell_of(const LhProgram *program, uint32_t rank, uint16_t slot, uint32_t part)
{
    const LhTensorKind kind = program->slots[slot].kind;
    const LhHolding holding = lh_slot_holding(program, &program->slots[slot], rank, part);

    return (Cell){ .segment = lh_placement_segment(&program->placement, holding.segment),
                   .slice = holding.slice,
                   .slices = lh_program_slices(program, kind) };
}

/* Elements that a part holds of a token. */
static uint64_t
width_in(const Cell *cell, const Piece *piece)
{
    return piece->width / cell->slices;
}

/* Token @t of a part, over all sequences: the element of the whole tensor where it begins. */
static uint64_t
token_at(const LhAttention *a, const Piece *piece, const Cell *cell, uint64_t t)
{
    const LhSegment *s = &cell->segment;
    const uint64_t sequence = t / s->count, position = s->start + t % s->count * s->stride;

    return (sequence * a->seq_length + position) * piece->width +
           cell->slice * width_in(cell, piece);
}

/* Fills tensors that have no reference with arbitrary numbers, small enough for long sums. */
static void
load_others(const LhNumerics *n, const LhProgram *program, uint32_t rank, uint16_t slot,
            uint32_t part, unsigned char *data)
{
    const LhSlot *s = &program->slots[slot];
    const enum lh_storage storage = lh_dtype_storage(s->dtype);
    const uint64_t count = s->part_bytes / lh_storage_bytes(storage);
    const uint64_t first = ((uint64_t)rank * s->parts + part) * count;

    for (uint64_t i = 0; i < count; i++)
        lh_element_put(data, storage, i, normal(n->seed, STREAM_OTHERS + slot, first + i));
}

/* The states of a slice of the heads before the segment, [B][h][d][d] in fp32. */
static void
load_state(const LhNumerics *n, const Cell *cell, unsigned char *data)
{
    const LhAttention *a = &n->reference.attention;
    const uint64_t size = (uint64_t)a->head_dim * a->head_dim;
    const uint32_t heads = a->heads / cell->slices;
    g_autofree double *state = g_new(double, size);

    for (uint32_t i = 0; i < a->batch * heads; i++) {
        lh_reference_state(&n->reference, i / heads, cell->slice * heads + i % heads,
                           cell->segment.start, state);
        for (uint64_t k = 0; k < size; k++)
            lh_element_put(data, LH_STORAGE_FP32, i * size + k, state[k]);
    }
}

void
lh_numerics_load(const LhNumerics *n, const LhProgram *program, uint32_t rank, uint16_t slot,
                 uint32_t part, unsigned char *data)
{
    const LhAttention *a = &n->reference.attention;
    const Cell cell = cell_of(program, rank, slot, part);
    Piece pieces[2] = { 0 };
    const unsigned count = pieces_of(&n->reference, &program->slots[slot], pieces);

    if (program->slots[slot].kind == LH_TENSOR_STATE)
        load_state(n, &cell, data);
    else if (count == 0)
        load_others(n, program, rank, slot, part, data);
    for (unsigned p = 0; p < count; p++) {
        const uint64_t width = width_in(&cell, &pieces[p]);

        for (uint64_t t = 0; t < a->batch * cell.segment.count; t++) {
            const double *from = pieces[p].whole + token_at(a, &pieces[p], &cell, t);

            for (uint64_t i = 0; i < width; i++)
                lh_element_put(data + pieces[p].offset_bytes, pieces[p].storage, t * width + i,
                               from[i]);
        }
    }
}

/* ---- comparison ---- */

/* Sums over a whole tensor, row by row (a row is one token and head). */
typedef struct {
    const LhReference *r;
    uint64_t row; /* elements */
    bool by_size;
    double error2, norm2;
    double mean2; /* of the rows' squared norms; of the first pass */
    double row_max, abs_max;
    uint64_t rows;
} Sums;

/* NaN wins, whichever comes first. */
static double
worse(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static void
add_row(Sums *s, const Piece *piece, uint64_t at, const unsigned char *data, uint64_t index)
{
    double error2 = 0, norm2 = 0;

    for (uint64_t i = 0; i < s->row; i++) {
        const double found = lh_element_get(data, piece->storage, index + i);
        const double want = piece->whole[at + i];
        const double size = s->by_size && piece->sizes != NULL ? piece->sizes[at + i] : want;

        error2 += (found - want) * (found - want);
        norm2 += size * size;
        s->abs_max = worse(fabs(found - want), s->abs_max);
    }
    s->error2 += error2;
    s->norm2 += norm2;
    s->rows++;
    if (s->mean2 > 0)
        s->row_max = worse(sqrt(error2 / fmax(norm2, s->mean2)), s->row_max);
}

static void
add_part(Sums *s, const Piece *piece, const Cell *cell, const unsigned char *data)
{
    const LhAttention *a = &s->r->attention;
    const uint64_t width = width_in(cell, piece);

    for (uint64_t t = 0; t < a->batch * cell->segment.count; t++) {
        const uint64_t at = token_at(a, piece, cell, t);

        for (uint64_t i = 0; i < width; i += s->row)
            add_row(s, piece, at + i, data + piece->offset_bytes, t * width + i);
    }
}

static Sums
sum_up(const LhNumerics *n, const LhProgram *program, const LhRunResult *result, uint16_t slot,
       unsigned index, double mean2)
{
    const LhSlot *s = &program->slots[slot];
    Sums sums = { .r = &n->reference,
                  .by_size = n->inputs != LH_INPUTS_NORMAL,
                  .mean2 = mean2,
                  .row = s->kind == LH_TENSOR_LSE ? 1 : n->reference.attention.head_dim };
    Piece pieces[2] = { 0 };

    pieces_of(&n->reference, s, pieces);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        for (uint32_t part = 0; part < s->parts; part++) {
            const Cell cell = cell_of(program, rank, slot, part);

            if (lh_slot_holds(program, s, rank, part))
                add_part(&sums, &pieces[index], &cell,
                         lh_run_output(result, program, rank, slot, part));
        }
    }
    return sums;
}

static double
gate_of(const LhProgram *program, LhTensorKind kind)
{
    if (kind != LH_TENSOR_O)
        return GATE_GRADIENT;
    return program->params.attention.dtype == LH_DTYPE_FP32 ? GATE_O_FP32 : GATE_O_16BIT;
}

static void
compare_tensor(const LhNumerics *n, const LhProgram *program, const LhRunResult *result,
               uint16_t slot, unsigned index, LhErrorRow *row)
{
    const LhTensorKind kind = program->slots[slot].kind;
    const Sums first = sum_up(n, program, result, slot, index, 0);
    const Sums sums =
        sum_up(n, program, result, slot, index, first.norm2 / (double)MAX(first.rows, 1));

    row->rel_l2 = sums.norm2 > 0 ? sqrt(sums.error2 / sums.norm2) : sqrt(sums.error2);
    row->row_max = sums.row_max;
    row->abs_max = sums.abs_max;
    if (kind == LH_TENSOR_LSE) {
        row->abs_max_gate = GATE_LSE;
        row->ok = row->abs_max <= GATE_LSE;
        return;
    }
    row->rel_l2_gate = gate_of(program, kind);
    row->row_max_gate = LH_ROW_GATE * row->rel_l2_gate;
    row->ok = row->rel_l2 <= row->rel_l2_gate && row->row_max <= row->row_max_gate;
}

void
lh_error_report_clear(LhErrorReport *report)
{
    g_free(report->rows);
    *report = (LhErrorReport){ 0 };
}

void
lh_numerics_compare(const LhNumerics *n, const LhProgram *program, const LhRunResult *result,
                    LhErrorReport *report)
{
    static const char *const names[LH_TENSOR_KINDS][2] = {
        [LH_TENSOR_O] = { "o" },          [LH_TENSOR_LSE] = { "lse" }, [LH_TENSOR_DQ] = { "dq" },
        [LH_TENSOR_DKV] = { "dk", "dv" }, [LH_TENSOR_DK] = { "dk" },   [LH_TENSOR_DV] = { "dv" },
    };

    report->ok = true;
    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        const LhSlot *s = &program->slots[slot];

        for (unsigned i = 0; s->role == LH_SLOT_OUTPUT && i < 2 && names[s->kind][i] != NULL; i++) {
            LhErrorRow *row;

            report->rows = g_renew(LhErrorRow, report->rows, report->rows_count + 1);
            row = &report->rows[report->rows_count++];
            *row = (LhErrorRow){ 0 };
            row->name = names[s->kind][i];
            compare_tensor(n, program, result, (uint16_t)slot, i, row);
            report->ok = report->ok && row->ok;
        }
    }
}

#define BASELINE_FACTOR 2

/* Everything but the worst row is within its gate. NaN is not. */
static bool
is_within_but_for_a_row(const LhErrorRow *row)
{
    if (row->abs_max_gate > 0 && !(row->abs_max <= row->abs_max_gate))
        return false;
    return row->rel_l2_gate <= 0 || row->rel_l2 <= row->rel_l2_gate;
}

bool
lh_numerics_only_rows(const LhErrorReport *report)
{
    for (uint32_t i = 0; i < report->rows_count; i++)
        if (!is_within_but_for_a_row(&report->rows[i]) || !isfinite(report->rows[i].row_max))
            return false;
    return !report->ok;
}

void
lh_numerics_allow_rows(LhErrorReport *report, const LhErrorReport *baseline)
{
    report->ok = true;
    for (uint32_t i = 0; i < report->rows_count; i++) {
        LhErrorRow *row = &report->rows[i];

        for (uint32_t k = 0; k < baseline->rows_count && row->row_max_gate > 0; k++)
            if (strcmp(baseline->rows[k].name, row->name) == 0)
                row->row_max_gate =
                    fmax(row->row_max_gate, BASELINE_FACTOR * baseline->rows[k].row_max);
        row->ok = is_within_but_for_a_row(row) &&
                  (row->row_max_gate <= 0 || row->row_max <= row->row_max_gate);
        report->ok = report->ok && row->ok;
    }
}
