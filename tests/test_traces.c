/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the attention schedules against traces written by hand from the papers and the public
 * code (tests/traces; its README.md describes the format): which rank sends what to whom, which
 * block each attention call works on, dependencies and streams. This detects what no proof can: a
 * ring in the opposite direction is as correct as the published one.
 */
#include "following.h"
#include "options.h"
#include "recording.h"
#include "sched/common/pass.h"

#include "run_tests.h"

#include <string.h>

#define STREAM_UNSEEN UINT8_MAX

/* Letters of communication streams, in order of appearance. */
static const char stream_letters[] = "xyzuvw";

/*
 * A known difference between a program and its source, and why: in the backward pass the event that
 * begins with @event is one place earlier. The rest of the trace is unchanged.
 */
typedef struct {
    const char *schedule, *event, *reason;
} Difference;

static const Difference known_differences[] = {
    { "megatron-tp-sp", "x2 ",
      "the second gather of the input is posted before the gradient of attention and overlaps it; "
      "Megatron posts it behind, in the backward pass of the projection of q, k and v" },
};

/* A listed op, as text, without what it waits for. */
typedef struct {
    char *text;
    uint32_t op;
} Event;

typedef struct {
    const Recording *recording;
    GArray **events;                 /* [ranks] of Event, in the host's order */
    uint8_t letters[LH_STREAMS_MAX]; /* of communication streams: 0 for x, ... */
    uint8_t letters_count;
    uint8_t numbers[LH_STREAMS_MAX]; /* of compute streams, from 1 */
    uint8_t numbers_count;
} Extraction;

/* Notation of a kernel's ops: its word and the operands that follow. */
typedef struct {
    const char *kernel, *word;
    int operands[3]; /* ended by -1 */
    bool mask;
} KernelText;

static const KernelText kernel_texts[] = {
    { "attention", "attend", { 0, 1, -1 }, true },
    { "attention_fwd", "attend", { 0, 1, -1 }, true },
    { "attention_block", "attend", { 0, 1, -1 }, true },
    { "attention_bwd", "grad", { 0, 4, -1 }, true },
    { "attention_bwd_o", "grad", { 0, 4, -1 }, true },
    { "linear_intra", "intra", { 0, 1, -1 }, false },
    { "linear_inter", "inter", { 0, 1, -1 }, false },
    { "linear_intra_bwd", "grad", { 0, 2, -1 }, false },
    { "linear_inter_bwd", "grad-q", { 0, 1, -1 }, false },
    { "linear_state_bwd", "grad-kv", { 0, 1, -1 }, false },
    { "scores", "scores", { 0, 1, -1 }, false },
    { "scores_softmax", "softmax", { -1 }, false },
    { "scores_o", "scores-o", { 1, -1 }, false },
    { "scores_dv", "scores-dv", { 1, -1 }, false },
    { "scores_dp", "scores-dp", { 0, 1, -1 }, false },
    { "scores_softmax_bwd", "softmax-grad", { -1 }, false },
    { "scores_dq", "scores-dq", { 1, -1 }, false },
    { "scores_dk", "scores-dk", { 1, -1 }, false },
    { "copy", "copy", { 1, -1 }, false },
};

/* Copies stage data and are no events unless they have a stream of their own. */
static bool
is_staging(const Extraction *x, const LhOp *op)
{
    return op->compute.kernel == LH_KERNEL_ID_copy && x->numbers[op->stream] <= 1;
}

static const char *
mask_text(const LhKernelArgs *args)
{
    if (args->mask == LH_MASK_POSITIONS)
        return "token";
    if (args->mask == LH_MASK_CAUSAL)
        return args->shift == 0 ? "causal" : "causal-1";
    return lh_mask_names[args->mask];
}

static int
compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Appends the distinct @values, sorted or in order of appearance: "0.3". A part with zeros of no
 * particular segment is "_". */
static void
append_numbers(GString *text, GArray *values, bool sort)
{
    if (sort)
        g_array_sort(values, compare_numbers);
    for (guint i = 0; i < values->len; i++) {
        const uint32_t value = g_array_index(values, uint32_t, i);
        guint k = 0;

        while (g_array_index(values, uint32_t, k) != value)
            k++;
        if (k < i && value != FOLLOWED_NONE)
            continue;
        if (i > 0)
            g_string_append_c(text, '.');
        if (value == FOLLOWED_NONE)
            g_string_append_c(text, '_');
        else
            g_string_append_printf(text, "%u", value);
    }
}

