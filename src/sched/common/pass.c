/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of attention programs. */
#include "sched/common/pass.h"

static const char *const wire_names[] = {
    [LH_WIRE_DEFAULT] = "default",
    [LH_WIRE_FP32] = "fp32",
    [LH_WIRE_16BIT] = "16bit",
    NULL,
};

const LhOption lh_option_no_overlap = {
    .name = "no_overlap",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_FLAG,
    .help = "Do not overlap communication with compute: each step waits for its messages before it "
            "computes.",
};

const LhOption lh_option_published_code = {
    .name = "published_code",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_FLAG,
    .help = "Follow the schedule's public code where longhaul differs from it; `longhaul show "
            "SCHEDULE` lists the differences.",
};

static bool
check_wire(const LhProgramParams *p, GError **error)
{
    if (lh_pass_wire(p) != LH_WIRE_16BIT || p->attention.dtype != LH_DTYPE_FP32)
        return true;
    return lh_program_refuse(error, "16-bit gradients on the wire need 16-bit activations");
}

const LhOption lh_option_gradient_wire = {
    .name = "gradient_wire",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_CHOICE,
    .choices = wire_names,
    .check = check_wire,
    .help = "Element type in which gradients are sent. Default: the type that the published system "
            "sends.",
};

LhPassSizes
lh_pass_sizes(const LhProgramParams *p, uint32_t wire_default)
{
    const LhAttention *a = &p->attention;
    LhPassSizes z = { .n = a->seq_length / p->ranks, .e = lh_dtype_bytes(a->dtype) };

    z.w = wire_default != 0 ? wire_default : z.e;
    if (lh_pass_wire(p) == LH_WIRE_FP32)
        z.w = 4;
    else if (lh_pass_wire(p) == LH_WIRE_16BIT)
        z.w = 2;
    z.q = lh_attention_q_bytes(a, z.n);
    z.kv = lh_attention_kv_bytes(a, z.n, z.e);
    z.s = a->linear ? 0 : lh_attention_stat_bytes(a, z.n);
    z.dq = z.q / z.e * z.w;
    z.dkv = z.kv / z.e * z.w;
    return z;
}

LhPassSlots
lh_pass_declare(LhProgram *program, const LhPassSizes *z)
{
    const LhProgramParams *p = &program->params;
    const uint32_t segments = lh_placement_parts(&program->placement);
    const bool by_heads = program->placement.kind == LH_PLACE_HEADS; /* a rank has one slice */
    const uint32_t parts = segments * (by_heads ? 1 : program->head_slices);
    const uint32_t kv_parts = segments * (by_heads ? 1 : program->kv_slices);
    const uint64_t q = z->q / parts, kv = z->kv / kv_parts, s = z->s / parts;
    /* Outputs saved by the forward pass are inputs of a backward pass that runs alone. */
    const LhSlotRole saved = lh_pass_has(p, LH_PASS_FWD) ? LH_SLOT_OUTPUT : LH_SLOT_INPUT;
    LhPassSlots slots = { 0 };

    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    slots.q = lh_pass_add_slot(program, "q", LH_TENSOR_Q, LH_SLOT_INPUT, parts, q, z->e);
    slots.kv = lh_pass_add_slot(program, "kv", LH_TENSOR_KV, LH_SLOT_INPUT, kv_parts, kv, z->e);
    slots.o = lh_pass_add_slot(program, "o", LH_TENSOR_O, saved, parts, q, z->e);
    if (!p->attention.linear)
        slots.lse = lh_pass_add_slot(program, "lse", LH_TENSOR_LSE, saved, parts, s, 4);
    if (!lh_pass_has(p, LH_PASS_BWD))
        return slots;
    slots.dout = lh_pass_add_slot(program, "do", LH_TENSOR_DO, LH_SLOT_INPUT, parts, q, z->e);
    slots.dq = lh_pass_add_slot(program, "dq", LH_TENSOR_DQ, LH_SLOT_OUTPUT, parts, q, z->e);
    slots.dkv = lh_pass_add_slot(program, "dkv", LH_TENSOR_DKV, LH_SLOT_OUTPUT, kv_parts, kv, z->e);
    return slots;
}

