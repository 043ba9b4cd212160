/*
 * The table of schedules, and what making a program has in common for all of them: the rules that
 * every attention shape must keep, worded so that the nearest legal value is named.
 */
#include "sched/schedule.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

#define LH_SCHEDULE(id) extern const LhSchedule lh_schedule_##id;
#include "schedules.def"
#undef LH_SCHEDULE

#define RANKS_MAX (UINT32_C(1) << 20)
#define TOKENS_MAX (UINT64_C(1) << 31)

const LhSchedule *const lh_schedules[] = {
#define LH_SCHEDULE(id) &lh_schedule_##id,
#include "schedules.def"
#undef LH_SCHEDULE
    NULL,
};

const LhSchedule *
lh_schedule_find(const char *name, GError **error)
{
    const char *names[G_N_ELEMENTS(lh_schedules)] = { NULL };
    g_autofree char *list = NULL;
    const char *nearest;

    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        if (strcmp(lh_schedules[i]->name, name) == 0)
            return lh_schedules[i];
        names[i] = lh_schedules[i]->name;
    }
    list = g_strjoinv(", ", (char **)names);
    nearest = lh_nearest_word(name, names);
    if (nearest != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "no schedule is called \"%s\"; did you mean \"%s\"? (%s)", name, nearest, list);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "no schedule is called \"%s\"; there are: %s",
                    name, list);
    return NULL;
}

bool
lh_schedule_refuse(GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, LH_ERROR, LH_ERROR_NO, text);
    return false;
}

static bool
check_groups(const LhAttention *a, GError **error)
{
    uint32_t below = a->groups, above = a->groups;

    if (a->heads % a->groups == 0)
        return true;
    while (below > 1 && a->heads % below != 0)
        below--;
    while (above < a->heads && (a->heads % above != 0))
        above++;
    return lh_schedule_refuse(error,
                              "%" PRIu32 " heads are not divisible by %" PRIu32
                              " query groups; nearest legal numbers of groups: %" PRIu32
                              ", %" PRIu32,
                              a->heads, a->groups, below, MIN(above, a->heads));
}

static bool
check_length(const LhAttention *a, uint64_t cut, GError **error)
{
    const uint64_t below = a->seq_length / cut * cut;

    if (a->seq_length % cut == 0)
        return true;
    if (below == 0)
        return lh_schedule_refuse(
            error,
            "sequence length %" PRIu64 " is not a multiple of %" PRIu64
            " (ranks times segments of a rank); nearest legal length: %" PRIu64,
            a->seq_length, cut, cut);
    return lh_schedule_refuse(error,
                              "sequence length %" PRIu64 " is not a multiple of %" PRIu64
                              " (ranks times segments of a rank); nearest legal lengths: %" PRIu64
                              ", %" PRIu64,
                              a->seq_length, cut, below, below + cut);
}

/* Nothing that is counted per rank may leave 63 bits: the flops of one rank's rows are the largest
 * number. */
static bool
check_sizes(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    const uint64_t rows = a->seq_length / p->ranks;
    uint64_t flops, elements, bytes;

    if (__builtin_mul_overflow((uint64_t)a->batch * a->heads, a->head_dim, &elements) ||
        __builtin_mul_overflow(elements, 14 * rows, &flops) ||
        __builtin_mul_overflow(flops, a->seq_length + 1, &flops) ||
        __builtin_mul_overflow(elements, 64 * rows, &bytes) ||
        __builtin_mul_overflow(bytes, lh_params_ranks(p), &bytes) || flops > INT64_MAX ||
        bytes > INT64_MAX)
        return lh_schedule_refuse(
            error,
            "the flops or bytes of one rank would not fit 63 bits; make the attention smaller");
    return true;
}

static bool
check_mask(const LhProgramParams *p, GError **error)
{
    const LhMaskRule *rule = &p->mask;
    const uint64_t length = p->attention.seq_length;

    if (rule->window != 0 && !rule->causal)
        return lh_schedule_refuse(error, "a sliding window needs a causal mask");
    if (p->attention.linear && !(rule->causal && lh_mask_is_plain(rule)))
        return lh_schedule_refuse(error, "linear attention has the causal mask only");
    if (p->attention.linear && !(p->attention.decay >= 0 && p->attention.decay <= 1))
        return lh_schedule_refuse(error, "a decay of %g; 0 (none) to 1 are possible",
                                  p->attention.decay);
    for (uint32_t i = 0; i < rule->documents_count; i++) {
        if (rule->document_ends[i] <= (i == 0 ? 0 : rule->document_ends[i - 1]))
            return lh_schedule_refuse(error, "document %u is empty", i);
    }
    if (rule->documents_count > 0 && rule->document_ends[rule->documents_count - 1] != length)
        return lh_schedule_refuse(
            error, "the documents have %" PRIu64 " tokens, the sequence has %" PRIu64,
            rule->document_ends[rule->documents_count - 1], length);
    return true;
}