static guint
distinct(const GArray *values)
{
    guint count = 0;

    for (guint i = 0; i < values->len; i++) {
        guint k = 0;

        while (g_array_index(values, uint32_t, k) != g_array_index(values, uint32_t, i))
            k++;
        count += k == i ? 1 : 0;
    }
    return count;
}

/* Contents of regions of one kind: "kv0.7", "q0.1:0" (slice 0 of the heads). */
static void
append_held(GString *text, const Followed *f, LhTensorKind kind, const GArray *held, bool sort)
{
    g_autoptr(GArray) segments = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) slices = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (guint i = 0; i < held->len; i++) {
        const LhHolding *part = &g_array_index(held, LhHolding, i);

        g_array_append_val(segments, part->segment);
        if (part->slice != FOLLOWED_NONE)
            g_array_append_val(slices, part->slice);
    }
    append_numbers(text, segments, sort);
    if (distinct(slices) != lh_program_slices(f->program, kind)) {
        g_string_append_c(text, ':');
        append_numbers(text, slices, true);
    }
}

/* Statistics are always fp32. */
static bool
marked_fp32(const LhSlot *slot)
{
    return slot->dtype == LH_DTYPE_FP32 && slot->kind != LH_TENSOR_LSE &&
           slot->kind != LH_TENSOR_DELTA;
}

/* The kind of a transferred region: k and v together, or one of them. */
static LhTensorKind
moved_kind(const LhProgram *program, LhRegion region)
{
    const LhTensorKind kind = program->slots[region.slot].kind;
    const bool gradient = kind == LH_TENSOR_DKV;

    if (region.half == LH_HALF_K)
        return gradient ? LH_TENSOR_DK : LH_TENSOR_K;
    if (region.half == LH_HALF_V)
        return gradient ? LH_TENSOR_DV : LH_TENSOR_V;
    return kind;
}

/* Sources do not state whether a partial output is normalised. */
static const char *
trace_name(LhTensorKind kind)
{
    return lh_tensor_names[kind == LH_TENSOR_OUT ? LH_TENSOR_ACC : kind];
}

static char *
compute_text(const Extraction *x, const Followed *f, uint32_t rank, const LhOp *op)
{
    const KernelText *row = NULL;
    g_autoptr(GString) text = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(kernel_texts) && row == NULL; i++) {
        if (strcmp(kernel_texts[i].kernel, lh_kernels[op->compute.kernel]->name) == 0)
            row = &kernel_texts[i];
    }
    if (row == NULL || is_staging(x, op))
        return NULL;
    text = g_string_new(row->word);
    for (const int *operand = row->operands; *operand >= 0; operand++) {
        const LhRegion region = op->compute.regions[*operand];
        const LhTensorKind kind = f->program->slots[region.slot].kind;
        g_autoptr(GArray) held = g_array_new(FALSE, FALSE, sizeof(LhHolding));

        g_string_append_printf(text, " %s", trace_name(kind));
        if (op->compute.kernel == LH_KERNEL_ID_copy)
            continue;
        followed_append(f, rank, region, held);
        append_held(text, f, kind, held, op->compute.args.mask == LH_MASK_POSITIONS && row->mask);
    }
    if (row->mask)
        g_string_append_printf(text, " %s", mask_text(&op->compute.args));
    if (x->numbers[op->stream] > 1)
        g_string_append_printf(text, " on %u", x->numbers[op->stream]);
    return g_steal_pointer(&text)->str;
}

/* Tensors of one kind and element type with the same peers, over all messages of an exchange. */
typedef struct {
    const Followed *f;
    const LhOp *op;
    uint32_t rank, peer;
    bool send, fp32;
    LhTensorKind kind;
} Flow;

static bool
append_flow(GString *text, const Flow *flow)
{
    g_autoptr(GArray) held = g_array_new(FALSE, FALSE, sizeof(LhHolding));

    for (uint32_t i = 0; i < flow->op->exchange.parts_count; i++) {
        const LhPart *part = recording_part(flow->f->recording, flow->rank, flow->op, i);

        for (unsigned k = 0; k < part->regions_count; k++) {
            const LhSlot *slot = &flow->f->program->slots[part->regions[k].slot];

            if (part->peer == flow->peer && part->send == flow->send &&
                moved_kind(flow->f->program, part->regions[k]) == flow->kind &&
                marked_fp32(slot) == flow->fp32)
                followed_append(flow->f, flow->rank, part->regions[k], held);
        }
    }
    if (held->len == 0)
        return false;
    g_string_append_printf(text, " %s%s", trace_name(flow->kind), flow->fp32 ? "*" : "");
    append_held(text, flow->f, flow->kind, held, true);
    g_string_append_printf(text, "%c%u", flow->send ? '>' : '<', flow->peer);
    return true;
}