uint16_t /* NOLINTNEXTLINE(readability-function-size): a slot has so many properties */
lh_pass_add_slot(LhProgram *program, const char *name, LhTensorKind kind, LhSlotRole role,
                 uint32_t parts, uint64_t part_bytes, uint32_t element_bytes)
{
    const LhDtype activation = program->params.attention.dtype;

    return lh_program_add_slot(
        program,
        (LhSlotParams){
            .name = name,
            .kind = kind,
            .role = role,
            .dtype = element_bytes == lh_dtype_bytes(activation) ? activation : LH_DTYPE_FP32,
            .parts = parts,
            .part_bytes = part_bytes,
        });
}

uint16_t
lh_pass_add_buffer(LhProgram *program, const char *name, LhTensorKind kind, uint64_t bytes,
                   uint32_t element_bytes)
{
    const uint32_t parts = lh_placement_parts(&program->placement);

    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, parts, bytes / parts, element_bytes);
}

LhPassSums
lh_pass_add_sums(LhProgram *program, const LhPassSizes *z)
{
    LhPassSums sums;

    sums.dq = lh_pass_add_buffer(program, "bwd_dq_sum", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    sums.dkv = lh_pass_add_buffer(program, "bwd_dkv_sum", LH_TENSOR_DKV, z->kv / z->e * 4, 4);
    return sums;
}

uint64_t
lh_pass_sums_bytes(const LhPassSizes *z)
{
    return (z->q + z->kv) / z->e * 4;
}

void
lh_pass_end_sums(LhEmitter *e, const LhPassSums *sums, const LhPassSlots *io,
                 const LhKernelArgs *q_rows, const LhKernelArgs *kv_rows)
{
    lh_pass_compute(e, LH_KERNEL_ID_cast, q_rows);
    lh_emit_operand(e, sums->dq, 0, 1);
    lh_emit_operand(e, io->dq, 0, 1);
    lh_pass_compute(e, LH_KERNEL_ID_cast, kv_rows);
    lh_emit_operand(e, sums->dkv, 0, 1);
    lh_emit_operand(e, io->dkv, 0, 1);
}

uint64_t
lh_pass_io_bytes(const LhProgramParams *p)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t forward = z.q + z.kv + z.q + z.s; /* q, kv; o, lse */

    return forward + (lh_pass_has(p, LH_PASS_BWD) ? 2 * z.q + z.kv : 0); /* do, dq, dkv */
}

uint64_t
lh_pass_peak_bytes(const LhProgramParams *p, uint64_t fwd_buffers, uint64_t bwd_buffers)
{
    const uint64_t fwd = lh_pass_has(p, LH_PASS_FWD) ? fwd_buffers : 0;
    const uint64_t bwd = lh_pass_has(p, LH_PASS_BWD) ? bwd_buffers : 0;

    return lh_pass_io_bytes(p) + MAX(fwd, bwd);
}

uint32_t
lh_pass_steps(const LhProgram *program, uint32_t rank)
{
    (void)rank;
    return program->params.pass == LH_PASS_BOTH ? 2 : 1;
}

static LhKernelArgs
shape_args(const LhProgramParams *p)
{
    return (LhKernelArgs){
        .batch = p->attention.batch,
        .heads = p->attention.heads,
        .groups = p->attention.groups,
        .head_dim = p->attention.head_dim,
        .decay = p->attention.linear ? p->attention.decay : 0,
        .scale = p->attention.linear ? 0 : p->attention.scale,
    };
}

LhKernelArgs
lh_pass_slice_args(const LhProgram *program, LhKernelArgs args)
{
    args.heads /= MAX(program->head_slices, 1);
    args.groups /= MAX(program->kv_slices, 1);
    return args;
}

LhKernelArgs
lh_pass_block_args(const LhProgramParams *p, uint64_t nq, uint64_t nk, LhMaskKind mask,
                   int8_t shift)
{
    LhKernelArgs args = shape_args(p);

    args.nq = nq;
    args.nk = nk;
    args.mask = (uint8_t)mask;
    args.shift = shift;
    args.pairs = mask == LH_MASK_CAUSAL ? lh_causal_pairs(nq, nk, shift) : nq * nk;
    return args;
}

/* Treats parts that are adjacent in the sequence as one segment. */
static LhPassRows
joined(LhPassRows rows)
{
    if (rows.part_step != (int64_t)(rows.first.count * rows.first.stride))
        return rows;
    rows.first.count *= rows.parts;
    rows.parts = 1;
    return rows;
}

static LhSegment
part_of(const LhPassRows *rows, uint32_t part)
{
    LhSegment segment = rows->first;

    segment.start = (uint64_t)((int64_t)segment.start + part * rows->part_step);
    return segment;
}

