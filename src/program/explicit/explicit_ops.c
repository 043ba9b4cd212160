/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the ops of the explicit JSON form. Checks the relations between fields, so that a program
 * that was read can be walked without further checks: slots, parts, streams, kernels and peers
 * exist, each kernel has its number of operands, and an op comes after earlier ops only.
 */
#include "program/explicit/explicit_ops.h"

#include "base/error.h"
#include "program/explicit/explicit_args.h"
#include "program/op_names.h"

#include <string.h>

/* The messages and counts of the rank being read. */
typedef struct {
    GArray *parts;  /* of LhPart */
    GArray *counts; /* of uint32_t */
} Rank;

bool
lh_form_fail(const LhFormReader *r, const char *field, const char *format, ...)
{
    g_autofree char *path = g_strdup_printf("ranks[%u].ops[%u].%s", r->rank, r->op, field);
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = lh_error_text(format, args);
    va_end(args);
    return lh_json_error(r->json, path, r->error, "%s", text);
}

static bool
no_such(const LhFormReader *r, const char *field, const char *what, const char *name,
        const char *const *names)
{
    const char *nearest = lh_nearest_word(name, names);
    g_autofree char *escaped = g_strescape(name, NULL);

    if (nearest != NULL)
        return lh_form_fail(r, field, "unknown %s \"%.60s\"; did you mean \"%s\"?", what, escaped,
                            nearest);
    return lh_form_fail(r, field, "unknown %s \"%.60s\"", what, escaped);
}

static bool
fail_slot(const LhFormReader *r, const char *field, const char *name)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (uint32_t i = 0; i < r->program->slots_count; i++)
        g_ptr_array_add(names, r->program->slots[i].name);
    g_ptr_array_add(names, NULL);
    return no_such(r, field, "slot", name, (const char *const *)names->pdata);
}

static bool
find_slot(const LhFormReader *r, const char *field, const char *name, uint16_t *slot)
{
    const guint index = GPOINTER_TO_UINT(g_hash_table_lookup(r->slots, name));

    if (index == 0)
        return fail_slot(r, field, name);
    *slot = (uint16_t)(index - 1);
    return true;
}

/* Reads a number at *text and advances past it. Returns false if there are no digits or the
 * number is too large. */
static bool
read_digits(const char **text, uint64_t *value)
{
    const char *start = *text;

    *value = 0;
    for (; g_ascii_isdigit(**text) && *text - start < 10; (*text)++)
        *value = *value * 10 + (uint64_t)(**text - '0');
    return *text != start && !g_ascii_isdigit(**text);
}

/* Parses a whole range, "[3]" or "[1..2]". */
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

/* Reads and cuts off the half that a region text names after a colon. LH_HALVES: unknown half. */
static LhHalf
cut_half(char *text)
{
    const char *suffix = strchr(text, ':');
    LhHalf half = LH_HALF_BOTH;

    if (suffix == NULL)
        return half;
    do
        half++;
    while (half < LH_HALVES && strcmp(suffix, lh_half_suffixes[half]) != 0);
    text[suffix - text] = '\0';
    return half;
}

static bool
read_region(const LhFormReader *r, const char *field, const char *written, LhRegion *region)
{
    g_autofree char *text = g_strdup(written);
    const LhHalf half = cut_half(text);
    const size_t length = strcspn(text, "[");
    g_autofree char *name = g_strndup(text, length);
    const LhSlot *slot;
    uint64_t first = 0, last;

    if (!find_slot(r, field, name, &region->slot))
        return false;
    slot = &r->program->slots[region->slot];
    last = slot->parts - 1;
    if (text[length] != '\0' && !read_range(text + length, &first, &last))
        return lh_form_fail(r, field, "write a region as slot, slot[part] or slot[first..last]");
    if (half == LH_HALVES)
        return lh_form_fail(r, field, "a region ends in :k, :v or nothing; found \"%.60s\"",
                            strchr(written, ':'));
    if (half != LH_HALF_BOTH && !lh_slot_has_halves(slot))
        return lh_form_fail(
            r, field, "slot %s is of kind %s; only slots of kind kv and dkv have halves k and v",
            slot->name, lh_tensor_names[slot->kind]);
    region->half = (uint8_t)half;
    if (first > last || last >= slot->parts)
        return lh_form_fail(r, field, "slot %s has parts 0 to %u", slot->name, slot->parts - 1);
    region->part = (uint32_t)first;
    region->count = (uint32_t)(last - first + 1);
    return true;
}

