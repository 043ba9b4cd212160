/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the explicit JSON form up to the ops, which explicit_ops.c reads. The tables
 * (explicit_fields.c) decode and check single fields; the code here checks relations between
 * fields. Whether the program is correct is left to the verifier.
 */
#include "program/explicit/explicit_read.h"

#include "base/error.h"
#include "base/wide.h"
#include "program/explicit/explicit_fields.h"
#include "program/explicit/explicit_ops.h"
#include "program/work.h"

#include <string.h>

#define CELLS_MAX (UINT32_C(1) << 28) /* parts of all slots of a rank */

static LhProgramParams
params_of(const LhFormParams *f)
{
    LhProgramParams params = {
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
            .scale = f->scale,
        },
        .ranks = (uint32_t)f->ranks,
        .mask = { .causal = f->causal, .window = f->window },
        .pass = (LhPass)(f->pass + 1),
        .keep_saved = f->keep_saved,
        .data_parallel_size = (uint32_t)f->data_parallel_size,
    };

    if (f->document_ends != NULL) {
        params.mask.document_ends = (const uint64_t *)(const void *)f->document_ends->data;
        params.mask.documents_count = f->document_ends->len;
    }
    return params;
}

/* The options recorded in the file: the `options` list, or the fields of older files. */
static char **
read_record(const LhFormParams *f)
{
    g_autoptr(GStrvBuilder) record = g_strv_builder_new();

    for (guint i = 0; f->options != NULL && i < f->options->len; i++)
        g_strv_builder_add(record, g_ptr_array_index(f->options, i));
    if (!f->overlap)
        g_strv_builder_add(record, "no-overlap");
    if (f->published_code)
        g_strv_builder_add(record, "published-code");
    if (f->gradient_wire != 0)
        g_strv_builder_add(record,
                           f->gradient_wire == 1 ? "gradient-wire fp32" : "gradient-wire 16bit");
    return g_strv_builder_end(record);
}

