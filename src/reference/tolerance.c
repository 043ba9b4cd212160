/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in units of expected rounding. */
#include "reference/tolerance.h"

#include "base/error.h"

#include "kernels/cpu/rows.h"
#include "program/collective_semantics.h"
#include "program/cursor.h"
#include "reference/reference_slots.h"

#include <math.h>
#include <string.h>

#define FP32_ROUNDOFF 0x1p-24

/* ---- number of roundings ---- */

/* Returns the output tensor that a partial result becomes; its roundings count for that. */
static LhTensorKind
result_of(LhTensorKind kind)
{
    switch (kind) {
    case LH_TENSOR_ACC:
    case LH_TENSOR_OUT:
        return LH_TENSOR_O;
    case LH_TENSOR_DK:
    case LH_TENSOR_DV:
        return LH_TENSOR_DKV;
    default:
        return kind;
    }
}

/* Additions to the 16-bit cells of a program, each of which rounds. */
typedef struct {
    const LhProgram *program;
    LhCollectiveWay collectives;
    uint32_t *by_cell;
} Roundings;

static void
add_roundings(const Roundings *r, const LhRegion *region, uint32_t count)
{
    const LhSlot *slot = &r->program->slots[region->slot];

    if (slot->dtype == LH_DTYPE_FP32)
        return;
    for (uint32_t part = 0; part < region->count; part++)
        r->by_cell[slot->first_cell + region->part + part] += count;
}

/* Counts sums that a kernel updates in place. */
static void
count_kernel(const Roundings *r, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];

    for (unsigned i = 0; i < op->compute.regions_count && !op->compute.args.first; i++) {
        if (kernel->operands[i].access == LH_OPERAND_UPDATE)
            add_roundings(r, &op->compute.regions[i], 1);
    }
}

/* Counts sums in a ring: every member except the first and the last passes on a rounded value. */
static void
count_collective(const Roundings *r, const LhOp *op)
{
    const uint64_t members = lh_group_size(&op->collective.group);

    if (r->collectives == LH_WAY_DIRECT || members <= 2 ||
        !lh_collective_reduces(op->collective.kind))
        return;
    for (unsigned i = 0; i < op->collective.tensors_count; i++)
        add_roundings(r, &op->collective.receive[i], (uint32_t)members - 2);
}

static void
count_op(const Roundings *r, const LhOp *op)
{
    if (op->kind == LH_OP_COMPUTE)
        count_kernel(r, op);
    else if (op->kind == LH_OP_COLLECTIVE)
        count_collective(r, op);
}

/* Scores in memory in 16 bits are partial results of o and of the gradients. */
static void
count_scores(const LhProgram *program, uint32_t *rounded)
{
    uint32_t probs = 0, dscores = 0;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot->kind == LH_TENSOR_PROBS && slot->dtype != LH_DTYPE_FP32)
            probs = 1;
        if (slot->kind == LH_TENSOR_DSCORES && slot->dtype != LH_DTYPE_FP32)
            dscores = 1;
    }
    rounded[LH_TENSOR_O] += probs;
    rounded[LH_TENSOR_DQ] += probs + 2 * dscores; /* dp is rounded, then ds from it */
    rounded[LH_TENSOR_DKV] += probs + 2 * dscores;
}

/* Updates @most per kind: the sum, over the kind's slots, of the maximum over a slot's cells. */
static void
count_rank(const LhProgram *program, const uint32_t *by_cell, uint32_t *most)
{
    uint32_t by_kind[LH_TENSOR_KINDS] = { 0 };

    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];
        uint32_t of_slot = 0;

        for (uint32_t part = 0; part < slot->parts; part++)
            of_slot = MAX(of_slot, by_cell[slot->first_cell + part]);
        by_kind[result_of(slot->kind)] += of_slot;
    }
    for (unsigned kind = 0; kind < LH_TENSOR_KINDS; kind++)
        most[kind] = MAX(most[kind], by_kind[kind]);
}

/*
 * Computes R of every kind of tensor: 2 for partial results and result, plus the additions of a
 * rank to 16-bit sums. If a sum travels from rank to rank, each rank adds to as many sums as there
 * are additions to one.
 */