static char *
exchange_text(const Followed *f, uint32_t rank, const LhOp *op)
{
    GString *text = g_string_new("");
    Flow flow = { .f = f, .op = op, .rank = rank };

    for (flow.peer = 0; flow.peer < f->ranks; flow.peer++) {
        for (unsigned way = 0; way < 4; way++) {
            flow.send = way < 2;
            flow.fp32 = way % 2 == 1;
            for (unsigned kind = 0; kind < LH_TENSOR_KINDS; kind++) {
                flow.kind = (LhTensorKind)kind;
                append_flow(text, &flow);
            }
        }
    }
    return g_string_free(text, FALSE);
}

static const char *const collective_words[] = {
    [LH_COLL_ALL_GATHER] = "ag",  [LH_COLL_REDUCE_SCATTER] = "rs", [LH_COLL_ALL_REDUCE] = "ar",
    [LH_COLL_ALL_TO_ALL] = "a2a", [LH_COLL_BROADCAST] = "bc",
};

/* The rank's contribution of one kind and element type. */
static void
append_gathered(GString *text, const Followed *f, uint32_t rank, const LhOp *op, LhTensorKind kind,
                bool fp32)
{
    g_autoptr(GArray) held = g_array_new(FALSE, FALSE, sizeof(LhHolding));

    for (unsigned t = 0; t < op->collective.tensors_count; t++) {
        const LhSlot *slot = &f->program->slots[op->collective.send[t].slot];

        if (moved_kind(f->program, op->collective.send[t]) == kind && marked_fp32(slot) == fp32)
            followed_append(f, rank, op->collective.send[t], held);
    }
    if (held->len == 0)
        return;
    g_string_append_printf(text, " %s%s", trace_name(kind), fp32 ? "*" : "");
    if (kind != LH_TENSOR_HIDDEN)
        append_held(text, f, kind, held, true);
}

static char *
collective_text(const Followed *f, uint32_t rank, const LhOp *op)
{
    GString *text = g_string_new("");

    g_string_append_printf(text, " %s ", collective_words[op->collective.kind]);
    for (uint64_t i = 0; i < lh_group_size(&op->collective.group); i++)
        g_string_append_printf(text, "%s%u", i > 0 ? "." : "",
                               (unsigned)lh_group_member(&op->collective.group, i));
    for (unsigned way = 0; way < 2 * LH_TENSOR_KINDS; way++)
        append_gathered(text, f, rank, op, (LhTensorKind)(way / 2), way % 2 == 1);
    return g_string_free(text, FALSE);
}

/* One copy may consist of several ops of half a tensor each. */
static bool
is_more_of(const GArray *events, const Event *event)
{
    return events->len > 0 && g_str_has_prefix(event->text, "copy ") &&
           strcmp(g_array_index(events, Event, events->len - 1).text, event->text) == 0;
}

/* Lists the op if it is an event. */
static void
extract(const Followed *f, uint32_t rank, const LhOp *op, void *data)
{
    Extraction *x = data;
    Event event = { .op = op->id };

    if (op->kind == LH_OP_SYNC)
        event.text = g_strdup("sync");
    if (op->kind == LH_OP_COMPUTE)
        event.text = compute_text(x, f, rank, op);
    if (op->kind == LH_OP_EXCHANGE)
        event.text = exchange_text(f, rank, op);
    if (op->kind == LH_OP_COLLECTIVE)
        event.text = collective_text(f, rank, op);
    if (event.text != NULL && !is_more_of(x->events[rank], &event))
        g_array_append_val(x->events[rank], event);
    else
        g_free(event.text);
}

/* Streams are named in order of first appearance, rank by rank. */
static void
name_streams(Extraction *x)
{
    memset(x->letters, STREAM_UNSEEN, sizeof x->letters);
    for (uint32_t rank = 0; rank < lh_program_ranks(&x->recording->program); rank++) {
        for (uint32_t i = 0; i < recording_count(x->recording, rank); i++) {
            const LhOp *op = recording_op(x->recording, rank, i);
            const bool comm = op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE;

            if (comm && x->letters[op->stream] == STREAM_UNSEEN)
                x->letters[op->stream] = x->letters_count++;
            if (op->kind == LH_OP_COMPUTE && x->numbers[op->stream] == 0)
                x->numbers[op->stream] = ++x->numbers_count;
        }
    }
}