/* Checks that slices are whole heads, and that each slice of k and v serves whole slices of q. */
static bool
read_cuts(LhFormReader *r, const LhForm *form)
{
    LhProgram *program = r->program;
    const LhAttention *a = &program->params.attention;
    const uint64_t split = MAX(form->placement_split, 1);
    const uint64_t head_slices = MAX(form->head_slices, 1), kv_slices = MAX(form->kv_slices, 1);

    if (split > 1 && (form->placement != LH_PLACE_ZIGZAG || program->params.ranks % split != 0))
        return lh_json_error(r->json, "placement_split", r->error,
                             "placement_split needs placement zigzag and must divide the %u ranks",
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

/* Whether "saved" lists this input slot's kind of tensor. */
static bool
is_saved(const LhForm *form, const LhFormSlot *slot)
{
    bool named = false;

    for (guint i = 0; form->saved != NULL && i < form->saved->len; i++)
        named =
            named || strcmp(g_ptr_array_index(form->saved, i), lh_tensor_names[slot->kind]) == 0;
    return named && slot->role == LH_SLOT_INPUT;
}

static bool
check_saved_names(const LhFormReader *r, const LhForm *form)
{
    for (guint i = 0; form->saved != NULL && i < form->saved->len; i++) {
        const char *name = g_ptr_array_index(form->saved, i);
        const char *nearest = lh_nearest_word(name, lh_tensor_names);
        g_autofree char *path = g_strdup_printf("saved[%u]", i);
        g_autofree char *escaped = g_strescape(name, NULL);

        if (g_strv_contains(lh_tensor_names, name))
            continue;
        return lh_json_error(r->json, path, r->error, "unknown tensor \"%.60s\"%s%s%s", escaped,
                             nearest != NULL ? "; did you mean \"" : "",
                             nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
    }
    return true;
}

/* Reads which slots are saved by heads. Older files list kinds of tensors instead; all input
 * slots of these kinds are meant. */
static bool
read_saved(LhFormReader *r, const LhForm *form)
{
    LhProgram *program = r->program;
    bool any = false;

    if (!check_saved_names(r, form))
        return false;
    for (guint i = 0; i < form->slots->len; i++) {
        const LhFormSlot *slot = &g_array_index(form->slots, LhFormSlot, i);

        any = any || slot->by_heads || is_saved(form, slot);
    }
    if (any != (form->saved_group != 0))
        return lh_json_error(r->json, "saved_group", r->error,
                             "saved_group and slots with by_heads need each other");
    if (!any)
        return true;
    if (program->params.ranks % form->saved_group != 0 || form->placement == LH_PLACE_HEADS)
        return lh_json_error(r->json, "saved_group", r->error,
                             "saved_group must divide the %u ranks, and placement must not be "
                             "heads",
                             program->params.ranks);
    program->saved_group = (uint32_t)form->saved_group;
    return true;
}

/* Creates the program, without slots, streams and ops. */
static bool
read_params(LhFormReader *r, const LhForm *form, const char *name)
{
    const LhProgramParams params = params_of(&form->params);
    const LhPlacementKind placement = (LhPlacementKind)form->placement;
    g_autoptr(GError) reason = NULL;

    if (strcmp(form->schema, LH_EXPLICIT_SCHEMA) != 0)
        return lh_json_error(r->json, "schema", r->error, "unknown schema; expected \"%s\"",
                             LH_EXPLICIT_SCHEMA);
    if (!lh_program_check(placement, &params, &reason))
        return lh_json_error(r->json, "params", r->error, "%s", reason->message);
    r->program = lh_program_create(name, &lh_explicit_generator, &params, placement);
    r->program->record = read_record(&form->params);
    if (form->ranks->len != lh_program_ranks(r->program))
        return lh_json_error(r->json, "ranks", r->error, "there are %u ranks, but programs for %u",
                             lh_program_ranks(r->program), form->ranks->len);
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

/* Totals of the slots read so far. */
typedef struct {
    uint64_t bytes, cells;
} Totals;

static bool
check_slot(const LhFormReader *r, const LhFormSlot *slot, const char *path, Totals *totals)
{
    const uint64_t parts = MAX(slot->parts, 1);
    uint64_t bytes;

    if (!is_name(slot->name))
        return lh_json_error(r->json, path, r->error,
                             "a name may contain only letters, digits, underscores, dots and "
                             "hyphens");
    if (__builtin_mul_overflow(parts, slot->part_bytes, &bytes) ||
        __builtin_add_overflow(totals->bytes, bytes, &totals->bytes) || totals->bytes > INT64_MAX)
        return lh_json_error(r->json, path, r->error, "the slots so far do not fit in 2^63 bytes");
    totals->cells += parts;
    if (totals->cells > CELLS_MAX)
        return lh_json_error(r->json, path, r->error, "the slots so far have more than %u parts",
                             CELLS_MAX);
    return true;
}

/* Determines the type of a slot's elements and checks it against element_bytes. */
static bool
read_dtype(const LhFormReader *r, const LhFormSlot *slot, const char *path, LhDtype *dtype)
{
    const LhDtype activation = r->program->params.attention.dtype;

    if (slot->dtype != LH_FORM_NO_CHOICE)
        *dtype = (LhDtype)slot->dtype;
    else if (slot->element_bytes == lh_dtype_bytes(LH_DTYPE_INT8))
        *dtype = LH_DTYPE_INT8;
    else
        *dtype = slot->element_bytes == lh_dtype_bytes(activation) ? activation : LH_DTYPE_FP32;
    if (lh_dtype_bytes(*dtype) == slot->element_bytes)
        return true;
    return lh_json_error(r->json, path, r->error,
                         "elements of %" G_GUINT64_FORMAT
                         " bytes; the activations' type has %u, fp32 has 4",
                         slot->element_bytes, lh_dtype_bytes(activation));
}

static bool
read_slots(LhFormReader *r, const LhForm *form)
{
    Totals totals = { 0 };

    for (guint i = 0; i < form->slots->len; i++) {
        const LhFormSlot *f = &g_array_index(form->slots, LhFormSlot, i);
        g_autofree char *name = g_strdup_printf("slots[%u].name", i);
        g_autofree char *element_bytes = g_strdup_printf("slots[%u].element_bytes", i);
        LhSlotParams slot = { .name = f->name,
                              .kind = (LhTensorKind)f->kind,
                              .role = (LhSlotRole)f->role,
                              .head_dim = (uint32_t)f->head_dim,
                              .by_heads = f->by_heads || is_saved(form, f),
                              .on_host = f->on_host,
                              .parts = (uint32_t)MAX(f->parts, 1),
                              .part_bytes = f->part_bytes };

        if (!check_slot(r, f, name, &totals) || !read_dtype(r, f, element_bytes, &slot.dtype))
            return false;
        lh_program_add_slot(r->program, slot);
        if (!g_hash_table_insert(r->slots, f->name, GUINT_TO_POINTER(i + 1)))
            return lh_json_error(r->json, name, r->error, "duplicate slot %s", f->name);
    }
    return true;
}

static bool
read_streams(LhFormReader *r, const LhForm *form)
{
    for (guint i = 0; i < form->streams->len; i++) {
        const LhFormStream *f = &g_array_index(form->streams, LhFormStream, i);
        g_autofree char *path = g_strdup_printf("streams[%u].name", i);

        if (!is_name(f->name))
            return lh_json_error(r->json, path, r->error,
                                 "a name may contain only letters, digits, underscores, dots "
                                 "and hyphens");
        for (uint32_t k = 0; k < r->program->streams_count; k++) {
            if (strcmp(r->program->streams[k].name, f->name) == 0)
                return lh_json_error(r->json, path, r->error, "duplicate stream %s", f->name);
        }
        lh_program_add_stream(r->program, f->name, (LhStreamKind)f->kind);
    }
    return true;
}

static bool
read_numbers(LhFormReader *r, const char *path, const GArray *numbers, uint64_t **out)
{
    const uint32_t ranks = lh_program_ranks(r->program);

    if (numbers == NULL)
        return true;
    if (numbers->len != ranks)
        return lh_json_error(r->json, path, r->error,
                             "one number per rank is needed: %u; found "
                             "%u",
                             ranks, numbers->len);
    *out = g_memdup2(numbers->data, ranks * sizeof(uint64_t));
    return true;
}

static bool
read_stated(LhFormReader *r, const LhForm *form)
{
    uint64_t **claimed = r->program->claimed;

    return read_numbers(r, "closed_form.bytes_sent", form->stated.bytes_sent,
                        &claimed[LH_CLAIM_BYTES_SENT]) &&
           read_numbers(r, "closed_form.flops", form->stated.flops, &claimed[LH_CLAIM_FLOPS]) &&
           read_numbers(r, "closed_form.peak_bytes", form->stated.peak_bytes,
                        &claimed[LH_CLAIM_PEAK_BYTES]);
}

/* Upper bound of the bytes an op sends: a collective sends a rank's contribution to all members,
 * and trees do so twice. */
static LhWide
most_bytes(const LhProgram *program, const LhExplicitRank *rank, const LhOp *op)
{
    LhWide bytes = 0;

    if (op->kind == LH_OP_COLLECTIVE) {
        bytes = op->collective.wire_bytes;
        for (uint32_t i = 0; i < op->collective.tensors_count; i++)
            bytes += (LhWide)lh_region_bytes(program, op->collective.send[i]) +
                     lh_region_bytes(program, op->collective.receive[i]);
        return 2 * bytes * lh_group_size(&op->collective.group);
    }
    for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
        const LhPart *part = &rank->parts[op->exchange.parts_first + i];

        bytes += (LhWide)part->wire_bytes + lh_part_wire_bytes(program, part);
    }
    return bytes;
}

/* Checks that the totals of a rank, as every reader adds them up, fit 63 bits. */
static bool
check_work(const LhFormReader *r, uint32_t index)
{
    const LhExplicitRank *rank = &((const LhExplicit *)r->program->plan)->ranks[index];
    LhWide bytes = 0, flops = 0;

    for (uint32_t i = 0; i < rank->ops_count; i++) {
        bytes += most_bytes(r->program, rank, &rank->ops[i]);
        flops += lh_op_flops(&rank->ops[i]);
        if (MAX(bytes, flops) > INT64_MAX) {
            g_autofree char *path = g_strdup_printf("ranks[%u].ops[%u].op", index, i);

            return lh_json_error(r->json, path, r->error,
                                 "this op brings the rank to more than 2^63 %s, which cannot be "
                                 "counted exactly",
                                 bytes > flops ? "bytes to send" : "flops");
        }
    }
    return true;
}

static bool
check_works(const LhFormReader *r)
{
    for (uint32_t rank = 0; rank < lh_program_ranks(r->program); rank++) {
        if (!check_work(r, rank))
            return false;
    }
    return true;
}

static LhProgram *
read_program(const LhJson *json, const char *name, GError **error)
{
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(GHashTable) slots = g_hash_table_new(g_str_hash, g_str_equal);
    LhFormReader reader = { .json = json, .slots = slots, .error = error };
    LhForm form = lh_form_new();
    bool ok;

    if (!lh_json_decode(json, lh_program_fields, &form, false, error))
        return NULL;
    ok = read_params(&reader, &form, name) && read_slots(&reader, &form) &&
         read_streams(&reader, &form) && read_stated(&reader, &form) &&
         lh_form_read_ranks(&reader, &form) && check_works(&reader);
    program = reader.program;
    g_hash_table_remove_all(slots);
    lh_json_clear(lh_program_fields, &form);
    return ok ? g_steal_pointer(&program) : NULL;
}

LhProgram *
lh_program_parse(const char *name, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(name, text, length, error);

    return json == NULL ? NULL : read_program(json, name, error);
}

LhProgram *
lh_program_load(const char *path, GError **error)
{
    g_autoptr(LhJson) json = lh_json_load(path, error);

    return json == NULL ? NULL : read_program(json, path, error);
}