static bool
read_stream(const LhFormReader *r, const LhFormOp *form, LhOp *op)
{
    const char *names[LH_STREAMS_MAX + 1] = { NULL };

    if (form->stream == NULL)
        return lh_form_fail(r, "stream", "this op needs a stream");
    for (uint32_t i = 0; i < r->program->streams_count; i++) {
        names[i] = r->program->streams[i].name;
        if (strcmp(names[i], form->stream) != 0)
            continue;
        op->stream = (uint8_t)i;
        return true;
    }
    return no_such(r, "stream", "stream", form->stream, names);
}

static bool
read_after(const LhFormReader *r, const LhFormOp *form, LhOp *op)
{
    for (guint i = 0; form->after != NULL && i < form->after->len; i++) {
        const uint64_t id = g_array_index(form->after, uint64_t, i);

        if (id >= op->id)
            return lh_form_fail(
                r, "after",
                "op %u can only come after earlier ops of its rank, which %" G_GUINT64_FORMAT
                " is not",
                op->id, id);
        op->after[op->after_count++] = (uint32_t)id;
    }
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
fail_kernel(const LhFormReader *r, const char *name)
{
    const char *names[LH_KERNELS_COUNT + 1] = { NULL };

    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++)
        names[i] = lh_kernels[i]->name;
    return no_such(r, "kernel", "kernel", name, names);
}

static bool
read_compute(const LhFormReader *r, const LhFormOp *form, LhOp *op)
{
    uint32_t operands;

    if (form->kernel == NULL)
        return lh_form_fail(r, "kernel", "a compute op needs a kernel");
    op->compute.kernel = lh_kernel_find(form->kernel);
    if (op->compute.kernel == LH_KERNELS_COUNT)
        return fail_kernel(r, form->kernel);
    operands = operands_count(lh_kernels[op->compute.kernel]);
    if (form->regions == NULL || form->regions->len != operands)
        return lh_form_fail(r, "regions", "%s takes %u operands; found %u", form->kernel, operands,
                            form->regions == NULL ? 0 : form->regions->len);
    op->compute.regions_count = (uint8_t)operands;
    for (guint i = 0; i < operands; i++) {
        g_autofree char *field = g_strdup_printf("regions[%u]", i);

        if (!read_region(r, field, g_ptr_array_index(form->regions, i), &op->compute.regions[i]))
            return false;
    }
    return lh_form_read_args(r, form, op);
}