/* Row i, column k: whether op k is complete before op i begins, whatever the timing. */
static uint8_t *
orders(const Recording *recording, uint32_t rank)
{
    const uint32_t count = recording_count(recording, rank);
    uint8_t *before = g_new0(uint8_t, (size_t)count * count);
    uint32_t last[LH_STREAMS_MAX], sync = LH_OP_NONE;

    for (unsigned s = 0; s < LH_STREAMS_MAX; s++)
        last[s] = LH_OP_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const LhOp *op = recording_op(recording, rank, i);
        uint32_t direct[LH_OP_AFTER_MAX + 2], direct_count = 0;
        uint8_t *row = before + (size_t)i * count;

        if (op->kind == LH_OP_SYNC) {
            memset(row, 1, i);
            sync = i;
            continue;
        }
        if (!lh_op_on_stream(op))
            continue;
        for (unsigned k = 0; k < op->after_count; k++)
            direct[direct_count++] = op->after[k];
        direct[direct_count++] = last[op->stream];
        direct[direct_count++] = sync;
        for (uint32_t k = 0; k < direct_count; k++) {
            for (uint32_t j = 0; direct[k] != LH_OP_NONE && j < count; j++)
                row[j] |= before[(size_t)direct[k] * count + j];
            if (direct[k] != LH_OP_NONE)
                row[direct[k]] = 1;
        }
        last[op->stream] = i;
    }
    return before;
}

typedef struct {
    const Extraction *x;
    uint32_t rank, count;
    uint8_t *before;
    uint32_t *numbers; /* [ops] of communication, within its stream and pass; 0: another op */
    bool *waited;      /* [ops] */
    uint32_t posted[LH_STREAMS_MAX];
    bool backward;
} Listing;

/* Appends " after x3 y1": the last ops that must be complete here and were not before. */
static void
append_waits(GString *text, Listing *listing, uint32_t op)
{
    const Recording *recording = listing->x->recording;
    uint32_t newest[LH_STREAMS_MAX] = { 0 };
    const char *separator = " after ";

    for (uint32_t i = 0; i < op; i++) {
        if (listing->numbers[i] == 0 || listing->waited[i] ||
            listing->before[(size_t)op * listing->count + i] == 0)
            continue;
        listing->waited[i] = true;
        newest[listing->x->letters[recording_op(recording, listing->rank, i)->stream]] =
            listing->numbers[i];
    }
    for (uint8_t s = 0; s < listing->x->letters_count; s++) {
        if (newest[s] == 0)
            continue;
        g_string_append_printf(text, "%s%c%u", separator, stream_letters[s], newest[s]);
        separator = " ";
    }
}

static char *
listed(Listing *listing, const Event *event, const LhOp *op)
{
    GString *text = g_string_new("");

    if (op->kind == LH_OP_COMPUTE) {
        char *on = strstr(event->text, " on ");

        g_string_append_len(text, event->text,
                            on != NULL ? on - event->text : (gssize)strlen(event->text));
        append_waits(text, listing, event->op);
        g_string_append(text, on != NULL ? on : "");
    } else if (op->kind == LH_OP_SYNC) {
        g_string_append(text, event->text);
    } else {
        const uint8_t letter = listing->x->letters[op->stream];

        listing->numbers[event->op] = ++listing->posted[letter];
        g_string_append_printf(text, "%c%u%s", stream_letters[letter], listing->posted[letter],
                               event->text);
    }
    return g_string_free(text, FALSE);
}

/* The events of @rank as text. Caller frees. */
static GPtrArray *
list_rank(const Extraction *x, uint32_t rank)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    Listing listing = { .x = x, .rank = rank, .count = recording_count(x->recording, rank) };

    listing.before = orders(x->recording, rank);
    listing.numbers = g_new0(uint32_t, listing.count);
    listing.waited = g_new0(bool, listing.count);
    for (guint i = 0; i < x->events[rank]->len; i++) {
        const Event *event = &g_array_index(x->events[rank], Event, i);
        const LhOp *op = recording_op(x->recording, rank, event->op);

        if (op->phase == LH_PHASE_BACKWARD && !listing.backward) {
            listing.backward = true;
            memset(listing.numbers, 0, listing.count * sizeof listing.numbers[0]);
            memset(listing.posted, 0, sizeof listing.posted);
            g_ptr_array_add(list, g_strdup("backward"));
        }
        g_ptr_array_add(list, listed(&listing, event, op));
    }
    g_free(listing.before);
    g_free(listing.numbers);
    g_free(listing.waited);
    return list;
}

