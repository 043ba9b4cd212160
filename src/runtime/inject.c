/* SPDX-License-Identifier: Apache-2.0 */
/* Fault injection. */
#include "runtime/inject.h"

#include "base/error.h"
#include "base/rng.h"
#include "program/cursor.h"

#include <string.h>

#define DELAY_US_MAX 300

const char *const lh_inject_names[] = {
    "drop-pair",     "duplicate-pair", "mask-shift", "local-lse", "stale-buffer",
    "wrong-kv-head", "stall",          "delay",      NULL,
};

G_STATIC_ASSERT(G_N_ELEMENTS(lh_inject_names) == LH_INJECT_KINDS + 1);

/* ---- targets ---- */

static const LhKernel *
kernel_of(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE ? lh_kernels[op->compute.kernel] : NULL;
}

static bool
is_attention(const LhKernel *kernel)
{
    return kernel != NULL &&
           (kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD ||
            kernel->effect == LH_EFFECT_SOFTMAX || kernel->effect == LH_EFFECT_SCORES_APPLY);
}

/* Whether the kernel adds to an operand. */
static bool
is_sum(const LhKernel *kernel)
{
    return kernel != NULL &&
           (kernel->effect == LH_EFFECT_ADD || kernel->effect == LH_EFFECT_STATE_SUM ||
            kernel->effect == LH_EFFECT_STATE_CARRY || kernel->effect == LH_EFFECT_STATE_APPLY);
}

/* Whether a second call adds its result once more. */
static bool
accumulates(const LhKernel *kernel)
{
    for (const LhOperand *o = kernel->operands; o->access != LH_OPERAND_END; o++) {
        if (o->access == LH_OPERAND_UPDATE)
            return true;
    }
    return false;
}

/* Index of the operand of @kind, or -1. */
static int
operand_of(const LhKernel *kernel, LhTensorKind kind)
{
    for (int i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
        if (kernel->operands[i].kind == kind)
            return i;
    }
    return -1;
}

/* How well an op suits the fault; 0: not at all. The best op is the target, the last one of
 * equals. */
static unsigned
suits(LhInjectKind kind, const LhOp *op)
{
    const LhKernel *kernel = kernel_of(op);
    const LhKernelArgs *args = &op->compute.args;
    bool attends;

    if (kernel == NULL)
        return 0;
    attends = is_attention(kernel) && args->pairs > 0;
    switch (kind) {
    case LH_INJECT_DROP_PAIR:
        return !attends && !is_sum(kernel) ? 0 : args->first ? 1 : 2;
    case LH_INJECT_DUPLICATE_PAIR:
        if ((!attends && !is_sum(kernel)) || !accumulates(kernel))
            return 0;
        return args->first ? 1 : 2;
    case LH_INJECT_MASK_SHIFT:
        return attends && (args->mask == LH_MASK_CAUSAL || args->mask == LH_MASK_POSITIONS);
    case LH_INJECT_LOCAL_LSE:
        return attends && kernel->effect == LH_EFFECT_ATTEND_GRAD &&
               operand_of(kernel, LH_TENSOR_LSE) >= 0;
    case LH_INJECT_WRONG_KV_HEAD:
        return attends && args->groups > 1 && operand_of(kernel, LH_TENSOR_KV) >= 0;
    default:
        return 0;
    }
}

typedef struct {
    LhFault *fault;
    unsigned best;
    LhPhase phase;
    uint16_t layer, micro_batch; /* of the best op so far */
    uint8_t *received;           /* by slot: whether it has received */
} Search;

static void
consider(Search *search, uint32_t rank, const LhOp *op, unsigned how_well)
{
    if (how_well == 0 || how_well < search->best)
        return;
    search->best = how_well;
    search->fault->rank = rank;
    search->fault->op = op->id;
    search->layer = op->layer;
    search->micro_batch = op->micro_batch;
}

/*
 * Considers a message into @slot, which suits better if the slot has held such a tensor before.
 * Activations outside attention are no targets: no result depends on them.
 */