static bool
read_message(const LhFormReader *r, const LhFormMessage *form, guint index, LhPart *part)
{
    const uint64_t peer = form->to != LH_FORM_ABSENT ? form->to : form->from;
    g_autofree char *place = g_strdup_printf("messages[%u]", index);

    if ((form->to == LH_FORM_ABSENT) == (form->from == LH_FORM_ABSENT))
        return lh_form_fail(r, place, "a message has one of \"to\" and \"from\"");
    if (peer >= lh_program_ranks(r->program) || peer == r->rank)
        return lh_form_fail(r, place,
                            "the peer must be another rank below %u; found %" G_GUINT64_FORMAT,
                            lh_program_ranks(r->program), peer);
    if (form->regions->len < 1 || form->regions->len > LH_PART_REGIONS_MAX)
        return lh_form_fail(r, place, "a message has 1 to %d regions", LH_PART_REGIONS_MAX);
    *part = (LhPart){
        .peer = (uint32_t)peer,
        .tag = (uint16_t)form->tag,
        .send = form->to != LH_FORM_ABSENT,
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
read_exchange(LhFormReader *r, const LhFormOp *form, LhOp *op, Rank *rank)
{
    if (form->messages == NULL)
        return lh_form_fail(r, "messages", "an exchange needs messages");
    r->parts_total += form->messages->len;
    if (r->parts_total > LH_EXPLICIT_PARTS_MAX)
        return lh_form_fail(r, "messages", "more than %u messages in all", LH_EXPLICIT_PARTS_MAX);
    op->exchange.parts_first = rank->parts->len;
    op->exchange.parts_count = form->messages->len;
    for (guint i = 0; i < form->messages->len; i++) {
        LhPart part;

        if (!read_message(r, &g_array_index(form->messages, LhFormMessage, i), i, &part))
            return false;
        g_array_append_val(rank->parts, part);
    }
    return true;
}

static bool
read_group(const LhFormReader *r, const LhFormGroup *form, LhGroup *group)
{
    const uint32_t ranks = lh_program_ranks(r->program);
    const LhGroup found = {
        .base = (uint32_t)form->base,
        .stride = (uint32_t)form->stride,
        .count = (uint32_t)form->count,
        .outer_stride = (uint32_t)form->outer_stride,
        .outer_count = (uint32_t)form->outer_count,
    };

    if (!lh_group_is_valid(&found, ranks))
        return lh_form_fail(r, "group", "the members of the group must be distinct ranks below %u",
                            ranks);
    *group = found;
    return true;
}

static bool
read_tensors(const LhFormReader *r, const char *field, const GPtrArray *texts, LhRegion *regions)
{
    for (guint i = 0; i < texts->len; i++) {
        g_autofree char *element = g_strdup_printf("%s[%u]", field, i);

        if (!read_region(r, element, g_ptr_array_index(texts, i), &regions[i]))
            return false;
    }
    return true;
}

/* Reads, for each tensor, the parts sent to and received from each member of the group. */
static bool
read_counts(const LhFormReader *r, const LhFormOp *form, LhOp *op, Rank *rank)
{
    const uint64_t wanted = 2 * lh_group_size(&op->collective.group) * op->collective.tensors_count;

    if (form->counts == NULL)
        return true;
    if (op->collective.kind != LH_COLL_ALL_TO_ALL)
        return lh_form_fail(r, "counts", "only an all-to-all has counts");
    if (form->counts->len != wanted)
        return lh_form_fail(r, "counts",
                            "%" G_GUINT64_FORMAT
                            " counts are needed, two per member of the group and tensor; found %u",
                            wanted, form->counts->len);
    op->collective.uneven = true;
    op->collective.counts_first = rank->counts->len;
    for (guint i = 0; i < form->counts->len; i++) {
        const uint64_t count = g_array_index(form->counts, uint64_t, i);
        const uint32_t parts = (uint32_t)count;

        if (count > UINT32_MAX)
            return lh_form_fail(r, "counts",
                                "a count exceeds the largest number of parts of a "
                                "slot");
        g_array_append_val(rank->counts, parts);
    }
    return true;
}

static bool
read_collective(const LhFormReader *r, const LhFormOp *form, LhOp *op, Rank *rank)
{
    if (form->collective == LH_FORM_NO_CHOICE)
        return lh_form_fail(r, "collective",
                            "a collective op needs its kind: all-gather, reduce-scatter, ...");
    if (form->group.base == LH_FORM_ABSENT)
        return lh_form_fail(r, "group", "a collective needs a group");
    if (form->send == NULL || form->receive == NULL)
        return lh_form_fail(r, "send", "a collective needs send and receive regions");
    if (form->send->len != form->receive->len)
        return lh_form_fail(r, "receive", "%u regions are sent, but %u received", form->send->len,
                            form->receive->len);
    if (form->wire_bytes == LH_FORM_ABSENT)
        return lh_form_fail(r, "wire_bytes", "a collective needs wire_bytes");
    op->collective.kind = (LhCollectiveKind)form->collective;
    op->collective.reduction =
        form->reduction == LH_FORM_NO_CHOICE ? LH_REDUCE_SUM : (LhReduction)form->reduction;
    op->collective.tensors_count = (uint8_t)form->send->len;
    op->collective.wire_bytes = form->wire_bytes;
    return read_group(r, &form->group, &op->collective.group) &&
           read_tensors(r, "send", form->send, op->collective.send) &&
           read_tensors(r, "receive", form->receive, op->collective.receive) &&
           read_counts(r, form, op, rank);
}

/* Rejects fields of other kinds of op, which would be lost silently. */
static bool
check_fields(const LhFormReader *r, const LhFormOp *form)
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
        { "nq", lh_form_has_args(form), form->op == LH_OP_COMPUTE },
        { "messages", form->messages != NULL, form->op == LH_OP_EXCHANGE },
        { "collective", form->collective != LH_FORM_NO_CHOICE, form->op == LH_OP_COLLECTIVE },
        { "reduction", form->reduction != LH_FORM_NO_CHOICE, form->op == LH_OP_COLLECTIVE },
        { "group", form->group.base != LH_FORM_ABSENT, form->op == LH_OP_COLLECTIVE },
        { "send", form->send != NULL, form->op == LH_OP_COLLECTIVE },
        { "receive", form->receive != NULL, form->op == LH_OP_COLLECTIVE },
        { "counts", form->counts != NULL, form->op == LH_OP_COLLECTIVE },
        { "wire_bytes", form->wire_bytes != LH_FORM_ABSENT, form->op == LH_OP_COLLECTIVE },
        { "communicator", form->communicator != 0,
          form->op == LH_OP_EXCHANGE || form->op == LH_OP_COLLECTIVE },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
        if (!rules[i].present || rules[i].allowed)
            continue;
        if (strcmp(rules[i].field, "nq") == 0)
            return lh_form_fail(r, "op", "an op \"%s\" takes no kernel arguments",
                                lh_op_kind_names[form->op]);
        return lh_form_fail(r, rules[i].field, "an op \"%s\" takes no \"%s\"",
                            lh_op_kind_names[form->op], rules[i].field);
    }
    return true;
}