/* [ranks] lists of char *. Caller frees. */
static GPtrArray **
events_of(const LhProgram *program)
{
    const uint32_t ranks = lh_program_ranks(program);
    Recording *recording = recording_new(program);
    Extraction x = { .recording = recording, .events = g_new0(GArray *, ranks) };
    GPtrArray **lists = g_new0(GPtrArray *, ranks);

    for (uint32_t rank = 0; rank < ranks; rank++)
        x.events[rank] = g_array_new(FALSE, FALSE, sizeof(Event));
    name_streams(&x);
    follow(recording, extract, &x);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        lists[rank] = list_rank(&x, rank);
        for (guint i = 0; i < x.events[rank]->len; i++)
            g_free(g_array_index(x.events[rank], Event, i).text);
        g_array_unref(x.events[rank]);
    }
    g_free(x.events);
    recording_free(recording);
    return lists;
}

/* ---- traces ---- */

typedef struct {
    char *name; /* of the schedule */
    LhProgramParams params;
    GPtrArray **events; /* [params.ranks] of char * */
    GPtrArray *rank;    /* of the rank being read */
} Trace;

/* Parses "3", "2x2", "2,2"; an empty text sets a flag. */
static void
read_option(Trace *trace, const char *text)
{
    const char *equal = strchr(text, '=');
    const size_t length = equal != NULL ? (size_t)(equal - text) : strlen(text);
    g_autofree char *name = g_strndup(text, length);
    g_auto(GStrv) numbers = g_strsplit_set(equal != NULL ? equal + 1 : "1", "x,", -1);
    const guint64 first = g_ascii_strtoull(numbers[0], NULL, 10);
    const guint64 second = numbers[1] != NULL ? g_ascii_strtoull(numbers[1], NULL, 10) : 0;

    set_pair(&trace->params, name, (uint32_t)first, (uint32_t)second);
}

static void
read_line(Trace *trace, char *line)
{
    char *comment = strchr(line, '#');
    guint64 number;

    if (comment != NULL)
        *comment = '\0';
    g_strstrip(line);
    number = strchr(line, ' ') != NULL ? g_ascii_strtoull(strchr(line, ' ') + 1, NULL, 10) : 0;
    if (g_str_has_prefix(line, "options ")) {
        g_auto(GStrv) options = g_strsplit(line, " ", -1);

        for (char **option = options + 1; *option != NULL; option++)
            read_option(trace, *option);
    } else if (g_str_has_prefix(line, "heads ")) {
        trace->params.attention.heads = (uint32_t)number;
    } else if (g_str_has_prefix(line, "groups ")) {
        trace->params.attention.groups = (uint32_t)number;
    } else if (strcmp(line, "forward only") == 0) {
        trace->params.pass = LH_PASS_FWD;
    } else if (g_str_has_prefix(line, "rank ")) {
        ck_assert_uint_lt(number, trace->params.ranks);
        trace->rank = trace->events[number];
    } else if (line[0] != '\0') {
        g_auto(GStrv) events = g_strsplit(line, ";", -1);

        ck_assert_ptr_nonnull(trace->rank);
        for (char **event = events; *event != NULL; event++)
            g_ptr_array_add(trace->rank, g_strdup(g_strstrip(*event)));
    }
}

/* A shape with heads for every rank and tokens for every split. */
static void
read_trace(Trace *trace, const char *path)
{
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    uint32_t ranks;

    *strrchr(base, '.') = '\0';
    ranks = (uint32_t)g_ascii_strtoull(strrchr(base, '-') + 1, NULL, 10);
    *strrchr(base, '-') = '\0';
    if (strchr(base, '.') != NULL)
        *strchr(base, '.') = '\0';
    *trace = (Trace){
        .name = g_steal_pointer(&base),
        .params = { .attention = { .batch = 1,
                                   .seq_length = 8 * (uint64_t)ranks,
                                   .heads = 2 * ranks,
                                   .groups = ranks,
                                   .head_dim = 16,
                                   .dtype = LH_DTYPE_BF16 },
                    .ranks = ranks,
                    .mask.causal = true,
                    .pass = LH_PASS_BOTH },
        .events = g_new0(GPtrArray *, ranks),
    };
    for (uint32_t rank = 0; rank < ranks; rank++)
        trace->events[rank] = g_ptr_array_new_with_free_func(g_free);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        read_line(trace, *line);
}

