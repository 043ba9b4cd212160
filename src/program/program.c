/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating programs, and the rules that every program keeps. Error messages name the nearest legal
 * value.
 */
#include "program/program.h"

#include "base/error.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define TOKENS_MAX (UINT64_C(1) << 31)
#define COUNT_LIMIT 0x1p63 /* of counts per rank */
#define LINEAR_TILE 128    /* tokens; see kernels/sizes.h */

const char *const lh_role_names[] = {
    [LH_SLOT_TEMP] = "temp",
    [LH_SLOT_INPUT] = "input",
    [LH_SLOT_OUTPUT] = "output",
    [LH_SLOT_STATE] = "state",
    NULL,
};

const char *const lh_category_names[] = {
    [LH_CATEGORY_ATTENTION] = "attention",
    [LH_CATEGORY_WEIGHTS] = "weights",
    [LH_CATEGORY_GRADIENTS] = "gradients",
    [LH_CATEGORY_OPTIMIZER] = "optimizer",
    [LH_CATEGORY_SAVED] = "saved",
    [LH_CATEGORY_WORKING] = "working",
    [LH_CATEGORY_COMMUNICATION] = "communication",
    [LH_CATEGORY_LOGITS] = "logits",
    [LH_CATEGORY_OTHER] = "other",
    [LH_CATEGORY_CACHE] = "kv-cache",
    NULL,
};

const char *const lh_stream_kind_names[] = {
    [LH_STREAM_COMPUTE] = "compute",
    [LH_STREAM_COMM] = "comm",
    NULL,
};

const char *const lh_pass_names[] = {
    [LH_PASS_FWD - 1] = "fwd",
    [LH_PASS_BWD - 1] = "bwd",
    [LH_PASS_BOTH - 1] = "both",
    NULL,
};

/* --- creation
 * ----------------------------------------------------------------------------------- */

/* The options set in @params as texts; NULL: none. */
static char **
record_of(const LhProgramParams *params)
{
    char **record;

    if (params->options_count == 0)
        return NULL;
    record = g_new0(char *, params->options_count + 1);
    for (uint32_t i = 0; i < params->options_count; i++)
        record[i] = lh_option_text(params->options[i].option, params->options[i].value);
    return record;
}

LhProgram *
lh_program_create(const char *name, const LhGenerator *generator, const LhProgramParams *params,
                  LhPlacementKind placement)
{
    LhProgram *program = g_new0(LhProgram, 1);

    program->name = g_strdup(name);
    program->generator = generator;
    program->params = *params;
    program->record = record_of(params);
    if (params->mask.documents_count > 0) {
        program->document_ends =
            g_memdup2(params->mask.document_ends, params->mask.documents_count * sizeof(uint64_t));
        program->params.mask.document_ends = program->document_ends;
    }
    program->head_slices = program->kv_slices = 1;
    program->placement = (LhPlacement){
        .kind = placement,
        .ranks = params->ranks,
        .seq_length = params->attention.seq_length,
    };
    return program;
}

void
lh_program_free(LhProgram *program)
{
    if (program == NULL)
        return;
    if (program->plan_free != NULL)
        program->plan_free(program->plan);
    for (unsigned i = 0; i < LH_CLAIMS; i++)
        g_free(program->claimed[i]);
    g_free(program->name);
    g_strfreev(program->record);
    g_free(program->document_ends);
    g_free(program->slots);
    g_free(program);
}

uint16_t
lh_program_add_slot(LhProgram *program, LhSlotParams params)
{
    const uint32_t cells = lh_program_cells(program);
    LhSlot *slot;

    g_assert(program->slots_count < UINT16_MAX);
    g_assert(params.parts <= UINT32_MAX - cells);
    g_assert(strlen(params.name) < sizeof(slot->name));
    if ((program->slots_count & (program->slots_count - 1)) ==
        0) /* full: a power of two, or none */
        program->slots = g_renew(LhSlot, program->slots, MAX(2 * program->slots_count, 1));
    slot = &program->slots[program->slots_count];
    *slot = (LhSlot){
        .kind = params.kind,
        .role = params.role,
        .dtype = params.dtype,
        .head_dim = params.head_dim != 0 ? params.head_dim : program->params.attention.head_dim,
        .by_heads = params.by_heads,
        .on_host = params.on_host,
        .category = params.category,
        .parts = params.parts,
        .first_cell = cells,
        .part_bytes = params.part_bytes,
        .first_rank = params.first_rank,
        .ranks_count = params.ranks_count,
    };
    g_strlcpy(slot->name, params.name, sizeof(slot->name));
    return (uint16_t)program->slots_count++;
}