static void
count_roundings(const LhProgram *program, LhCollectiveWay collectives, uint32_t *rounded)
{
    const uint32_t cells = lh_program_cells(program);
    g_autofree uint32_t *by_cell = g_new(uint32_t, MAX(cells, 1));
    const Roundings roundings = { program, collectives, by_cell };
    LhOpBuffer buffer = { 0 };

    memset(rounded, 0, LH_TENSOR_KINDS * sizeof(*rounded));
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        LhCursor cursor;

        memset(by_cell, 0, cells * sizeof(*by_cell));
        lh_cursor_init(&cursor, program, rank);
        while (lh_cursor_step(&cursor, &buffer))
            for (uint32_t i = 0; i < buffer.ops_count; i++)
                count_op(&roundings, &buffer.ops[i]);
        count_rank(program, by_cell, rounded);
    }
    for (unsigned kind = 0; kind < LH_TENSOR_KINDS; kind++)
        rounded[kind] += 2;
    count_scores(program, rounded);
    lh_op_buffer_clear(&buffer);
}

/* ---- units ---- */

/*
 * Units of one output tensor: the square of a row's unit is size_factor size2 + delta_factor delta2
 * + constant.
 */
typedef struct {
    const double *size2, *delta2; /* NULL: 1, 0 */
    double size_factor, delta_factor, constant;
    uint32_t rounded;
} Units;

static double
roundoff_of(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP32 ? FP32_ROUNDOFF : dtype == LH_DTYPE_FP16 ? 0x1p-11 : 0x1p-8;
}

/*
 * Returns half the distance of the smallest numbers; for types with fp32's exponent, the part that
 * exp() drops by returning 0 below e^-87.
 */
static double
underflow_of(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP16 ? 0x1p-25 : 1e-32;
}

static void
set_sizes(const LhReference *r, const LhReferenceSlots *held, Units *u)
{
    const struct {
        const double *whole, *size2, *delta2;
    } sizes[] = { { r->o, r->o_size2, NULL },
                  { r->dq, r->dq_size2, r->dq_delta2 },
                  { r->dk, r->dk_size2, r->dk_delta2 },
                  { r->dv, r->dv_size2, NULL } };

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (held->whole == sizes[i].whole) {
            u->size2 = sizes[i].size2;
            u->delta2 = sizes[i].delta2;
        }
    }
}

static Units
units_of(const LhReference *r, const LhReferenceSlots *held, LhTensorKind kind,
         const uint32_t *rounded)
{
    const LhAttention *a = &r->attention;
    const double u = roundoff_of(a->dtype), tiny = underflow_of(a->dtype);
    const double w = 2 * FP32_ROUNDOFF * (1 + r->logit_size + log((double)a->seq_length));
    const uint32_t times = rounded[result_of(kind)];
    Units units = { .size_factor = times * u * u + w * w,
                    .delta_factor = rounded[LH_TENSOR_O] * u * u + w * w,
                    .constant = (double)a->seq_length * times * tiny * tiny * r->input_size2,
                    .rounded = times };

    if (kind == LH_TENSOR_LSE)
        units = (Units){ .constant = w * w, .rounded = 1 };
    set_sizes(r, held, &units);
    return units;
}

/* ---- sums over rows ---- */

/* Sums of one output tensor; additive over parts, ranks and processes. */
typedef struct {
    double error2, size2;
    double units2, worst; /* of the errors in units: sum of squares, maximum */
    double rows;
} GateSums;

typedef struct {
    const LhReference *r;
    const LhReferenceSlots *held;
    const Units *units;
    const unsigned char *data;
    GateSums *sums;
    const uint8_t *rows; /* rows to compare; NULL: all */
} Comparison;