static void
lists_free(GPtrArray **lists, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++)
        g_ptr_array_unref(lists[rank]);
    g_free(lists);
}

/* Compares without the marks of element types. */
static int
compare_words(const void *a, const void *b)
{
    g_auto(GStrv) x = g_strsplit_set(*(char *const *)a, "*?", -1);
    g_auto(GStrv) y = g_strsplit_set(*(char *const *)b, "*?", -1);
    g_autofree char *left = g_strjoinv("", x), *right = g_strjoinv("", y);

    return strcmp(left, right);
}

/* Whether a word of a trace matches one of the program: "?" matches "*" and nothing, and a part
 * of zeros ("_") may be any segment. */
static bool
word_allows(const char *wanted, const char *found)
{
    for (; *wanted != '\0'; wanted++) {
        if (*wanted == '?') {
            found += *found == '*' ? 1 : 0;
        } else if (*found == '_' && g_ascii_isdigit(*wanted)) {
            while (g_ascii_isdigit(wanted[1]))
                wanted++;
            found++;
        } else if (*wanted != *found++) {
            return false;
        }
    }
    return *found == '\0';
}

static bool
is_posting(const char *event)
{
    return strchr(stream_letters, event[0]) != NULL && g_ascii_isdigit(event[1]);
}

/* The tensors of one call match in any order. */
static bool
event_allows(const char *wanted, const char *found)
{
    g_auto(GStrv) x = g_strsplit(wanted, " ", -1);
    g_auto(GStrv) y = g_strsplit(found, " ", -1);
    const guint count = g_strv_length(x);
    bool same = count == g_strv_length(y);

    if (is_posting(wanted) && same && count > 1) {
        qsort(x + 1, count - 1, sizeof x[0], compare_words);
        qsort(y + 1, count - 1, sizeof y[0], compare_words);
    }
    for (guint i = 0; same && i < count; i++)
        same = word_allows(x[i], y[i]);
    return same;
}

/* Sorts what is posted to several streams with nothing in between, which has no order. */
static void
order_postings(GPtrArray *list)
{
    for (guint i = 1; i < list->len; i++) {
        for (guint k = i; k > 0; k--) {
            const char *before = g_ptr_array_index(list, k - 1);
            const char *event = g_ptr_array_index(list, k);

            if (!is_posting(event) || !is_posting(before) ||
                strchr(stream_letters, before[0]) <= strchr(stream_letters, event[0]))
                break;
            list->pdata[k - 1] = (char *)event;
            list->pdata[k] = (char *)before;
        }
    }
}

static bool
list_allows(const GPtrArray *wanted, const GPtrArray *found)
{
    bool same = wanted->len == found->len;

    for (guint i = 0; same && i < wanted->len; i++)
        same = event_allows(g_ptr_array_index(wanted, i), g_ptr_array_index(found, i));
    return same;
}

/* Prints both lists side by side and marks differences. */
static void
append_difference(GString *text, const GPtrArray *wanted, const GPtrArray *found)
{
    for (guint i = 0; i < MAX(wanted->len, found->len); i++) {
        const char *left = i < wanted->len ? g_ptr_array_index(wanted, i) : "(nothing)";
        const char *right = i < found->len ? g_ptr_array_index(found, i) : "(nothing)";
        const bool same = i < wanted->len && i < found->len && event_allows(left, right);

        g_string_append_printf(text, "  %c trace:   %s\n", same ? ' ' : '!', left);
        if (!same)
            g_string_append_printf(text, "  ! program: %s\n", right);
    }
}

static const Difference *
known_difference(const char *schedule)
{
    for (size_t i = 0; i < G_N_ELEMENTS(known_differences); i++) {
        if (strcmp(known_differences[i].schedule, schedule) == 0)
            return &known_differences[i];
    }
    return NULL;
}

/* Applies a known difference to a trace. */
static void
make_difference(GPtrArray *list, const Difference *known)
{
    guint i = list->len - 1;

    while (i > 0 && !g_str_has_prefix(g_ptr_array_index(list, i), known->event))
        i--;
    ck_assert_uint_gt(i, 0);
    g_ptr_array_insert(list, (gint)i - 1, g_strdup(g_ptr_array_index(list, i)));
    g_ptr_array_remove_index(list, i + 1);
}

/* An option that makes a program other than the source's. */
typedef struct {
    const char *schedule;
    unsigned ranks;
    const char *option;
    uint32_t first, second;
} Change;

/* Returns the differences between program and trace, or an empty text; @change may be NULL.
 * Caller frees. */