static void
consider_receive(Search *search, const LhProgram *program, LhFault target, uint16_t slot)
{
    const LhTensorKind kind = program->slots[slot].kind;
    const unsigned how_well =
        1U + (search->received[slot] > 0 ? 1 : 0) + (kind == LH_TENSOR_KV ? 1 : 0);

    if (lh_tensor_is_outside(kind))
        return;
    search->received[slot] = 1;
    if (how_well < search->best)
        return;
    search->best = how_well;
    search->fault->rank = target.rank;
    search->fault->op = target.op;
    search->fault->peer = target.peer;
    search->fault->tag = target.tag;
}

static void
consider_messages(Search *search, const LhProgram *program, uint32_t rank, const LhOp *op,
                  const LhPart *parts)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhFault target = {
            .rank = rank, .op = op->id, .peer = parts[i].peer, .tag = parts[i].tag
        };

        if (!parts[i].send)
            consider_receive(search, program, target, parts[i].regions[0].slot);
    }
}

/* Considers the previous member's message in a chain, else that of the first member, whose keys
 * most queries see. */
static void
consider_collective(Search *search, const LhProgram *program, uint32_t rank, const LhOp *op)
{
    const LhGroup *group = &op->collective.group;
    const uint32_t position = lh_group_position(group, rank);
    const bool chain = op->collective.kind == LH_COLL_BROADCAST;
    LhFault target = { .rank = rank, .op = op->id };

    if (lh_group_size(group) == 1 || (chain && position == 0))
        return;
    target.peer = (uint32_t)lh_group_member(group, chain ? position - 1 : position == 0 ? 1 : 0);
    for (uint32_t i = 0; i < op->collective.tensors_count; i++)
        consider_receive(search, program, target, op->collective.receive[i].slot);
}

static void
search_rank(Search *search, const LhProgram *program, uint32_t rank)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    memset(search->received, 0, program->slots_count);
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->phase != search->phase)
                continue;
            if (search->fault->kind != LH_INJECT_STALE_BUFFER)
                consider(search, rank, op, suits(search->fault->kind, op));
            else if (op->kind == LH_OP_EXCHANGE)
                consider_messages(search, program, rank, op,
                                  &buffer.parts[op->exchange.parts_first]);
            else if (op->kind == LH_OP_COLLECTIVE)
                consider_collective(search, program, rank, op);
        }
    }
    lh_op_buffer_clear(&buffer);
}

/* Query rows times heads over all attention gradient calls on @rank, in the layer and micro-batch
 * of the target. */
static uint64_t
gradient_rows(const Search *search, const LhProgram *program, uint32_t rank)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    uint64_t rows = 0;

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->layer == search->layer && op->micro_batch == search->micro_batch &&
                suits(LH_INJECT_LOCAL_LSE, op) > 0)
                rows += op->compute.args.nq * op->compute.args.heads;
        }
    }
    lh_op_buffer_clear(&buffer);
    return rows;
}

/* Whether the keys of some query are spread over several calls; otherwise the lse of a call's own
 * keys is the correct one. */
static bool
spreads_keys(const Search *search, const LhProgram *program)
{
    const LhAttention *a = &program->params.attention;
    uint64_t rows = 0;

    for (uint32_t rank = 0; rank < program->params.ranks; rank++)
        rows += gradient_rows(search, program, rank);
    return rows > a->seq_length * a->heads;
}

static bool
find_target(LhFault *fault, const LhProgram *program, GError **error)
{
    const bool backward = fault->kind == LH_INJECT_LOCAL_LSE || program->params.pass == LH_PASS_BWD;
    g_autofree uint8_t *received = g_new0(uint8_t, program->slots_count);
    Search search = { .fault = fault,
                      .phase = backward ? LH_PHASE_BACKWARD : LH_PHASE_FORWARD,
                      .received = received };

    for (uint32_t rank = lh_program_ranks(program); rank-- > 0 && search.best == 0;)
        search_rank(&search, program, rank);
    if (search.best > 0 && (fault->kind != LH_INJECT_LOCAL_LSE || spreads_keys(&search, program)))
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "--inject %s: this program has no op that the fault applies to",
                lh_inject_names[fault->kind]);
    return false;
}