/* Returns the maximum; NaN in either argument wins. */
static double
worse(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static void
compare_row(void *data, uint64_t row, uint64_t element)
{
    const Comparison *c = data;
    const Units *u = c->units;
    const double *want = lh_reference_slots_row(c->r, c->held, row);
    double error2 = 0, norm2 = 0, size2, unit2;

    if (c->rows != NULL && !c->rows[row])
        return;
    for (uint32_t i = 0; i < c->held->dim; i++) {
        const double found = lh_element_get(c->data, c->held->storage, element + i);

        error2 += (found - want[i]) * (found - want[i]);
        norm2 += want[i] * want[i];
    }
    size2 = u->size2 != NULL ? u->size2[row] : norm2;
    unit2 = u->size_factor * size2 + u->constant;
    if (u->delta2 != NULL)
        unit2 += u->delta_factor * u->delta2[row];
    c->sums->error2 += error2;
    c->sums->size2 += size2;
    c->sums->units2 += error2 / unit2;
    c->sums->worst = worse(sqrt(error2 / unit2), c->sums->worst);
    c->sums->rows++;
}

static void
add_sums(GateSums *to, const GateSums *from)
{
    to->error2 += from->error2;
    to->size2 += from->size2;
    to->units2 += from->units2;
    to->worst = worse(from->worst, to->worst);
    to->rows += from->rows;
}

/* Compares all parts of a slot on the ranks in @place. */
static void
compare_slot(const LhReference *r, const LhProgram *program, const LhRunResult *result,
             const LhControlPlace *place, uint16_t slot, Comparison *c)
{
    const LhSlot *s = &program->slots[slot];

    for (uint32_t rank = place->first; rank < place->first + place->count; rank++) {
        for (uint32_t part = 0; part < s->parts; part++) {
            const LhReferencePart at = lh_reference_slots_part(program, rank, slot, part);

            if (!lh_slot_holds(program, s, rank, part))
                continue;
            c->data = lh_run_output(result, program, rank, slot, part) + c->held->offset_bytes;
            lh_reference_slots_visit(r, c->held, &at, compare_row, c);
        }
    }
}

/* ---- reports ---- */

/*
 * Appends the output tensors, in order, to @report, and their sums over the ranks in @place to
 * @sums.
 */
static void
compare_place(const LhNumerics *n, const LhProgram *program, const LhRunResult *result,
              const LhControlPlace *place, LhErrorReport *report, GArray *sums)
{
    uint32_t rounded[LH_TENSOR_KINDS];

    count_roundings(program, result->collectives, rounded);
    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        const LhSlot *s = &program->slots[slot];
        LhReferenceSlots held[2] = { 0 };
        const unsigned count =
            s->role == LH_SLOT_OUTPUT ? lh_reference_slots(&n->reference, s, held) : 0;

        for (unsigned i = 0; i < count && held[i].name != NULL; i++) {
            const Units units = units_of(&n->reference, &held[i], s->kind, rounded);
            GateSums tensor = { 0 };
            Comparison c = { .r = &n->reference,
                             .held = &held[i],
                             .units = &units,
                             .sums = &tensor,
                             .rows = held[i].keys ? n->keys : n->queries };
            const LhErrorRow row = { .name = held[i].name, .rounded = units.rounded };

            compare_slot(&n->reference, program, result, place, (uint16_t)slot, &c);
            g_array_append_val(sums, tensor);
            report->rows = g_renew(LhErrorRow, report->rows, report->rows_count + 1);
            report->rows[report->rows_count++] = row;
        }
    }
}

static void
judge(LhErrorReport *report, const GateSums *sums)
{
    report->ok = true;
    for (uint32_t i = 0; i < report->rows_count; i++) {
        LhErrorRow *row = &report->rows[i];
        const GateSums *s = &sums[i];

        row->rel_l2 = sqrt(s->error2 / (s->size2 > 0 ? s->size2 : 1));
        row->mean = sqrt(s->units2 / fmax(s->rows, 1));
        row->row = s->worst;
        row->ok = s->rows > 0 && row->mean <= LH_TOLERANCE_MEAN && row->row <= LH_TOLERANCE_ROW;
        report->ok = report->ok && row->ok;
    }
}

void
lh_tolerance_compare(const LhNumerics *n, const LhProgram *program, const LhRunResult *result,
                     LhErrorReport *report)
{
    const LhControlPlace all = { 0, lh_program_ranks(program) };
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(GateSums));

    compare_place(n, program, result, &all, report, sums);
    judge(report, (const GateSums *)(void *)sums->data);
}

bool
lh_tolerance_compare_shared(const LhNumerics *n, const LhProgram *program,
                            const LhRunResult *result, const LhOpenControl *control,
                            LhErrorReport *report, GError **error)
{
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(GateSums));
    g_autoptr(GByteArray) mine = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    guint bytes;

    compare_place(n, program, result, &control->place, report, sums);
    if (sums->len == 0) { /* no process has a tensor of the reference */
        report->ok = true;
        return true;
    }
    bytes = sums->len * (guint)sizeof(GateSums);
    g_byte_array_append(mine, (const guint8 *)sums->data, bytes);
    if (!control->table->gather(control->state, mine, bytes, all, error))
        return false;
    if (all->len % bytes != 0) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "malformed error sums from another process");
        return false;
    }
    if (all->len == 0) {
        lh_error_report_clear(report);
        return true;
    }
    memset(sums->data, 0, bytes);
    for (guint at = 0; at < all->len; at += sizeof(GateSums)) {
        GateSums more;

        memcpy(&more, all->data + at, sizeof(more));
        add_sums(&g_array_index(sums, GateSums, at % bytes / sizeof(GateSums)), &more);
    }
    judge(report, (const GateSums *)(void *)sums->data);
    return true;
}

void
lh_error_report_clear(LhErrorReport *report)
{
    g_free(report->rows);
    *report = (LhErrorReport){ 0 };
}
