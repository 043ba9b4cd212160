/*
 * Reading the explicit JSON form. The tables decode and check what stands in one field; the code
 * below checks what ties fields together, so that whatever is read can be walked without looking
 * again: slots, parts, streams, kernels and peers exist, operands are as many as the kernel takes,
 * and an op comes after earlier ops only. Whether the program is right is the verifier's question.
 */
#include "sched/explicit.h"

#include "base/error.h"
#include "sched/schedule.h"

#include <math.h>
#include <string.h>

#define ABSENT UINT64_MAX
#define NO_CHOICE (-1)
#define NO_SHIFT INT64_MIN
#define NO_POSITION INT64_MIN
#define NAME_LENGTH_MAX (sizeof(((LhSlot *)NULL)->name) - 1)
#define STREAM_LENGTH_MAX (sizeof(((LhStream *)NULL)->name) - 1)
#define ROWS_MAX 2147483648.0 /* 2^31 */
#define U32_MAX 4294967295.0
#define SLOT_BYTES_MAX 281474976710656.0 /* 2^48 */
#define WIRE_BYTES_MAX 4398046511104.0   /* 2^42: a sum over all messages fits 64 bits */
#define FACTOR_MAX 1e30
#define HIDDEN_MAX 16777216.0 /* 2^24 */
#define DOCUMENTS_MAX 1048576

typedef struct {
    uint64_t ranks, data_parallel_size, batch, seq_length, heads, groups, head_dim;
    uint64_t hidden_size;
    int dtype;
    bool causal;
    uint64_t window;
    GArray *document_ends;
    bool linear;
    double decay;
    int pass; /* index into lh_pass_names */
    bool overlap, published_code;
    int gradient_wire;
} FormParams;

typedef struct {
    char *name;
    int kind, role;
    uint64_t parts, part_bytes, element_bytes;
} FormSlot;

typedef struct {
    char *name;
    int kind;
} FormStream;

typedef struct {
    uint64_t to, from, tag, wire_bytes;
    GPtrArray *regions;
} FormMessage;

typedef struct {
    uint64_t base, stride, count, outer_stride, outer_count;
} FormGroup;

/* Every op has a few of these; the others keep the presets of init_op. */
typedef struct {
    int op, phase;
    uint64_t step;
    char *stream;
    GArray *after;
    char *slot;
    char *kernel;
    GPtrArray *regions;
    int mask;
    int64_t shift;
    uint64_t nq, nk, pairs, batch, heads, groups, head_dim;
    int64_t q_start, q_part_step, k_start, k_part_step, stride;
    bool first, last, reversed;
    uint64_t states;
    double scale, decay;
    GArray *messages;
    int collective, reduction;
    FormGroup group;
    GPtrArray *send, *receive;
    uint64_t wire_bytes;
} FormOp;

typedef struct {
    GArray *ops;
} FormRank;

typedef struct {
    GArray *bytes_sent, *flops, *peak_bytes;
} FormStated;

typedef struct {
    char *schema;
    FormParams params;
    int placement;
    uint64_t placement_split, head_slices, kv_slices, saved_group;
    GPtrArray *saved;
    FormStated stated;
    GArray *slots, *streams, *ranks;
} Form;

static void
init_message(void *element)
{
    FormMessage *message = element;

    message->to = ABSENT;
    message->from = ABSENT;
}

static void
init_op(void *element)
{
    FormOp *op = element;

    op->mask = NO_CHOICE;
    op->shift = NO_SHIFT;
    op->nq = op->nk = op->pairs = ABSENT;
    op->batch = op->heads = op->groups = op->head_dim = ABSENT;
    op->q_start = op->q_part_step = op->k_start = op->k_part_step = op->stride = NO_POSITION;
    op->scale = op->decay = (double)NAN;
    op->collective = op->reduction = NO_CHOICE;
    op->group = (FormGroup){ .base = ABSENT, .outer_count = 1 };
    op->wire_bytes = ABSENT;
}