static char *
difference(const char *path, const Change *change)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = NULL;
    GString *text = g_string_new("");
    const Difference *known;
    const LhSchedule *schedule;
    GPtrArray **found;
    Trace trace;

    read_trace(&trace, path);
    schedule = lh_schedule_find(trace.name, &error);
    ck_assert_msg(schedule != NULL, "%s", error != NULL ? error->message : "");
    if (change != NULL)
        set_pair(&trace.params, change->option, change->first, change->second);
    trace.params.attention.linear = !lh_schedule_takes(schedule, false);
    program = lh_program_new(schedule, &trace.params, &error);
    ck_assert_msg(program != NULL, "%s: %s", path, error != NULL ? error->message : "");
    known = known_difference(trace.name);
    found = events_of(program);
    for (uint32_t rank = 0; rank < trace.params.ranks; rank++) {
        order_postings(trace.events[rank]);
        order_postings(found[rank]);
        if (known != NULL && list_allows(trace.events[rank], found[rank]))
            g_string_append_printf(text, "no longer different: %s\n", known->reason);
        if (known != NULL)
            make_difference(trace.events[rank], known);
        if (list_allows(trace.events[rank], found[rank]))
            continue;
        g_string_append_printf(text, "%s-%u, rank %u\n", trace.name, trace.params.ranks, rank);
        append_difference(text, trace.events[rank], found[rank]);
    }
    lists_free(found, trace.params.ranks);
    lists_free(trace.events, trace.params.ranks);
    g_free(trace.name);
    return g_string_free(text, FALSE);
}

/* ---- tests ---- */

/* Attention without the sums of a chain of states, which accompany its messages slice by slice. */
static bool
attends(const LhOp *op)
{
    const LhKernel *kernel;

    if (op->kind != LH_OP_COMPUTE)
        return false;
    kernel = lh_kernels[op->compute.kernel];
    return lh_kernel_counts_flops(kernel) && kernel->effect != LH_EFFECT_STATE_SUM &&
           kernel->effect != LH_EFFECT_STATE_CARRY;
}

/* Without overlap each attention call comes after all messages posted before it, and each
 * message after all attention queued before it, whatever the timing. */
static void
check_apart(const Recording *recording, uint32_t rank, const char *name)
{
    const uint32_t count = recording_count(recording, rank);
    g_autofree uint8_t *before = orders(recording, rank);

    for (uint32_t i = 0; i < count; i++) {
        const LhOp *a = recording_op(recording, rank, i);

        for (uint32_t k = 0; lh_op_on_stream(a) && k < i; k++) {
            const LhOp *b = recording_op(recording, rank, k);

            if ((attends(a) && lh_op_on_stream(b) && b->kind != LH_OP_COMPUTE) ||
                (attends(b) && a->kind != LH_OP_COMPUTE))
                ck_assert_msg(before[(size_t)i * count + k],
                              "%s without overlap, %u ranks, rank %u: ops %u and %u may overlap",
                              name, lh_program_ranks(&recording->program), rank, k, i);
        }
    }
}

START_TEST(no_overlap_keeps_compute_and_communication_apart)
{
    for (const LhSchedule *const *s = lh_schedules; *s != NULL; s++) {
        for (uint32_t ranks = 2; ranks <= 9 && lh_schedule_reads(*s, &lh_option_no_overlap);
             ranks++) {
            LhProgramParams p = { .attention = { .batch = 1,
                                                 .seq_length = 8 * (uint64_t)ranks,
                                                 .heads = 2 * ranks,
                                                 .groups = ranks,
                                                 .head_dim = 16,
                                                 .dtype = LH_DTYPE_BF16,
                                                 .linear = !lh_schedule_takes(*s, false) },
                                  .ranks = ranks,
                                  .mask.causal = true,
                                  .pass = LH_PASS_BOTH };
            g_autoptr(LhProgram) program = NULL;
            Recording *recording;

            lh_option_set(&p, &lh_option_no_overlap, (LhOptionValue){ .first = 1 });
            program = lh_program_new(*s, &p, NULL);
            if (program == NULL)
                continue;
            recording = recording_new(program);
            for (uint32_t rank = 0; rank < ranks; rank++)
                check_apart(recording, rank, (*s)->name);
            recording_free(recording);
        }
    }
}
END_TEST

static char *
traces_dir(void)
{
    return g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", "traces", NULL);
}

/* @name is that of a schedule, or with a variant appended. Caller frees. */
static char *
trace_path(const char *name, unsigned ranks)
{
    g_autofree char *dir = traces_dir();
    g_autofree char *file = g_strdup_printf("%s-%u.txt", name, ranks);

    return g_build_filename(dir, file, NULL);
}