static bool
read_op(LhFormReader *r, const LhFormOp *form, LhOp *op, Rank *rank)
{
    memset(op, 0, sizeof(*op));
    op->id = r->op;
    op->kind = (uint8_t)form->op;
    op->phase = (uint8_t)form->phase;
    op->step = (uint32_t)form->step;
    op->layer = (uint16_t)form->layer;
    op->micro_batch = (uint16_t)form->micro_batch;
    op->module = (uint16_t)form->module;
    op->communicator = (uint8_t)form->communicator;
    if (!check_fields(r, form) || !read_after(r, form, op))
        return false;
    switch ((LhOpKind)form->op) {
    case LH_OP_COMPUTE:
        return read_stream(r, form, op) && read_compute(r, form, op);
    case LH_OP_EXCHANGE:
        return read_stream(r, form, op) && read_exchange(r, form, op, rank);
    case LH_OP_COLLECTIVE:
        return read_stream(r, form, op) && read_collective(r, form, op, rank);
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        if (form->slot == NULL)
            return lh_form_fail(r, "slot", "an op \"%s\" needs a slot", lh_op_kind_names[form->op]);
        return read_region(r, "slot", form->slot, &op->memory.region);
    case LH_OP_SYNC:
    case LH_OP_KINDS:
        break;
    }
    return true;
}

static uint32_t
count_steps(const LhOp *ops, uint32_t count)
{
    uint32_t steps = 0;

    for (uint32_t i = 0; i < count; i++)
        steps += i == 0 || ops[i].phase != ops[i - 1].phase || ops[i].step != ops[i - 1].step;
    return steps;
}

/* Reads the ops one by one; decoded all at once they would take several times the size of their
 * text. */
static bool
read_ops(LhFormReader *r, LhFieldLater *left, LhOp *ops, Rank *rank)
{
    const LhField *field = &lh_form_rank_fields[0];
    g_autofree char *path = g_strdup_printf("ranks[%u].ops", r->rank);
    bool ok = true;

    for (r->op = 0; ok && left->count > 0; r->op++) {
        LhFormOp form;

        if (!lh_json_decode_next(r->json, field, path, left, &form, r->error))
            return false;
        ok = read_op(r, &form, &ops[r->op], rank);
        lh_json_clear(field->fields, &form);
    }
    return ok;
}

static bool
read_rank(LhFormReader *r, const LhFormRank *form, LhExplicitRank *out)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(LhPart));
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Rank rank = { parts, counts };
    LhFieldLater left = form->ops;

    r->ops_total += left.count;
    r->op = 0;
    if (r->ops_total > LH_EXPLICIT_OPS_MAX)
        return lh_form_fail(r, "op", "more than %u ops in all", LH_EXPLICIT_OPS_MAX);
    out->ops = g_new(LhOp, left.count);
    out->ops_count = left.count;
    if (!read_ops(r, &left, out->ops, &rank))
        return false;
    out->steps_count = count_steps(out->ops, out->ops_count);
    out->parts_count = parts->len;
    out->parts = (LhPart *)(void *)g_array_free(g_steal_pointer(&parts), FALSE);
    out->counts_count = counts->len;
    out->counts = (uint32_t *)(void *)g_array_free(g_steal_pointer(&counts), FALSE);
    return true;
}

bool
lh_form_read_ranks(LhFormReader *r, const LhForm *form)
{
    LhExplicit *all = g_new0(LhExplicit, 1);

    r->program->plan = all;
    r->program->plan_free = lh_explicit_free;
    all->ranks_count = form->ranks->len;
    all->ranks = g_new0(LhExplicitRank, all->ranks_count);
    for (r->rank = 0; r->rank < all->ranks_count; r->rank++) {
        if (!read_rank(r, &g_array_index(form->ranks, LhFormRank, r->rank), &all->ranks[r->rank]))
            return false;
    }
    return true;
}