#define AT(form, member, kind)                                                                     \
    .name = #member, .type = LH_FIELD_##kind, .offset = offsetof(form, member)
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const LhField param_fields[] = {
    { AT(FormParams, ranks, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 1048576,
      .description = "Ranks that share the sequence." },
    { AT(FormParams, data_parallel_size, UINT), .min = 1, .max = 1048576,
      .description = "Groups of so many consecutive ranks, each with a sequence of its own; one if "
                     "absent." },
    { AT(FormParams, batch, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Sequences at a time." },
    { AT(FormParams, seq_length, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = ROWS_MAX,
      .description = "Tokens of a sequence, over all ranks." },
    { AT(FormParams, heads, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Query heads." },
    { AT(FormParams, groups, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Key-value heads; they divide the query heads." },
    { AT(FormParams, head_dim, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Dimension of a head." },
    { AT(FormParams, dtype, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_dtype_names,
      .description = "Type of activations." },
    { AT(FormParams, hidden_size, UINT), .min = 0, .max = HIDDEN_MAX,
      .description =
          "Width of the activations around the module; heads times head_dim if absent." },
    { AT(FormParams, causal, BOOL), .flags = LH_FIELD_REQUIRED,
      .description = "Whether the mask is causal; otherwise it is full." },
    { AT(FormParams, window, UINT), .min = 0, .max = ROWS_MAX,
      .description = "Keys that a causal query sees, itself included; all of them if absent." },
    { AT(FormParams, document_ends, UINTS), .min = 1, .max = DOCUMENTS_MAX,
      .description = "Packed documents: where each ends, rising to seq_length." },
    { AT(FormParams, linear, BOOL), .description = "Linear attention, not softmax." },
    { AT(FormParams, decay, DOUBLE), .min = 0, .max = 1,
      .description = "Of linear attention, per token; none if absent." },
    { AT(FormParams, pass, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_pass_names,
      .description = "Forward, backward, or both." },
    { AT(FormParams, overlap, BOOL),
      .description =
          "Whether the schedule overlaps communication with compute; kept for the record." },
    { AT(FormParams, published_code, BOOL),
      .description =
          "Whether the program reproduces a public implementation; kept for the record." },
    { AT(FormParams, gradient_wire, CHOICE), .choices = lh_wire_names,
      .description = "Type of gradients on the wire; kept for the record." },
    END,
};

static const LhField slot_fields[] = {
    { AT(FormSlot, name, STRING), .flags = LH_FIELD_REQUIRED, .min = 1, .max = NAME_LENGTH_MAX,
      .description = "Letters, digits, underscores, dots and hyphens." },
    { AT(FormSlot, kind, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_tensor_names,
      .description = "What the slot holds." },
    { AT(FormSlot, role, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_role_names,
      .description = "Inputs and outputs are there for the whole program; temporary slots are "
                     "allocated and freed." },
    { AT(FormSlot, parts, UINT), .min = 1, .max = 1048576,
      .description = "Parts of equal size; 1 if absent." },
    { AT(FormSlot, part_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Device memory of a part." },
    { AT(FormSlot, element_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 16,
      .description = "Bytes of an element." },
    END,
};

static const LhField stream_fields[] = {
    { AT(FormStream, name, STRING), .flags = LH_FIELD_REQUIRED, .min = 1, .max = STREAM_LENGTH_MAX,
      .description = "Name that ops use." },
    { AT(FormStream, kind, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_stream_kind_names,
      .description = "Compute or communication." },
    END,
};

static const LhField message_fields[] = {
    { AT(FormMessage, to, UINT), .description = "Rank that receives; this or from." },
    { AT(FormMessage, from, UINT), .description = "Rank that sends; this or to." },
    { AT(FormMessage, tag, UINT), .min = 0, .max = UINT16_MAX,
      .description = "Messages match by ranks, tag and order." },
    { AT(FormMessage, wire_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 0,
      .max = WIRE_BYTES_MAX, .description = "Bytes that cross the network." },
    { AT(FormMessage, regions, STRINGS), .flags = LH_FIELD_REQUIRED, .min = 1,
      .max = LH_PART_REGIONS_MAX,
      .description = "What is sent, or where it goes: slot, slot[part] or slot[first..last]." },
    END,
};

static const LhField group_fields[] = {
    { AT(FormGroup, base, UINT), .flags = LH_FIELD_REQUIRED, .min = 0, .max = U32_MAX,
      .description = "First rank." },
    { AT(FormGroup, stride, UINT), .flags = LH_FIELD_REQUIRED, .min = 0, .max = U32_MAX,
      .description = "From one rank to the next." },
    { AT(FormGroup, count, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Ranks of a row." },
    { AT(FormGroup, outer_stride, UINT), .min = 0, .max = U32_MAX,
      .description = "From one row to the next." },
    { AT(FormGroup, outer_count, UINT), .min = 1, .max = U32_MAX,
      .description = "Rows; 1 if absent." },
    END,
};

static const LhField op_fields[] = {
    { AT(FormOp, op, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_op_kind_names,
      .description = "Kind of op. Ops are numbered from 0 in the order of their rank." },
    { AT(FormOp, phase, CHOICE), .choices = lh_phase_names, .description = "Forward if absent." },
    { AT(FormOp, step, UINT), .min = 0, .max = U32_MAX,
      .description = "Step of the schedule, a label." },
    { AT(FormOp, stream, STRING),
      .description = "Stream of a compute, exchange or collective op." },
    { AT(FormOp, after, UINTS), .min = 0, .max = LH_OP_AFTER_MAX,
      .description = "Earlier ops of the rank that must be complete." },
    { AT(FormOp, slot, STRING), .description = "Slot of alloc and free." },
    { AT(FormOp, kernel, STRING), .description = "Kernel of a compute op." },
    { AT(FormOp, regions, STRINGS), .min = 0, .max = LH_KERNEL_OPERANDS_MAX,
      .description = "Operands of the kernel: slot, slot[part] or slot[first..last]." },
    { AT(FormOp, mask, CHOICE), .choices = lh_mask_names, .description = "Empty if absent." },
    { AT(FormOp, shift, INT), .min = -1, .max = 0,
      .description = "Of a causal mask: j <= i + shift." },
    { AT(FormOp, nq, UINT), .min = 0, .max = ROWS_MAX, .description = "Query rows; 0 if absent." },
    { AT(FormOp, nk, UINT), .min = 0, .max = ROWS_MAX, .description = "Key rows; 0 if absent." },
    { AT(FormOp, pairs, UINT), .min = 0, .max = 4611686018427387904.0,
      .description = "Pairs under the mask; worked out if absent, but for the mask positions." },
    { AT(FormOp, batch, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's if absent." },
    { AT(FormOp, heads, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's, of one slice, if absent." },
    { AT(FormOp, groups, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's, of one slice, if absent." },
    { AT(FormOp, head_dim, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's if absent." },
    { AT(FormOp, q_start, INT), .min = 0, .max = ROWS_MAX,
      .description = "Mask positions: row i of part p of the queries is token q_start + p "
                     "q_part_step + i stride." },
    { AT(FormOp, q_part_step, INT), .min = -ROWS_MAX, .max = ROWS_MAX,
      .description = "From a part of the queries to the next; 0 if absent." },
    { AT(FormOp, k_start, INT), .min = 0, .max = ROWS_MAX, .description = "Likewise of the keys." },
    { AT(FormOp, k_part_step, INT), .min = -ROWS_MAX, .max = ROWS_MAX,
      .description = "Likewise of the keys." },
    { AT(FormOp, stride, INT), .min = 0, .max = ROWS_MAX,
      .description = "Of the rows of both; 1 if absent." },
    { AT(FormOp, first, BOOL), .description = "Accumulators start here." },
    { AT(FormOp, last, BOOL), .description = "Accumulators end here." },
    { AT(FormOp, reversed, BOOL),
      .description = "Part i of the target goes with part i from the end of the source." },
    { AT(FormOp, states, UINT), .min = 0, .max = U32_MAX,
      .description = "States that linear_prefix adds up; 0 if absent." },
    { AT(FormOp, scale, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Of the logits; 0 means 1/sqrt(head_dim)." },
    { AT(FormOp, decay, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Of linear attention, per token; 0 means none." },
    { AT(FormOp, messages, ARRAY), .min = 1, .max = 65535, .fields = message_fields,
      .element_size = sizeof(FormMessage), .element_init = init_message,
      .description = "Messages of an exchange, one group." },
    { AT(FormOp, collective, CHOICE), .choices = lh_collective_names,
      .description = "Kind of a collective op." },
    { AT(FormOp, reduction, CHOICE), .choices = lh_reduction_names,
      .description = "Sum if absent." },
    { AT(FormOp, group, OBJECT), .fields = group_fields,
      .description = "Ranks base + i stride + j outer_stride." },
    { AT(FormOp, send, STRINGS), .flags = LH_FIELD_OR_ONE, .min = 1,
      .max = LH_COLLECTIVE_TENSORS_MAX,
      .description = "Region that a collective reads, or one for each of its tensors." },
    { AT(FormOp, receive, STRINGS), .flags = LH_FIELD_OR_ONE, .min = 1,
      .max = LH_COLLECTIVE_TENSORS_MAX,
      .description = "Region that a collective writes, or one for each of its tensors." },
    { AT(FormOp, wire_bytes, UINT), .min = 0, .max = WIRE_BYTES_MAX,
      .description = "Of this rank's contribution to a collective, all tensors." },
    END,
};

static const LhField rank_fields[] = {
    { AT(FormRank, ops, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 0, .max = LH_EXPLICIT_OPS_MAX,
      .fields = op_fields, .element_size = sizeof(FormOp), .element_init = init_op,
      .description = "Ops in program order." },
    END,
};

static const LhField stated_fields[] = {
    { AT(FormStated, bytes_sent, UINTS), .description = "Bytes sent, one number per rank." },
    { AT(FormStated, flops, UINTS), .description = "Attention flops, one number per rank." },
    { AT(FormStated, peak_bytes, UINTS),
      .description = "Peak device memory, one number per rank." },
    END,
};

const LhField lh_program_fields[] = {
    { AT(Form, schema, STRING), .flags = LH_FIELD_REQUIRED, .description = LH_EXPLICIT_SCHEMA },
    { AT(Form, params, OBJECT), .flags = LH_FIELD_REQUIRED, .fields = param_fields,
      .description = "What the program computes." },
    { AT(Form, placement, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_placement_names,
      .description = "Which tokens a rank holds." },
    { AT(Form, placement_split, UINT), .min = 1, .max = 1048576,
      .description = "Of the placement zigzag: so many ranks share a pair of half-chunks; 1 if "
                     "absent." },
    { AT(Form, head_slices, UINT), .min = 1, .max = U32_MAX,
      .description =
          "Slices of heads that q and what is shaped like it are cut into; 1 if absent." },
    { AT(Form, kv_slices, UINT), .min = 1, .max = U32_MAX,
      .description = "Slices of heads that k and v are cut into; 1 if absent." },
    { AT(Form, saved_group, UINT), .min = 1, .max = 1048576,
      .description = "Ranks in a row that exchange heads: of what is saved, an input slot has all "
                     "segments of the group for the rank's slices." },
    { AT(Form, saved, STRINGS), .min = 1, .max = LH_TENSOR_KINDS,
      .description = "Kinds of tensors that are saved so." },
    { .name = "closed_form",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Form, stated),
      .fields = stated_fields,
      .description = "Closed forms that the program claims to keep." },
    { AT(Form, slots, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 0, .max = 4096,
      .fields = slot_fields, .element_size = sizeof(FormSlot),
      .description = "Buffers of every rank." },
    { AT(Form, streams, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 1, .max = LH_STREAMS_MAX,
      .fields = stream_fields, .element_size = sizeof(FormStream),
      .description = "Queues of every rank." },
    { AT(Form, ranks, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 1048576,
      .fields = rank_fields, .element_size = sizeof(FormRank),
      .description = "One program per rank." },
    END,
};

typedef struct {
    const LhJson *json;
    LhProgram *program;
    GHashTable *slots; /* name -> index + 1 */
    uint32_t rank, op; /* being read */
    uint32_t ops_total, parts_total;
    GError **error;
} Reader;

/* Sets the error at a field of the op being read. */
static G_GNUC_PRINTF(3, 4) bool fail(const Reader *r, const char *field, const char *format, ...)
{
    g_autofree char *path = g_strdup_printf("ranks[%u].ops[%u].%s", r->rank, r->op, field);
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    return lh_json_error(r->json, path, r->error, "%s", text);
}

static bool
fail_name(const Reader *r, const char *field, const char *what, const char *name,
          const char *const *names)
{
    const char *nearest = lh_nearest_word(name, names);
    g_autofree char *escaped = g_strescape(name, NULL);

    if (nearest != NULL)
        return fail(r, field, "no %s is called \"%.60s\"; did you mean \"%s\"?", what, escaped,
                    nearest);
    return fail(r, field, "no %s is called \"%.60s\"", what, escaped);
}

static bool
fail_slot(const Reader *r, const char *field, const char *name)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (uint32_t i = 0; i < r->program->slots_count; i++)
        g_ptr_array_add(names, r->program->slots[i].name);
    g_ptr_array_add(names, NULL);
    return fail_name(r, field, "slot", name, (const char *const *)names->pdata);
}

static bool
find_slot(const Reader *r, const char *field, const char *name, uint16_t *slot)
{
    const guint index = GPOINTER_TO_UINT(g_hash_table_lookup(r->slots, name));

    if (index == 0)
        return fail_slot(r, field, name);
    *slot = (uint16_t)(index - 1);
    return true;
}

/* Digits at *text, moving it behind them; false if there are none or the number is too large. */
static bool
read_digits(const char **text, uint64_t *value)
{
    const char *start = *text;

    *value = 0;
    for (; g_ascii_isdigit(**text) && *text - start < 10; (*text)++)
        *value = *value * 10 + (uint64_t)(**text - '0');
    return *text != start && !g_ascii_isdigit(**text);
}

/* "[3]" or "[1..2]", all of it. */
static bool
read_range(const char *text, uint64_t *first, uint64_t *last)
{
    if (*text++ != '[' || !read_digits(&text, first))
        return false;
    *last = *first;
    if (strncmp(text, "..", 2) == 0) {
        text += 2;
        if (!read_digits(&text, last))
            return false;
    }
    return strcmp(text, "]") == 0;
}

static bool
read_region(const Reader *r, const char *field, const char *text, LhRegion *region)
{
    const size_t length = strcspn(text, "[");
    g_autofree char *name = g_strndup(text, length);
    const LhSlot *slot;
    uint64_t first = 0, last;

    if (!find_slot(r, field, name, &region->slot))
        return false;
    slot = &r->program->slots[region->slot];
    last = slot->parts - 1;
    if (text[length] != '\0' && !read_range(text + length, &first, &last))
        return fail(r, field, "a region is written slot, slot[part] or slot[first..last]");
    if (first > last || last >= slot->parts)
        return fail(r, field, "slot %s has the parts 0 to %u", slot->name, slot->parts - 1);
    region->part = (uint32_t)first;
    region->count = (uint32_t)(last - first + 1);
    return true;
}

static bool
read_stream(const Reader *r, const FormOp *form, LhOp *op)
{
    const char *names[LH_STREAMS_MAX + 1] = { NULL };

    if (form->stream == NULL)
        return fail(r, "stream", "this op needs a stream");
    for (uint32_t i = 0; i < r->program->streams_count; i++) {
        names[i] = r->program->streams[i].name;
        if (strcmp(names[i], form->stream) != 0)
            continue;
        op->stream = (uint8_t)i;
        return true;
    }
    return fail_name(r, "stream", "stream", form->stream, names);
}

static bool
read_after(const Reader *r, const FormOp *form, LhOp *op)
{
    for (guint i = 0; form->after != NULL && i < form->after->len; i++) {
        const uint64_t id = g_array_index(form->after, uint64_t, i);

        if (id >= op->id)
            return fail(
                r, "after",
                "op %u can only come after earlier ops of its rank, which %" G_GUINT64_FORMAT
                " is not",
                op->id, id);
        op->after[op->after_count++] = (uint32_t)id;
    }
    return true;
}

static uint64_t
given(uint64_t value, uint64_t otherwise)
{
    return value == ABSENT ? otherwise : value;
}

static int64_t
given_position(int64_t value, int64_t otherwise)
{
    return value == NO_POSITION ? otherwise : value;
}

static void
fill_positions(const Reader *r, const FormOp *form, LhKernelArgs *args)
{
    args->q_at.start = given_position(form->q_start, 0);
    args->q_at.part_step = given_position(form->q_part_step, 0);
    args->k_at.start = given_position(form->k_start, 0);
    args->k_at.part_step = given_position(form->k_part_step, 0);
    args->stride = (uint64_t)given_position(form->stride, 1);
    args->rule = &r->program->params.mask;
}

static void
fill_args(const Reader *r, const FormOp *form, LhKernelArgs *args)
{
    const LhProgram *program = r->program;
    const LhAttention *a = &program->params.attention;

    *args = (LhKernelArgs){
        .nq = given(form->nq, 0),
        .nk = given(form->nk, 0),
        .batch = (uint32_t)given(form->batch, a->batch),
        .heads = (uint32_t)given(form->heads, a->heads / program->head_slices),
        .groups = (uint32_t)given(form->groups, a->groups / program->kv_slices),
        .head_dim = (uint32_t)given(form->head_dim, a->head_dim),
        .mask = (uint8_t)(form->mask == NO_CHOICE ? LH_MASK_EMPTY : form->mask),
        .shift = (int8_t)(form->shift == NO_SHIFT ? 0 : form->shift),
        .first = form->first,
        .last = form->last,
        .reversed = form->reversed,
        .states = (uint32_t)form->states,
        .scale = isnan(form->scale) ? 0 : form->scale,
        .decay = isnan(form->decay) ? 0 : form->decay,
    };
    args->pairs = given(form->pairs,
                        lh_explicit_pairs((LhMaskKind)args->mask, args->shift, args->nq, args->nk));
    if (args->mask == LH_MASK_POSITIONS)
        fill_positions(r, form, args);
}

static bool
has_positions(const FormOp *form)
{
    return form->q_start != NO_POSITION || form->q_part_step != NO_POSITION ||
           form->k_start != NO_POSITION || form->k_part_step != NO_POSITION ||
           form->stride != NO_POSITION;
}

static bool
check_positions(const Reader *r, const FormOp *form)
{
    if (form->mask != LH_MASK_POSITIONS && has_positions(form))
        return fail(r, "mask", "only the mask \"positions\" takes q_start, k_start and the like");
    if (form->mask == LH_MASK_POSITIONS && form->pairs == ABSENT)
        return fail(r, "mask", "with the mask \"positions\" an op says its pairs");
    return true;
}

/* The flops and bytes of one call, whatever the kernel, fit 63 bits: a state has d^2 elements. */
static bool
check_args(const Reader *r, const LhKernelArgs *args)
{
    const uint64_t rows = MAX(args->nq, args->nk);
    const uint64_t heads = MAX(args->heads, args->groups);
    const uint64_t row = (uint64_t)args->head_dim + 8;
    uint64_t width, flops, bytes, states, scores;

    if (__builtin_mul_overflow(args->nq, args->nk, &scores) ||
        __builtin_mul_overflow((uint64_t)args->batch * heads, row, &width) ||
        __builtin_mul_overflow(width, 16, &flops) ||
        __builtin_mul_overflow(flops, MAX(args->pairs, scores), &flops) ||
        __builtin_mul_overflow(width, 64 * rows, &bytes) ||
        __builtin_mul_overflow(width, 16 * row, &states) ||
        __builtin_mul_overflow(states, rows + args->states + 1, &states) || flops > INT64_MAX ||
        bytes > INT64_MAX || states > INT64_MAX)
        return fail(r, "nq", "the flops or bytes of this call do not fit 63 bits");
    return true;
}

static uint32_t
operands_count(const LhKernel *kernel)
{
    uint32_t count = 0;

    while (kernel->operands[count].access != LH_OPERAND_END)
        count++;
    return count;
}

static bool
fail_kernel(const Reader *r, const char *name)
{
    const char *names[LH_KERNELS_COUNT + 1] = { NULL };

    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++)
        names[i] = lh_kernels[i]->name;
    return fail_name(r, "kernel", "kernel", name, names);
}

static bool
read_compute(const Reader *r, const FormOp *form, LhOp *op)
{
    uint32_t operands;

    if (form->kernel == NULL)
        return fail(r, "kernel", "a compute op needs a kernel");
    op->compute.kernel = lh_kernel_find(form->kernel);
    if (op->compute.kernel == LH_KERNELS_COUNT)
        return fail_kernel(r, form->kernel);
    operands = operands_count(lh_kernels[op->compute.kernel]);
    if (form->regions == NULL || form->regions->len != operands)
        return fail(r, "regions", "%s takes %u operands; found %u", form->kernel, operands,
                    form->regions == NULL ? 0 : form->regions->len);
    op->compute.regions_count = (uint8_t)operands;
    for (guint i = 0; i < operands; i++) {
        g_autofree char *field = g_strdup_printf("regions[%u]", i);

        if (!read_region(r, field, g_ptr_array_index(form->regions, i), &op->compute.regions[i]))
            return false;
    }
    if (!check_positions(r, form))
        return false;
    fill_args(r, form, &op->compute.args);
    return check_args(r, &op->compute.args);
}

static bool
read_message(const Reader *r, const FormMessage *form, guint index, LhPart *part)
{
    const uint64_t peer = form->to != ABSENT ? form->to : form->from;
    g_autofree char *place = g_strdup_printf("messages[%u]", index);

    if ((form->to == ABSENT) == (form->from == ABSENT))
        return fail(r, place, "a message has one of \"to\" and \"from\"");
    if (peer >= lh_program_ranks(r->program) || peer == r->rank)
        return fail(r, place, "the peer must be another rank below %u; found %" G_GUINT64_FORMAT,
                    lh_program_ranks(r->program), peer);
    if (form->regions->len < 1 || form->regions->len > LH_PART_REGIONS_MAX)
        return fail(r, place, "a message has 1 to %d regions", LH_PART_REGIONS_MAX);
    *part = (LhPart){
        .peer = (uint32_t)peer,
        .tag = (uint16_t)form->tag,
        .send = form->to != ABSENT,
        .regions_count = (uint8_t)form->regions->len,
        .wire_bytes = form->wire_bytes,
    };
    for (guint i = 0; i < form->regions->len; i++) {
        g_autofree char *field = g_strdup_printf("messages[%u].regions[%u]", index, i);

        if (!read_region(r, field, g_ptr_array_index(form->regions, i), &part->regions[i]))
            return false;
    }
    return true;
}

static bool
read_exchange(Reader *r, const FormOp *form, LhOp *op, GArray *parts)
{
    if (form->messages == NULL)
        return fail(r, "messages", "an exchange needs messages");
    r->parts_total += form->messages->len;
    if (r->parts_total > LH_EXPLICIT_PARTS_MAX)
        return fail(r, "messages", "more than %u messages in all", LH_EXPLICIT_PARTS_MAX);
    op->exchange.parts_first = parts->len;
    op->exchange.parts_count = form->messages->len;
    for (guint i = 0; i < form->messages->len; i++) {
        LhPart part;

        if (!read_message(r, &g_array_index(form->messages, FormMessage, i), i, &part))
            return false;
        g_array_append_val(parts, part);
    }
    return true;
}

/* All members are ranks; every product fits, as all factors are below 2^32. */
static bool
read_group(const Reader *r, const FormGroup *form, LhGroup *group)
{
    const uint64_t ranks = lh_program_ranks(r->program);
    const bool inner = form->count <= ranks && (form->count - 1) * form->stride < ranks;
    const bool outer =
        form->outer_count <= ranks && (form->outer_count - 1) * form->outer_stride < ranks;

    if (!inner || !outer ||
        form->base + (form->count - 1) * form->stride +
                (form->outer_count - 1) * form->outer_stride >=
            ranks)
        return fail(r, "group", "the group has members that are not ranks below %" G_GUINT64_FORMAT,
                    ranks);
    if (form->count * form->outer_count > ranks)
        return fail(r, "group",
                    "the group has more members than there are ranks, %" G_GUINT64_FORMAT, ranks);
    *group = (LhGroup){
        .base = (uint32_t)form->base,
        .stride = (uint32_t)form->stride,
        .count = (uint32_t)form->count,
        .outer_stride = (uint32_t)form->outer_stride,
        .outer_count = (uint32_t)form->outer_count,
    };
    return true;
}

static bool
read_tensors(const Reader *r, const char *field, const GPtrArray *texts, LhRegion *regions)
{
    for (guint i = 0; i < texts->len; i++) {
        g_autofree char *element = g_strdup_printf("%s[%u]", field, i);

        if (!read_region(r, element, g_ptr_array_index(texts, i), &regions[i]))
            return false;
    }
    return true;
}

static bool
read_collective(const Reader *r, const FormOp *form, LhOp *op)
{
    if (form->collective == NO_CHOICE)
        return fail(r, "collective", "a collective op says which: all-gather, reduce-scatter, ...");
    if (form->group.base == ABSENT)
        return fail(r, "group", "a collective needs a group");
    if (form->send == NULL || form->receive == NULL)
        return fail(r, "send", "a collective needs the regions send and receive");
    if (form->send->len != form->receive->len)
        return fail(r, "receive", "%u regions are sent, but %u received", form->send->len,
                    form->receive->len);
    if (form->wire_bytes == ABSENT)
        return fail(r, "wire_bytes", "a collective needs wire_bytes");
    op->collective.kind = (LhCollectiveKind)form->collective;
    op->collective.reduction =
        form->reduction == NO_CHOICE ? LH_REDUCE_SUM : (LhReduction)form->reduction;
    op->collective.tensors_count = (uint8_t)form->send->len;
    op->collective.wire_bytes = form->wire_bytes;
    return read_group(r, &form->group, &op->collective.group) &&
           read_tensors(r, "send", form->send, op->collective.send) &&
           read_tensors(r, "receive", form->receive, op->collective.receive);
}

static bool
has_args(const FormOp *form)
{
    return form->mask != NO_CHOICE || form->shift != NO_SHIFT || form->nq != ABSENT ||
           form->nk != ABSENT || form->pairs != ABSENT || form->batch != ABSENT ||
           form->heads != ABSENT || form->groups != ABSENT || form->head_dim != ABSENT ||
           has_positions(form) || form->first || form->last || form->reversed ||
           form->states != 0 || !isnan(form->scale) || !isnan(form->decay);
}

/* An op has no fields of another kind: they would be silently lost. */
static bool
check_fields(const Reader *r, const FormOp *form)
{
    const bool memory = form->op == LH_OP_ALLOC || form->op == LH_OP_FREE;
    const bool host = memory || form->op == LH_OP_SYNC;
    const struct {
        const char *field;
        bool present, allowed;
    } rules[] = {
        { "slot", form->slot != NULL, memory },
        { "stream", form->stream != NULL, !host },
        { "kernel", form->kernel != NULL, form->op == LH_OP_COMPUTE },
        { "regions", form->regions != NULL, form->op == LH_OP_COMPUTE },
        { "nq", has_args(form), form->op == LH_OP_COMPUTE },
        { "messages", form->messages != NULL, form->op == LH_OP_EXCHANGE },
        { "collective", form->collective != NO_CHOICE, form->op == LH_OP_COLLECTIVE },
        { "reduction", form->reduction != NO_CHOICE, form->op == LH_OP_COLLECTIVE },
        { "group", form->group.base != ABSENT, form->op == LH_OP_COLLECTIVE },
        { "send", form->send != NULL, form->op == LH_OP_COLLECTIVE },
        { "receive", form->receive != NULL, form->op == LH_OP_COLLECTIVE },
        { "wire_bytes", form->wire_bytes != ABSENT, form->op == LH_OP_COLLECTIVE },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
        if (!rules[i].present || rules[i].allowed)
            continue;
        if (strcmp(rules[i].field, "nq") == 0)
            return fail(r, "op", "an op \"%s\" takes no arguments of a kernel",
                        lh_op_kind_names[form->op]);
        return fail(r, rules[i].field, "an op \"%s\" takes no \"%s\"", lh_op_kind_names[form->op],
                    rules[i].field);
    }
    return true;
}

static bool
read_op(Reader *r, const FormOp *form, LhOp *op, GArray *parts)
{
    memset(op, 0, sizeof(*op));
    op->id = r->op;
    op->kind = (uint8_t)form->op;
    op->phase = (uint8_t)form->phase;
    op->step = (uint32_t)form->step;
    if (!check_fields(r, form) || !read_after(r, form, op))
        return false;
    switch ((LhOpKind)form->op) {
    case LH_OP_COMPUTE:
        return read_stream(r, form, op) && read_compute(r, form, op);
    case LH_OP_EXCHANGE:
        return read_stream(r, form, op) && read_exchange(r, form, op, parts);
    case LH_OP_COLLECTIVE:
        return read_stream(r, form, op) && read_collective(r, form, op);
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        if (form->slot == NULL)
            return fail(r, "slot", "an op \"%s\" needs a slot", lh_op_kind_names[form->op]);
        return find_slot(r, "slot", form->slot, &op->memory.slot);
    case LH_OP_SYNC:
    case LH_OP_KINDS:
        break;
    }
    return true;
}

static bool
read_rank(Reader *r, const FormRank *form, LhExplicitRank *rank)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(LhPart));

    r->ops_total += form->ops->len;
    r->op = 0;
    if (r->ops_total > LH_EXPLICIT_OPS_MAX)
        return fail(r, "op", "more than %u ops in all", LH_EXPLICIT_OPS_MAX);
    rank->ops = g_new(LhOp, form->ops->len);
    rank->ops_count = form->ops->len;
    for (; r->op < form->ops->len; r->op++) {
        if (!read_op(r, &g_array_index(form->ops, FormOp, r->op), &rank->ops[r->op], parts))
            return false;
    }
    rank->parts_count = parts->len;
    rank->parts = (LhPart *)(void *)g_array_free(g_steal_pointer(&parts), FALSE);
    return true;
}

static bool
read_ranks(Reader *r, const Form *form)
{
    LhExplicit *all = g_new0(LhExplicit, 1);

    r->program->explicit_ops = all;
    all->ranks_count = form->ranks->len;
    all->ranks = g_new0(LhExplicitRank, all->ranks_count);
    for (r->rank = 0; r->rank < all->ranks_count; r->rank++) {
        if (!read_rank(r, &g_array_index(form->ranks, FormRank, r->rank), &all->ranks[r->rank]))
            return false;
    }
    return true;
}

/* The documents become the program's own. */
static void
fill_params(LhProgram *program, const FormParams *f)
{
    program->params = (LhProgramParams){
        .attention = {
            .batch = (uint32_t)f->batch,
            .seq_length = f->seq_length,
            .heads = (uint32_t)f->heads,
            .groups = (uint32_t)f->groups,
            .head_dim = (uint32_t)f->head_dim,
            .hidden_size = (uint32_t)f->hidden_size,
            .dtype = (LhDtype)f->dtype,
            .linear = f->linear,
            .decay = f->decay,
        },
        .ranks = (uint32_t)f->ranks,
        .mask = { .causal = f->causal, .window = f->window },
        .pass = (LhPass)(f->pass + 1),
        .overlap = f->overlap,
        .published_code = f->published_code,
        .gradient_wire = (LhWireDtype)f->gradient_wire,
        .data_parallel_size = (uint32_t)f->data_parallel_size,
    };
    if (f->document_ends == NULL)
        return;
    program->document_ends =
        g_memdup2(f->document_ends->data, f->document_ends->len * sizeof(uint64_t));
    program->params.mask.document_ends = program->document_ends;
    program->params.mask.documents_count = f->document_ends->len;
}

/* Slices are whole heads, and every slice of k and v belongs to whole slices of q. */
static bool
read_cuts(Reader *r, const Form *form)
{
    LhProgram *program = r->program;
    const LhAttention *a = &program->params.attention;
    const uint64_t split = MAX(form->placement_split, 1);
    const uint64_t head_slices = MAX(form->head_slices, 1), kv_slices = MAX(form->kv_slices, 1);

    if (split > 1 && (form->placement != LH_PLACE_ZIGZAG || program->params.ranks % split != 0))
        return lh_json_error(r->json, "placement_split", r->error,
                             "a split is of the placement zigzag, and divides the %u ranks",
                             program->params.ranks);
    if (a->heads % head_slices != 0)
        return lh_json_error(r->json, "head_slices", r->error,
                             "%" G_GUINT64_FORMAT " slices do not divide %u heads", head_slices,
                             a->heads);
    if (a->groups % kv_slices != 0 || head_slices % kv_slices != 0)
        return lh_json_error(r->json, "kv_slices", r->error,
                             "%" G_GUINT64_FORMAT
                             " slices do not divide %u groups and the %" G_GUINT64_FORMAT
                             " slices of heads",
                             kv_slices, a->groups, head_slices);
    program->placement.split = (uint32_t)form->placement_split;
    program->head_slices = (uint32_t)head_slices;
    program->kv_slices = (uint32_t)kv_slices;
    return true;
}

/* What a backward pass is given by heads. */
static bool
read_saved(Reader *r, const Form *form)
{
    LhProgram *program = r->program;

    if ((form->saved == NULL) != (form->saved_group == 0))
        return lh_json_error(r->json, "saved", r->error, "saved and saved_group belong together");
    if (form->saved == NULL)
        return true;
    if (program->params.ranks % form->saved_group != 0 || form->placement == LH_PLACE_HEADS)
        return lh_json_error(r->json, "saved_group", r->error,
                             "groups divide the %u ranks, and tokens are not placed by heads",
                             program->params.ranks);
    program->saved_group = (uint32_t)form->saved_group;
    for (guint i = 0; i < form->saved->len; i++) {
        const char *name = g_ptr_array_index(form->saved, i);
        unsigned kind = 0;

        while (kind < LH_TENSOR_KINDS && strcmp(lh_tensor_names[kind], name) != 0)
            kind++;
        if (kind == LH_TENSOR_KINDS)
            return fail_name(r, "saved", "tensor", name, lh_tensor_names);
        program->saved_kinds |= 1u << kind;
    }
    return true;
}

static bool
read_params(Reader *r, const Form *form)
{
    LhProgram *program = r->program;
    g_autoptr(GError) reason = NULL;

    if (strcmp(form->schema, LH_EXPLICIT_SCHEMA) != 0)
        return lh_json_error(r->json, "schema", r->error, "this is read as \"%s\"",
                             LH_EXPLICIT_SCHEMA);
    fill_params(program, &form->params);
    program->placement = (LhPlacement){
        .kind = (LhPlacementKind)form->placement,
        .ranks = program->params.ranks,
        .seq_length = form->params.seq_length,
    };
    if (!lh_program_check(program->placement.kind, &program->params, &reason))
        return lh_json_error(r->json, "params", r->error, "%s", reason->message);
    if (form->ranks->len != lh_program_ranks(program))
        return lh_json_error(r->json, "ranks", r->error,
                             "there are %u ranks, but the programs of %u",
                             lh_program_ranks(program), form->ranks->len);
    return read_cuts(r, form) && read_saved(r, form);
}

static bool
is_name(const char *text)
{
    for (; *text != '\0'; text++) {
        if (!g_ascii_isalnum(*text) && strchr("_.-", *text) == NULL)
            return false;
    }
    return true;
}

static bool
read_slots(Reader *r, const Form *form)
{
    uint64_t total = 0;

    for (guint i = 0; i < form->slots->len; i++) {
        const FormSlot *f = &g_array_index(form->slots, FormSlot, i);
        const uint64_t parts = f->parts == 0 ? 1 : f->parts;
        g_autofree char *path = g_strdup_printf("slots[%u].name", i);
        uint64_t bytes;

        if (!is_name(f->name))
            return lh_json_error(r->json, path, r->error,
                                 "a name has letters, digits, underscores, dots and hyphens only");
        if (__builtin_mul_overflow(parts, f->part_bytes, &bytes) ||
            __builtin_add_overflow(total, bytes, &total) || total > INT64_MAX)
            return lh_json_error(r->json, path, r->error,
                                 "the slots up to here do not fit 2^63 bytes");
        lh_program_add_slot(r->program, f->name, (LhTensorKind)f->kind, (LhSlotRole)f->role,
                            (uint32_t)parts, f->part_bytes, (uint32_t)f->element_bytes);
        if (!g_hash_table_insert(r->slots, f->name, GUINT_TO_POINTER(i + 1)))
            return lh_json_error(r->json, path, r->error, "there is a slot %s already", f->name);
    }
    return true;
}

static bool
read_streams(Reader *r, const Form *form)
{
    for (guint i = 0; i < form->streams->len; i++) {
        const FormStream *f = &g_array_index(form->streams, FormStream, i);
        g_autofree char *path = g_strdup_printf("streams[%u].name", i);

        if (!is_name(f->name))
            return lh_json_error(r->json, path, r->error,
                                 "a name has letters, digits, underscores, dots and hyphens only");
        for (uint32_t k = 0; k < r->program->streams_count; k++) {
            if (strcmp(r->program->streams[k].name, f->name) == 0)
                return lh_json_error(r->json, path, r->error, "there is a stream %s already",
                                     f->name);
        }
        lh_program_add_stream(r->program, f->name, (LhStreamKind)f->kind);
    }
    return true;
}

static bool
read_numbers(Reader *r, const char *path, const GArray *numbers, uint64_t **out)
{
    const uint32_t ranks = lh_program_ranks(r->program);

    if (numbers == NULL)
        return true;
    if (numbers->len != ranks)
        return lh_json_error(r->json, path, r->error, "one number for each of %u ranks; found %u",
                             ranks, numbers->len);
    *out = g_memdup2(numbers->data, ranks * sizeof(uint64_t));
    return true;
}

static bool
read_stated(Reader *r, const Form *form)
{
    LhStatedForms *stated = &r->program->stated;

    return read_numbers(r, "closed_form.bytes_sent", form->stated.bytes_sent,
                        &stated->bytes_sent) &&
           read_numbers(r, "closed_form.flops", form->stated.flops, &stated->flops) &&
           read_numbers(r, "closed_form.peak_bytes", form->stated.peak_bytes, &stated->peak_bytes);
}

static LhProgram *
read_program(const LhJson *json, GError **error)
{
    g_autoptr(LhProgram) program = g_new0(LhProgram, 1);
    g_autoptr(GHashTable) slots = g_hash_table_new(g_str_hash, g_str_equal);
    Reader reader = { .json = json, .program = program, .slots = slots, .error = error };
    Form form = { 0 };
    bool ok;

    form.params.overlap = true;
    if (!lh_json_decode(json, lh_program_fields, &form, false, error))
        return NULL;
    ok = read_params(&reader, &form) && read_slots(&reader, &form) &&
         read_streams(&reader, &form) && read_stated(&reader, &form) && read_ranks(&reader, &form);
    g_hash_table_remove_all(slots);
    lh_json_clear(lh_program_fields, &form);
    return ok ? g_steal_pointer(&program) : NULL;
}

LhProgram *
lh_program_parse(const char *name, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(name, text, length, error);

    return json == NULL ? NULL : read_program(json, error);
}

LhProgram *
lh_program_load(const char *path, GError **error)
{
    g_autoptr(LhJson) json = lh_json_load(path, error);

    return json == NULL ? NULL : read_program(json, error);
}