static const unsigned ranks_of_traces[] = { 3, 4, 5, 9 };

/* Number of compared traces with even and odd numbers of ranks. */
typedef struct {
    unsigned even, odd;
} Compared;

static Compared
compare_traces(const char *name, GString *differences)
{
    Compared compared = { 0 };

    for (size_t k = 0; k < G_N_ELEMENTS(ranks_of_traces); k++) {
        const unsigned ranks = ranks_of_traces[k];
        g_autofree char *path = trace_path(name, ranks);
        g_autofree char *text = NULL;

        if (!g_file_test(path, G_FILE_TEST_EXISTS))
            continue;
        compared.even += ranks % 2 == 0 ? 1 : 0;
        compared.odd += ranks % 2;
        text = difference(path, NULL);
        g_string_append(differences, text);
    }
    return compared;
}

/* Compares every trace; each schedule has at least one of four ranks and one of an odd number. */
START_TEST(traces_are_kept)
{
    g_autoptr(GString) differences = g_string_new("");

    for (int i = 0; lh_schedules[i] != NULL; i++) {
        const char *name = lh_schedules[i]->name;
        g_autofree char *published = g_strconcat(name, ".published", NULL);
        const Compared compared = compare_traces(name, differences);

        compare_traces(published, differences);
        if (compared.even == 0 || compared.odd == 0)
            g_string_append_printf(differences, "%s: traces are missing\n", name);
    }
    if (differences->len > 0)
        g_printerr("%s", differences->str); /* too long for a message of Check */
    ck_assert_msg(differences->len == 0, "traces and programs differ; see above");
}
END_TEST

static const Change changes[] = {
    { "ring", 4, "no_overlap", 1, 0 },
    { "zigzag", 5, "no_overlap", 1, 0 },
    { "striped", 4, "no_overlap", 1, 0 },
    { "dfa-unbalanced", 4, "no_overlap", 1, 0 },
    { "dfa-balanced", 4, "no_overlap", 1, 0 },
    { "te-p2p", 4, "no_overlap", 1, 0 },
    { "te-a2a-p2p", 4, "no_overlap", 1, 0 },
    { "usp", 4, "no_overlap", 1, 0 },
    { "burst", 4, "no_overlap", 1, 0 },
    { "double-ring", 4, "no_overlap", 1, 0 },
    { "tokenring", 4, "no_overlap", 1, 0 },
    { "attention2d-o", 4, "no_overlap", 1, 0 },
    { "allgather-kv", 4, "no_overlap", 1, 0 },
    { "lasp", 5, "no_overlap", 1, 0 },
    { "lasp2", 5, "no_overlap", 1, 0 },
    { "zeco", 4, "no_overlap", 1, 0 },
    { "ring", 4, "gradient_wire", 2, 0 },
    { "zigzag", 4, "gradient_wire", 2, 0 },
    { "te-p2p", 4, "gradient_wire", 1, 0 },
    { "burst", 4, "gradient_wire", 1, 0 },
    { "dfa-balanced", 4, "gradient_wire", 1, 0 },
    { "attention2d-no", 4, "grid", 4, 1 },
    { "attention2d-no", 4, "grid", 1, 4 },
    { "attention2d-o", 9, "grid", 9, 1 },
    { "attention2d-o", 9, "grid", 1, 9 },
    { "double-ring", 4, "inner_ring", 4, 0 },
    { "ulysses", 4, "published_code", 1, 0 },
    { "ulysses.published", 4, "published_code", 0, 0 },
    { "usp.published", 4, "published_code", 0, 0 },
    { "te-a2a.published", 3, "published_code", 0, 0 },
    { "usp", 4, "hierarchical_context_parallel_sizes", 4, 1 },
    { "te-a2a-p2p", 4, "hierarchical_context_parallel_sizes", 1, 4 },
};

/* Traces must distinguish other programs. */
START_TEST(changed_programs_do_not_keep_traces)
{
    for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        const Change *c = &changes[i];
        g_autofree char *path = trace_path(c->schedule, c->ranks);
        g_autofree char *text = difference(path, c);

        ck_assert_msg(text[0] != '\0', "%s-%u does not distinguish %s", c->schedule, c->ranks,
                      c->option);
    }
}
END_TEST

LH_TEST_MAIN("traces", traces_are_kept, changed_programs_do_not_keep_traces,
             no_overlap_keeps_compute_and_communication_apart)