/* ---- hooks ---- */

/* A call on its way to the device, through the remaining faults. */
typedef struct {
    const LhInjection *injection;
    uint32_t next; /* index of the next fault */
    uint32_t rank;
    const LhOp *op;
    const LhPlaceOfWork *at;
    const LhCall *call;
} Intercepted;

static enum lh_status call_faults(Intercepted i);

static enum lh_status
pass_on(const Intercepted *i, const LhCall *call)
{
    if (i->next < i->injection->count)
        return call_faults((Intercepted){ .injection = i->injection,
                                          .next = i->next,
                                          .rank = i->rank,
                                          .op = i->op,
                                          .at = i->at,
                                          .call = call });
    return i->at->device->call(i->at->state, i->op->compute.kernel, call, i->at->stream);
}

/* Allocates device memory for a mutant; NULL on failure. */
static unsigned char *
mutant_memory(const Intercepted *i, uint64_t bytes)
{
    return i->at->device->alloc(i->at->state, MAX(bytes, 1), NULL);
}

/* Frees it when the stream has finished. */
static enum lh_status
release_mutant(const Intercepted *i, unsigned char *memory, enum lh_status status)
{
    const bool done =
        lh_device_finish(i->at->device, i->at->state, i->at->stream, NULL, NULL, NULL);

    if (memory != NULL)
        i->at->device->release(i->at->state, memory);
    return done && memory != NULL ? status : LH_STATUS_DEVICE;
}