LhKernelArgs
lh_pass_position_args(const LhProgram *program, LhPassRows q, LhPassRows k)
{
    LhKernelArgs args = lh_pass_slice_args(program, shape_args(&program->params));
    const LhPassRows of_q = joined(q), of_k = joined(k);

    args.nq = q.parts * q.first.count;
    args.nk = k.parts * k.first.count;
    for (uint32_t a = 0; a < of_q.parts; a++) {
        for (uint32_t b = 0; b < of_k.parts; b++)
            args.pairs +=
                lh_mask_pairs(&program->params.mask, part_of(&of_q, a), part_of(&of_k, b));
    }
    args.mask = LH_MASK_EMPTY;
    if (args.pairs == args.nq * args.nk) {
        args.mask = LH_MASK_FULL;
    } else if (args.pairs > 0) {
        args.mask = LH_MASK_POSITIONS;
        args.q_at = (LhRowsPosition){ (int64_t)q.first.start, q.part_step };
        args.k_at = (LhRowsPosition){ (int64_t)k.first.start, k.part_step };
        args.stride = q.first.count > 1 ? q.first.stride : k.first.stride;
        args.rule = &program->params.mask;
    }
    return args;
}

LhKernelArgs
lh_pass_q_args(const LhProgramParams *p, uint64_t rows)
{
    LhKernelArgs args = shape_args(p);

    args.nq = rows;
    return args;
}

LhKernelArgs
lh_pass_kv_args(const LhProgramParams *p, uint64_t rows)
{
    LhKernelArgs args = shape_args(p);

    args.nk = rows;
    return args;
}

uint64_t
lh_pass_flops(const LhProgramParams *p, uint64_t pairs)
{
    const LhAttention *a = &p->attention;
    const unsigned forward = lh_pass_has(p, LH_PASS_FWD) ? 4 : 0;
    const unsigned backward = lh_pass_has(p, LH_PASS_BWD) ? 10 : 0;

    return (uint64_t)(forward + backward) * a->batch * a->heads * a->head_dim * pairs;
}

static LhPlacement
placement_of(const LhProgramParams *p, LhPlacementKind kind)
{
    return (LhPlacement){ .kind = kind, .ranks = p->ranks, .seq_length = p->attention.seq_length };
}

uint64_t
lh_pass_rank_pairs(const LhProgramParams *p, LhPlacementKind kind, uint32_t rank)
{
    const LhPlacement placement = placement_of(p, kind);
    uint64_t pairs = 0;

    for (uint32_t part = 0; part < lh_placement_parts(&placement); part++) {
        const uint32_t id = lh_placement_segment_id(&placement, rank, part);

        pairs += lh_mask_keys_count(&p->mask, lh_placement_segment(&placement, id),
                                    placement.seq_length);
    }
    return pairs;
}

uint64_t
lh_pass_rank_key_pairs(const LhProgramParams *p, LhPlacementKind kind, uint32_t rank)
{
    const LhPlacement placement = placement_of(p, kind);
    const LhSegment all = { .stride = 1, .count = placement.seq_length };
    uint64_t pairs = 0;

    for (uint32_t part = 0; part < lh_placement_parts(&placement); part++) {
        const uint32_t id = lh_placement_segment_id(&placement, rank, part);

        pairs += lh_mask_pairs(&p->mask, all, lh_placement_segment(&placement, id));
    }
    return pairs;
}

static bool
ranks_meet(const LhPlacement *placement, const LhMaskRule *rule, uint32_t q_rank, uint32_t k_rank)
{
    const uint32_t parts = lh_placement_parts(placement);

    for (uint32_t i = 0; i < parts * parts; i++) {
        const uint32_t q = lh_placement_segment_id(placement, q_rank, i / parts);
        const uint32_t k = lh_placement_segment_id(placement, k_rank, i % parts);

        if (lh_mask_pairs(rule, lh_placement_segment(placement, q),
                          lh_placement_segment(placement, k)) > 0)
            return true;
    }
    return false;
}

uint64_t
lh_pass_rank_blocks(const LhProgramParams *p, LhPlacementKind kind, uint32_t rank)
{
    const LhPlacement placement = placement_of(p, kind);
    uint64_t blocks = 0;

    for (uint32_t other = 0; other < p->ranks; other++)
        blocks += ranks_meet(&placement, &p->mask, rank, other) ? 1 : 0;
    return blocks;
}