uint8_t
lh_program_add_stream(LhProgram *program, const char *name, LhStreamKind kind)
{
    LhStream *stream;

    g_assert(program->streams_count < LH_STREAMS_MAX);
    stream = &program->streams[program->streams_count];
    stream->kind = kind;
    g_strlcpy(stream->name, name, sizeof(stream->name));
    return (uint8_t)program->streams_count++;
}

/* --- queries
 * ------------------------------------------------------------------------------------ */

uint32_t
lh_program_ranks(const LhProgram *program)
{
    return lh_params_ranks(&program->params);
}

uint32_t
lh_program_group_rank(const LhProgram *program, uint32_t rank)
{
    return program->params.data_parallel_size > 1 ? rank % program->params.ranks : rank;
}

LhGroup
lh_program_group(const LhProgram *program, uint32_t rank)
{
    return (LhGroup){
        .base = rank - lh_program_group_rank(program, rank),
        .stride = 1,
        .count = program->params.ranks,
        .outer_count = 1,
    };
}

uint32_t
lh_program_cells(const LhProgram *program)
{
    const LhSlot *last;

    if (program->slots_count == 0)
        return 0;
    last = &program->slots[program->slots_count - 1];
    return last->first_cell + last->parts;
}

bool
lh_program_claim(const LhProgram *program, LhClaim claim, uint32_t rank, uint64_t *value)
{
    const LhClosedForms none = { 0 };
    const LhClosedForms *closed = program->closed != NULL ? program->closed : &none;
    uint64_t (*const forms[LH_CLAIMS])(const LhProgramParams *p, uint32_t rank) = {
        [LH_CLAIM_BYTES_SENT] = closed->bytes_sent,
        [LH_CLAIM_FLOPS] = closed->flops,
        [LH_CLAIM_PEAK_BYTES] = closed->peak_bytes,
    };

    if (forms[claim] != NULL)
        *value = forms[claim](&program->params, lh_program_group_rank(program, rank));
    else if (program->claimed[claim] != NULL)
        *value = program->claimed[claim][rank];
    else
        return false;
    return true;
}

/* --- rules --------------------------------------------------------------------------------------
 */

bool
lh_program_refuse(GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = lh_error_text(format, args);
    va_end(args);
    g_set_error_literal(error, LH_ERROR, LH_ERROR_NO, text);
    return false;
}

static bool
check_groups(const LhAttention *a, GError **error)
{
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (a->heads % a->groups == 0)
        return true;
    lh_divisors_near(a->heads, a->groups, a->heads, &below, &above);
    near = lh_near_text(below, above);
    return lh_program_refuse(error,
                             "%" PRIu32 " heads are not divisible by %" PRIu32
                             " query groups; nearest legal numbers of groups: %s",
                             a->heads, a->groups, near);
}

static bool
check_length(const LhAttention *a, uint64_t cut, GError **error)
{
    const uint64_t below = a->seq_length / cut * cut;

    if (a->seq_length % cut == 0)
        return true;
    if (below == 0)
        return lh_program_refuse(
            error,
            "sequence length %" PRIu64 " is not a multiple of %" PRIu64
            " (ranks times segments of a rank); nearest legal length: %" PRIu64,
            a->seq_length, cut, cut);
    return lh_program_refuse(error,
                             "sequence length %" PRIu64 " is not a multiple of %" PRIu64
                             " (ranks times segments of a rank); nearest legal lengths: %" PRIu64
                             ", %" PRIu64,
                             a->seq_length, cut, below, below + cut);
}

/*
 * Counts of one op or one rank are 64-bit, in every reader and in the closed forms. So an upper
 * bound of what any schedule can count must stay below 2^63. The bounds here are computed in
 * floating point; they are not tight, and their slack far exceeds the rounding errors.
 *
 * Flops: 4 d forward and 10 d backward for every pair of the rank's rows with all keys. A rank may
 * have almost twice the mean (uneven heads) or recompute the forward pass; that stays below 2^64.
 * Linear attention has pairs within tiles, and products with states of d^2. A product of the
 * activations with a weight is one op.
 *
 * Bytes: all tokens of every tensor, several times over; states of all ranks; weights; and scores
 * of the rank's rows with all keys.
 */