bool
lh_program_check(LhPlacementKind placement, const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    const LhPlacement one = { .kind = placement, .ranks = 1 };

    if (p->ranks == 0 || p->ranks > RANKS_MAX)
        return lh_schedule_refuse(error, "%" PRIu32 " ranks; 1 to %" PRIu32 " are possible",
                                  p->ranks, RANKS_MAX);
    if (lh_params_ranks(p) > RANKS_MAX)
        return lh_schedule_refuse(
            error, "%" PRIu32 " groups of %" PRIu32 " ranks; %" PRIu32 " ranks are possible in all",
            p->data_parallel_size, p->ranks, RANKS_MAX);
    if (a->batch == 0 || a->heads == 0 || a->groups == 0 || a->head_dim == 0)
        return lh_schedule_refuse(
            error, "batch, heads, query groups and head dimension must be at least 1");
    if (a->seq_length == 0 || a->seq_length > TOKENS_MAX)
        return lh_schedule_refuse(error, "%" PRIu64 " tokens; 1 to %" PRIu64 " are possible",
                                  a->seq_length, TOKENS_MAX);
    if (a->groups > a->heads)
        return lh_schedule_refuse(
            error, "%" PRIu32 " query groups for %" PRIu32 " heads; at most one per head",
            a->groups, a->heads);
    if (p->gradient_wire == LH_WIRE_16BIT && a->dtype == LH_DTYPE_FP32)
        return lh_schedule_refuse(error, "16-bit gradients on the wire need 16-bit activations");
    if (p->pass < LH_PASS_FWD || p->pass > LH_PASS_BOTH)
        return lh_schedule_refuse(error, "no such pass");
    return check_mask(p, error) && check_groups(a, error) &&
           check_length(a, (uint64_t)p->ranks * lh_placement_parts(&one), error) &&
           check_sizes(p, error);
}

bool
lh_schedule_takes(const LhSchedule *schedule, bool linear)
{
    const unsigned kinds = schedule->attention == 0 ? LH_ATTENTION_SOFTMAX : schedule->attention;

    return (kinds & (linear ? LH_ATTENTION_LINEAR : LH_ATTENTION_SOFTMAX)) != 0;
}

const char *
lh_schedule_attention(const LhSchedule *schedule)
{
    if (!lh_schedule_takes(schedule, true))
        return "softmax";
    return lh_schedule_takes(schedule, false) ? "softmax, linear" : "linear";
}

/* The names of those that compute linear attention; caller frees. */
static char *
linear_names(void)
{
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        if (lh_schedule_takes(lh_schedules[i], true))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                   lh_schedules[i]->name);
    }
    return g_string_free(names, FALSE);
}

static bool
refuse_kind(bool linear, GError **error)
{
    g_autofree char *names = NULL;

    if (!linear)
        return lh_schedule_refuse(error, "it is for linear attention, and this is softmax "
                                         "attention: there is no state to pass on");
    names = linear_names();
    return lh_schedule_refuse(error,
                              "it is for softmax attention, and this is linear attention, which "
                              "these take: %s",
                              names);
}

/* What the schedule says it is for. */
static bool
check_kind(const LhSchedule *schedule, const LhProgramParams *p, GError **error)
{
    const LhMaskRule *rule = &p->mask;

    if (!lh_schedule_takes(schedule, p->attention.linear))
        return refuse_kind(p->attention.linear, error);
    if (rule->window != 0 && (schedule->masks & LH_MASKS_WINDOW) == 0)
        return lh_schedule_refuse(error, "it has no sliding window: %s", schedule->masks_reason);
    if (rule->documents_count > 1 && (schedule->masks & LH_MASKS_DOCUMENTS) == 0)
        return lh_schedule_refuse(error, "it has no packed documents: %s", schedule->masks_reason);
    return true;
}

LhProgramParams
lh_schedule_params(const LhSchedule *schedule, const LhProgramParams *params)
{
    LhProgramParams p = *params;

    if (schedule->adapt != NULL)
        schedule->adapt(&p);
    return p;
}

static bool
is_single(const LhSchedule *schedule, const LhProgramParams *p)
{
    return p->ranks == 1 && !schedule->alone;
}

const LhClosedForms *
lh_closed_forms(const LhSchedule *schedule, const LhProgramParams *params)
{
    static const LhClosedForms none = { 0 };

    if (schedule == NULL)
        return &none;
    return is_single(schedule, params) ? &lh_single.closed : &schedule->closed;
}

LhProgram *
lh_program_new(const LhSchedule *schedule, const LhProgramParams *params, GError **error)
{
    const LhProgramParams p = lh_schedule_params(schedule, params);
    LhProgram *program;

    if (!lh_program_check(schedule->placement, &p, error) || !check_kind(schedule, &p, error) ||
        (schedule->check != NULL && !schedule->check(&p, error))) {
        g_prefix_error(error, "%s: ", schedule->name);
        return NULL;
    }
    program = g_new0(LhProgram, 1);
    program->schedule = schedule;
    program->single = is_single(schedule, &p);
    program->params = p;
    if (p.mask.documents_count > 0) {
        program->document_ends =
            g_memdup2(p.mask.document_ends, p.mask.documents_count * sizeof(uint64_t));
        program->params.mask.document_ends = program->document_ends;
    }
    program->head_slices = program->kv_slices = 1;
    program->placement = (LhPlacement){
        .kind = schedule->placement,
        .ranks = p.ranks,
        .seq_length = p.attention.seq_length,
    };
    if (program->single)
        lh_single.declare(program);
    else
        schedule->declare(program);
    return program;
}

uint16_t /* NOLINTNEXTLINE(readability-function-size): a slot has so many properties */
lh_program_add_slot(LhProgram *program, const char *name, LhTensorKind kind, LhSlotRole role,
                    uint32_t parts, uint64_t part_bytes, uint32_t element_bytes)
{
    LhSlot *slot;

    g_assert(program->slots_count < UINT16_MAX);
    g_assert(strlen(name) < sizeof(slot->name));
    program->slots = g_renew(LhSlot, program->slots, program->slots_count + 1);
    slot = &program->slots[program->slots_count];
    *slot = (LhSlot){
        .kind = kind,
        .role = role,
        .parts = parts,
        .part_bytes = part_bytes,
        .element_bytes = element_bytes,
    };
    g_strlcpy(slot->name, name, sizeof(slot->name));
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