uint64_t
lh_pass_rank_key_blocks(const LhProgramParams *p, LhPlacementKind kind, uint32_t rank)
{
    const LhPlacement placement = placement_of(p, kind);
    uint64_t blocks = 0;

    for (uint32_t other = 0; other < p->ranks; other++)
        blocks += ranks_meet(&placement, &p->mask, other, rank) ? 1 : 0;
    return blocks;
}

LhRankRange
lh_pass_owners(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t length = p->attention.seq_length, n = length / p->ranks;
    const uint64_t first = lh_mask_keys(&p->mask, rank * n, length).first;
    const uint64_t end = lh_mask_keys(&p->mask, (rank + 1) * n - 1, length).end;

    return (LhRankRange){ (uint32_t)(first / n), (uint32_t)((end - 1) / n) };
}

uint32_t
lh_pass_common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        const uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

double
lh_pass_idle_none(const LhProgramParams *p)
{
    (void)p;
    return 0;
}

double
lh_pass_imbalance(const LhProgramParams *p,
                  uint64_t (*work)(const LhProgramParams *p, uint32_t rank))
{
    double total = 0, most = 0;

    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        const double own = (double)work(p, rank);

        total += own;
        most = MAX(most, own);
    }
    return 1 - total / (p->ranks * most);
}

uint64_t
lh_contiguous_flops(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;

    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_flops(p, lh_pass_rank_pairs(p, LH_PLACE_CONTIGUOUS, rank));
    if (!p->mask.causal)
        return lh_pass_flops(p, p->ranks * n * n);
    return lh_pass_flops(p, rank * n * n + n * (n + 1) / 2);
}

static uint64_t
contiguous_blocks(const LhProgramParams *p, uint32_t rank)
{
    const LhRankRange owners = lh_pass_owners(p, rank);

    return owners.last - owners.first + 1;
}

double
lh_contiguous_idle_unit(const LhProgramParams *p)
{
    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_imbalance(p, contiguous_blocks);
    return p->mask.causal ? (p->ranks - 1.0) / (2.0 * p->ranks) : 0;
}

double
lh_contiguous_idle_flops(const LhProgramParams *p)
{
    const double ranks = p->ranks;
    const double n = (double)p->attention.seq_length / ranks;

    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_imbalance(p, lh_contiguous_flops);
    return p->mask.causal ? (ranks - 1) * n / ((2 * ranks - 1) * n + 1) : 0;
}

void
lh_pass_alloc(LhEmitter *e, uint16_t first, uint16_t end)
{
    for (uint16_t slot = first; slot < end; slot++)
        lh_emit_alloc(e, slot);
}

void
lh_pass_free(LhEmitter *e, uint16_t first, uint16_t end)
{
    for (uint16_t slot = first; slot < end; slot++)
        lh_emit_free(e, slot);
}

static void
part_operands(LhEmitter *e, const uint16_t *slots, unsigned count, LhRegion parts)
{
    for (unsigned i = 0; i < count; i++)
        lh_emit_operand(e, slots[i], parts.part, parts.count);
}

void
lh_pass_attend(LhEmitter *e, const LhKernelArgs *args, const LhPassSlots *io, uint32_t first,
               uint32_t count)
{
    const bool linear = e->program->params.attention.linear;
    const uint16_t slots[] = { io->q, io->kv, io->o, io->lse };

    lh_pass_compute(e, linear ? LH_KERNEL_ID_linear_intra : LH_KERNEL_ID_attention, args);
    part_operands(e, slots, linear ? 3 : 4, (LhRegion){ .part = first, .count = count });
}

void
lh_pass_attend_grad(LhEmitter *e, const LhKernelArgs *args, const LhPassSlots *io, uint32_t first,
                    uint32_t count)
{
    const LhRegion parts = { .part = first, .count = count };
    const uint16_t linear[] = { io->q, io->dout, io->kv, io->dq, io->dkv };
    const uint16_t softmax[] = { io->q, io->dout, io->o, io->lse, io->kv, io->dq, io->dkv };

    if (e->program->params.attention.linear) {
        lh_pass_compute(e, LH_KERNEL_ID_linear_intra_bwd, args);
        part_operands(e, linear, G_N_ELEMENTS(linear), parts);
    } else {
        lh_pass_compute(e, LH_KERNEL_ID_attention_bwd_o, args);
        part_operands(e, softmax, G_N_ELEMENTS(softmax), parts);
    }
}