static bool
check_sizes(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    const double tokens = (double)a->seq_length, rows = tokens / p->ranks;
    const double heads = (double)a->batch * a->heads, d = a->head_dim;
    const double width = fmax((double)a->heads * d, a->hidden_size);
    const double flops = a->linear ? 64 * heads * d * (d + LINEAR_TILE) * (rows + p->ranks)
                                   : 14 * heads * d * rows * (tokens + 1);
    const double product = 8.0 * a->batch * rows * width * width;
    const double tensors = 256.0 * a->batch * tokens * (width + 8.0 * a->heads);
    const double states = 256 * heads * d * d * p->ranks, weights = 16 * width * width;
    const double scores = a->linear ? 0 : 16 * heads * rows * tokens;
    const double bytes = tensors + states + weights + scores;

    if (width > UINT32_MAX)
        return lh_program_refuse(error,
                                 "%" PRIu32 " heads of %" PRIu32
                                 "; a token may have 4294967295 (2^32 - 1) elements at most",
                                 a->heads, a->head_dim);
    if (fmax(flops, product) >= COUNT_LIMIT)
        return lh_program_refuse(error,
                                 "a rank may compute %.3g flops, and up to 9.22e+18 (2^63) can be "
                                 "counted exactly; make the attention smaller or take more ranks",
                                 fmax(flops, product));
    if (bytes >= COUNT_LIMIT)
        return lh_program_refuse(error,
                                 "a rank may hold or send %.3g bytes, and up to 9.22e+18 (2^63) "
                                 "can be counted exactly; make the attention smaller",
                                 bytes);
    return true;
}

static bool
check_mask(const LhProgramParams *p, GError **error)
{
    const LhMaskRule *rule = &p->mask;
    const uint64_t length = p->attention.seq_length;

    if (rule->window != 0 && !rule->causal)
        return lh_program_refuse(error, "a sliding window needs a causal mask");
    if (p->attention.linear && !(rule->causal && lh_mask_is_plain(rule)))
        return lh_program_refuse(error, "linear attention supports only the causal mask");
    if (p->attention.linear && !(p->attention.decay >= 0 && p->attention.decay <= 1))
        return lh_program_refuse(error, "decay %g; allowed: 0 (none) to 1", p->attention.decay);
    for (uint32_t i = 0; i < rule->documents_count; i++) {
        if (rule->document_ends[i] <= (i == 0 ? 0 : rule->document_ends[i - 1]))
            return lh_program_refuse(error, "document %u is empty", i);
    }
    if (rule->documents_count > 0 && rule->document_ends[rule->documents_count - 1] != length)
        return lh_program_refuse(error,
                                 "the documents have %" PRIu64 " tokens, the sequence has %" PRIu64,
                                 rule->document_ends[rule->documents_count - 1], length);
    return true;
}

bool
lh_program_check(LhPlacementKind placement, const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    const LhPlacement one = { .kind = placement, .ranks = 1 };

    if (p->ranks == 0 || p->ranks > LH_RANKS_MAX)
        return lh_program_refuse(error, "%" PRIu32 " ranks; 1 to %" PRIu32 " are possible",
                                 p->ranks, LH_RANKS_MAX);
    if (lh_params_ranks(p) > LH_RANKS_MAX)
        return lh_program_refuse(error,
                                 "%" PRIu32 " groups of %" PRIu32 " ranks; %" PRIu32
                                 " ranks are allowed in "
                                 "total",
                                 p->data_parallel_size, p->ranks, LH_RANKS_MAX);
    if (a->batch == 0 || a->heads == 0 || a->groups == 0 || a->head_dim == 0)
        return lh_program_refuse(
            error, "batch, heads, query groups and head dimension must be at least 1");
    if (a->seq_length == 0 || a->seq_length > TOKENS_MAX)
        return lh_program_refuse(error, "%" PRIu64 " tokens; 1 to %" PRIu64 " are possible",
                                 a->seq_length, TOKENS_MAX);
    if (a->groups > a->heads)
        return lh_program_refuse(
            error, "%" PRIu32 " query groups for %" PRIu32 " heads; at most one per head",
            a->groups, a->heads);
    if (p->pass < LH_PASS_FWD || p->pass > LH_PASS_BOTH)
        return lh_program_refuse(error, "unknown pass");
    return check_mask(p, error) && check_groups(a, error) &&
           check_length(a, (uint64_t)p->ranks * lh_placement_parts(&one), error) &&
           check_sizes(p, error);
}