/* Calls with the block's own lse, as if these keys were all. */
static enum lh_status
call_with_local_lse(const Intercepted *i)
{
    const LhCall *call = i->call;
    const LhKernelArgs *a = call->args;
    const LhKernel *kernel = kernel_of(i->op);
    const LhView *q = &call->operands[0];
    const uint64_t rows = a->batch * a->nq / q->parts * a->heads;
    const uint64_t o_bytes = rows * a->head_dim * lh_storage_bytes(q->storage);
    const uint64_t part_bytes = o_bytes + rows * sizeof(float);
    const uint64_t scratch_at =
        (q->parts * part_bytes + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN * LH_SCRATCH_ALIGN;
    LhCall forward = {
        .args = a,
        .operands = { *q,
                      call->operands[operand_of(kernel, LH_TENSOR_KV)],
                      { .parts = q->parts, .part_bytes = part_bytes, .storage = q->storage } }
    };
    const uint64_t scratch_bytes =
        i->at->device->scratch_bytes(i->at->state, LH_KERNEL_ID_attention_block, &forward);
    unsigned char *memory = mutant_memory(i, scratch_at + scratch_bytes);
    LhCall mutant = *call;
    enum lh_status status;

    if (memory == NULL)
        return LH_STATUS_DEVICE;
    forward.scratch = memory + scratch_at;
    forward.operands[2].data = memory;
    mutant.operands[operand_of(kernel, LH_TENSOR_LSE)] = (LhView){ .data = memory + o_bytes,
                                                                   .parts = q->parts,
                                                                   .part_bytes = part_bytes,
                                                                   .storage = LH_STORAGE_FP32 };
    status =
        i->at->device->call(i->at->state, LH_KERNEL_ID_attention_block, &forward, i->at->stream);
    if (status == LH_STATUS_OK)
        status = pass_on(i, &mutant);
    return release_mutant(i, memory, status);
}

/* Rotates a tensor of @bytes by @by bytes. */
static bool
turn(const Intercepted *i, unsigned char *to, const unsigned char *from, uint64_t bytes,
     uint64_t by)
{
    return i->at->device->copy(i->at->state, to, from + by, bytes - by, i->at->stream, NULL) &&
           i->at->device->copy(i->at->state, to + bytes - by, from, by, i->at->stream, NULL);
}

/* Gives every head the keys and values of the next; the last head those of the next token's
 * first. */
static enum lh_status
call_with_wrong_head(const Intercepted *i)
{
    const LhKernelArgs *a = i->call->args;
    const unsigned kv = (unsigned)operand_of(kernel_of(i->op), LH_TENSOR_KV);
    const LhView *view = &i->call->operands[kv];
    const uint64_t head = a->head_dim * (uint64_t)lh_storage_bytes(view->storage);
    const uint64_t tensor = a->batch * a->nk / view->parts * a->groups * head;
    unsigned char *memory = mutant_memory(i, view->parts * view->part_bytes);
    LhCall mutant = *i->call;
    bool ok = memory != NULL;

    for (uint32_t part = 0; ok && part < view->parts; part++) {
        unsigned char *to = memory + part * view->part_bytes;
        const unsigned char *from = view->data + part * view->part_bytes;

        ok = turn(i, to, from, tensor, head) && turn(i, to + tensor, from + tensor, tensor, head);
    }
    mutant.operands[kv].data = memory;
    return release_mutant(i, memory, ok ? pass_on(i, &mutant) : LH_STATUS_DEVICE);
}

static enum lh_status
call_twice(const Intercepted *i)
{
    LhKernelArgs args = *i->call->args;
    LhCall again = *i->call;
    const enum lh_status status = pass_on(i, i->call);

    args.first = false;
    again.args = &args;
    return status == LH_STATUS_OK ? pass_on(i, &again) : status;
}

/* Shifts the queries one row forward, or, under a causal mask by rows, one back if they see their
 * own key. */
static enum lh_status
call_with_shifted_mask(const Intercepted *i)
{
    LhKernelArgs args = *i->call->args;
    LhCall mutant = *i->call;

    if (args.mask == LH_MASK_POSITIONS)
        args.q_at.start += (int64_t)args.stride;
    else
        args.shift = args.shift == 0 ? -1 : 0;
    mutant.args = &args;
    return pass_on(i, &mutant);
}

/* Applies the next fault to the call; later faults see its result. */
static enum lh_status
call_faults(Intercepted i)
{
    const LhFault *fault = &i.injection->faults[i.next++];

    if (i.rank != fault->rank || i.op->id != fault->op)
        return pass_on(&i, i.call);
    switch (fault->kind) {
    case LH_INJECT_DROP_PAIR:
        return LH_STATUS_OK;
    case LH_INJECT_DUPLICATE_PAIR:
        return call_twice(&i);
    case LH_INJECT_MASK_SHIFT:
        return call_with_shifted_mask(&i);
    case LH_INJECT_LOCAL_LSE:
        return call_with_local_lse(&i);
    case LH_INJECT_WRONG_KV_HEAD:
        return call_with_wrong_head(&i);
    default:
        return pass_on(&i, i.call);
    }
}

static enum lh_status
call_mutant(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    return call_faults(
        (Intercepted){ .injection = data, .rank = rank, .op = op, .at = at, .call = call });
}

static bool
post_unless_stalled(void *data, uint32_t rank, const LhOp *op, const LhMessage *message)
{
    const LhInjection *injection = data;

    (void)op;
    for (uint32_t i = 0; i < injection->count; i++) {
        const LhFault *fault = &injection->faults[i];

        if (fault->kind == LH_INJECT_STALL && message->send && rank == fault->rank)
            return false;
    }
    return true;
}

static bool
is_stale(const LhFault *fault, uint32_t rank, const LhOp *op, const LhMessage *message)
{
    if (fault->kind != LH_INJECT_STALE_BUFFER || rank != fault->rank || op->id != fault->op ||
        message->peer != fault->peer)
        return false;
    return op->kind != LH_OP_EXCHANGE || message->tag == fault->tag;
}

static bool
land_unless_stale(void *data, uint32_t rank, const LhOp *op, const LhMessage *message)
{
    const LhInjection *injection = data;

    for (uint32_t i = 0; i < injection->count; i++) {
        if (is_stale(&injection->faults[i], rank, op, message))
            return false;
    }
    return true;
}

static void
pause_by_seed(void *data, uint32_t rank, uint32_t op, uint32_t where)
{
    const LhInjection *injection = data;

    for (uint32_t i = 0; i < injection->count; i++) {
        const LhFault *fault = &injection->faults[i];
        const uint64_t bits = lh_rng_bits(fault->seed, rank, 2 * (uint64_t)op + where);

        /* Half of the ops start without delay. */
        if (fault->kind == LH_INJECT_DELAY && bits % 2 == 0)
            g_usleep((gulong)(bits / 2 % DELAY_US_MAX));
    }
}

/* Sets the hook that a fault of @kind needs. */
static void
set_hooks(LhRunHooks *hooks, LhInjectKind kind)
{
    if (kind == LH_INJECT_STALL)
        hooks->post = post_unless_stalled;
    else if (kind == LH_INJECT_DELAY)
        hooks->pause = pause_by_seed;
    else if (kind == LH_INJECT_STALE_BUFFER)
        hooks->land = land_unless_stale;
    else
        hooks->call = call_mutant;
}

/* ---- reading ---- */

static bool
read_fault_number(const char *name, const char *digits, uint64_t max, uint64_t *number,
                  GError **error)
{
    if (digits != NULL && g_ascii_string_to_unsigned(digits, 10, 0, max, number, NULL))
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--inject: %s needs a number after a colon, 0 to %" G_GUINT64_FORMAT ", as in %s:1",
                name, max, name);
    return false;
}

static bool
read_kind(LhFault *fault, const char *text, const char **number, GError **error)
{
    const char *colon = strchr(text, ':');
    g_autofree char *name = colon != NULL ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
    g_autofree char *list = NULL;

    *number = colon != NULL ? colon + 1 : NULL;
    for (int i = 0; i < LH_INJECT_KINDS; i++) {
        if (strcmp(lh_inject_names[i], name) != 0)
            continue;
        fault->kind = (LhInjectKind)i;
        if (i >= LH_INJECT_MUTANTS || colon == NULL)
            return true;
    }
    list = g_strjoinv(", ", (char **)(void *)lh_inject_names);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--inject: unknown fault \"%s\"; known: %s (as stall:RANK and delay:SEED)", text,
                list);
    return false;
}

static bool
read_fault(LhFault *fault, const LhProgram *program, const char *text, GError **error)
{
    const char *digits;
    uint64_t number = 0;

    if (!read_kind(fault, text, &digits, error))
        return false;
    if (fault->kind == LH_INJECT_DELAY)
        return read_fault_number("delay", digits, UINT64_MAX, &fault->seed, error);
    if (fault->kind != LH_INJECT_STALL)
        return find_target(fault, program, error);
    if (!read_fault_number("stall", digits, lh_program_ranks(program) - 1, &number, error))
        return false;
    fault->rank = (uint32_t)number;
    return true;
}

static bool
check_once(char *const *texts, uint32_t index, GError **error)
{
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(texts[i], texts[index]) != 0)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--inject: the fault %s is given twice",
                    texts[i]);
        return false;
    }
    return true;
}

LhInjection *
lh_injection_new(const LhProgram *program, const char *text, GError **error)
{
    g_auto(GStrv) texts = g_strsplit(text, ",", -1);
    const uint32_t count = g_strv_length(texts);
    g_autofree LhInjection *injection = g_malloc0(sizeof(LhInjection) + count * sizeof(LhFault));

    injection->hooks.data = injection;
    for (; injection->count < count; injection->count++) {
        LhFault *fault = &injection->faults[injection->count];

        if (!read_fault(fault, program, texts[injection->count], error) ||
            !check_once(texts, injection->count, error))
            return NULL;
        set_hooks(&injection->hooks, fault->kind);
    }
    return g_steal_pointer(&injection);
}
