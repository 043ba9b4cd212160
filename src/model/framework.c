/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frameworks, read from files. A file groups its values, each an object {value, provenance,
 * source}; LhFramework is flat. One table describes both.
 */
#include "model/framework.h"

#include "base/files/data_files.h"
#include "model/framework_remedies.h"
#include "model/framework_states.h"

#include <string.h>

#define TEXT_MAX 1000
#define PREFETCH_MAX 1024
#define BYTES_PER_MAX 1000
#define SLOWDOWN_MAX 100
#define CALL_MAX_S 1
#define CHUNK_MAX_ROWS 1e12
#define SIZE_MAX_BYTES 1e15

static const char *const framework_schemas[] = { "longhaul.framework/1", NULL };

const char *const lh_origin_names[] = {
    "measured", "code", "datasheet", "fitted", "assumed", NULL
};
const char *const lh_shard_names[] = { "ddp", "zero1", "zero2", "fsdp", NULL };
const char *const lh_checkpoint_names[] = { "none", "selective", "layer", "remat", NULL };
const char *const lh_loss_names[] = { "eager", "fused", "chunked", "tiled", "fused-linear", NULL };
const char *const lh_fsdp_unit_names[] = { "layer", "model", NULL };
const char *const lh_state_type_names[] = { "activation", "fp32", NULL };
const char *const lh_moments_type_names[] = { "activation", "fp32", "8bit", NULL };

/* A value in a file. The row's type tells which member of the union is in use. */
typedef struct {
    union {
        double real;
        uint64_t count;
        bool flag;
        int choice;
        char *text;
    } value;
    int origin; /* LhOrigin */
    char *source;
} Fact;

/* One value: its place in a file, its place in LhFramework, and its default. */
typedef struct {
    const char *group, *name;
    LhFieldType type;
    size_t offset;
    double min, max;            /* of numbers */
    const char *const *choices; /* LH_FIELD_CHOICE */
    double preset;              /* flags: 0 or 1, choices: the index, strings: none */
    LhUnit unit;
    const char *description;
} Row;

#define ROW(in, key, member, kind, ...)                                                            \
    {                                                                                              \
        .group = (in), .name = (key), .type = (kind), .offset = offsetof(LhFramework, member),     \
        __VA_ARGS__                                                                                \
    }
#define FLAG(in, key, member, usual, text)                                                         \
    ROW(in, key, member, LH_FIELD_BOOL, .preset = (usual), .description = (text))
#define REAL(in, key, member, most, usual, text)                                                   \
    ROW(in, key, member, LH_FIELD_DOUBLE, .max = (most), .preset = (usual), .description = (text))
#define CHOICE(in, key, member, names, usual, text)                                                \
    ROW(in, key, member, LH_FIELD_CHOICE, .choices = (names), .preset = (usual),                   \
        .description = (text))

/* Rows of one group are consecutive. */
static const Row setting_rows[] = {
    CHOICE("fsdp", "unit", fsdp_unit, lh_fsdp_unit_names, LH_FSDP_LAYER,
           "FSDP (ZeRO-3) unit that is gathered and reduced at once: a layer, or the whole model."),
    ROW("fsdp", "prefetch", fsdp_prefetch, LH_FIELD_UINT, .max = PREFETCH_MAX, .preset = 0,
        .description =
            "Units gathered ahead of the one that computes; 0: all-gathers are fully exposed."),
    FLAG("fsdp", "reshard_after_forward", fsdp_reshard, 1,
         "Whether gathered weights are freed after the forward pass and gathered again for the "
         "backward pass."),
    FLAG("fsdp", "halves", fsdp_halves, 0,
         "Whether the two halves of a layer are called separately, so that a layer whose halves "
         "are recomputed is gathered twice in each pass."),
    CHOICE("fsdp", "gradient_reduce", fsdp_gradient_reduce, lh_state_type_names, LH_TYPE_ACTIVATION,
           "Element type of FSDP's gradient reduce-scatter."),
    FLAG("fsdp", "reduce_every_micro_batch", fsdp_reduce_every_micro_batch, 1,
         "Whether gradients are reduced after every micro-batch, or only after the last."),
    REAL("fsdp", "overhead_s", fsdp_overhead_s, LH_OVERHEAD_MAX_S, 0,
         "Host time of FSDP's own code per step, seconds."),
    FLAG("ddp", "overlap", ddp_overlap, 0,
         "Whether the reduction of replicated weights' gradients overlaps the backward pass."),
    ROW("ddp", "bucket_bytes", ddp_bucket_bytes, LH_FIELD_UNIT, .max = SIZE_MAX_BYTES, .preset = 0,
        .unit = LH_UNIT_BYTES, .description = "Bucket size of gradient reduction; 0: one bucket."),
    CHOICE("ddp", "gradient_reduce", ddp_gradient_reduce, lh_state_type_names, LH_TYPE_ACTIVATION,
           "Element type in which gradients of replicated weights are reduced."),
    FLAG("ddp", "bucket_copies", ddp_bucket_copies, 0,
         "Whether buckets are copies in addition to the gradients of replicated weights."),
    FLAG("zero", "gather_overlap", zero_gather_overlap, 0,
         "Whether the weight all-gather of ZeRO-1 and 2 overlaps the next forward pass."),
    CHOICE("states", "alone", states_alone, lh_state_type_names, LH_TYPE_FP32,
           "activation: with one data-parallel rank nothing shards or casts the 16-bit parameters; "
           "gradients and moments have their type, and there is no fp32 copy. fp32: as otherwise."),
    FLAG("states", "master", states_master, 1,
         "Whether the optimizer keeps an fp32 master copy of the weights."),
    CHOICE("states", "moments", states_moments, lh_moments_type_names, LH_STATE_FP32,
           "Element type of each of Adam's two moments; 8bit: codes in blocks of 256 with an fp32 "
           "scale each."),
    CHOICE("states", "gradient", states_gradient, lh_state_type_names, LH_TYPE_ACTIVATION,
           "Element type in which gradients are stored."),
    REAL("states", "step_bytes_per_parameter", states_step_bytes, BYTES_PER_MAX, 0,
         "Bytes per parameter that exist only during the optimizer step."),
    CHOICE("states", "checkpoint", states_checkpoint, lh_checkpoint_names, LH_CHECKPOINT_NONE,
           "Default recomputation: what is kept of a layer's forward pass."),
    CHOICE("states", "shard", states_shard, lh_shard_names, LH_SHARD_DDP,
           "Default sharding over data-parallel ranks."),
    REAL("kernels", "norm", kernels_norm, BYTES_PER_MAX, 4,
         "Forward memory traffic of a norm, bytes per element of the hidden state."),
    REAL("kernels", "rotary", kernels_rotary, BYTES_PER_MAX, 4,
         "Forward memory traffic of the rotary embedding, bytes per element of q and k."),
    REAL("kernels", "glu", kernels_glu, BYTES_PER_MAX, 6,
         "Forward memory traffic of act(gate) x up, bytes per element of the inner width."),
    REAL("kernels", "activation", kernels_activation, BYTES_PER_MAX, 4,
         "Forward memory traffic of an activation without gate, bytes per element."),
    REAL("kernels", "residual", kernels_residual, BYTES_PER_MAX, 6,
         "Forward memory traffic of a residual sum, bytes per element of the hidden state."),
    REAL("kernels", "unfused", kernels_unfused, BYTES_PER_MAX, 0,
         "Bytes per element of the hidden state that a layer's unfused kernels (fused in other "
         "frameworks) write and keep for the backward pass; they are written and read in the "
         "forward pass, with twice that traffic in the backward pass."),
    REAL("kernels", "norm_kept", kernels_norm_kept, BYTES_PER_MAX, 0,
         "Bytes per element of its input that an RMS norm keeps for the backward pass beside input "
         "and result; its traffic is that of the norm."),
    REAL("kernels", "glu_kept", kernels_glu_kept, BYTES_PER_MAX, 0,
         "Bytes per element of the inner width that act(gate) x up keeps for the backward pass "
         "beside gate, up and result, likewise."),
    REAL("kernels", "loss", kernels_loss, BYTES_PER_MAX, 30,
         "Memory traffic of the loss, forward and backward, bytes per logit."),
    REAL("kernels", "optimizer", kernels_optimizer, BYTES_PER_MAX, 28,
         "Memory traffic of the optimizer, bytes per parameter that the rank updates."),
    REAL("kernels", "cpu_optimizer", kernels_cpu_optimizer, BYTES_PER_MAX, 28,
         "Memory traffic of an optimizer whose states are in host memory, bytes of that memory per "
         "parameter that the CPU updates."),
    REAL(
        "kernels", "merge_slice", kernels_merge_slice, BYTES_PER_MAX, 0,
        "Memory traffic of slicing a block's queries out of a sum and putting them back, bytes per "
        "element of the block's output; applies where the sum has more queries than the block."),
    FLAG("kernels", "fused_qkv", kernels_fused_qkv, 1,
         "Whether q, k and v are one matrix product."),
    FLAG("kernels", "fused_gate", kernels_fused_gate, 1,
         "Whether gate and up are one matrix product."),
    FLAG("attention_call", "gather", call_gather, 0,
         "Whether the inputs of an attention kernel call are first gathered by index."),
    FLAG("attention_call", "pad", call_pad, 0,
         "Whether the outputs of an attention kernel call are scattered by index into zeros."),
    ROW("attention_call", "index_slowdown", call_slowdown, LH_FIELD_DOUBLE, .min = 1,
        .max = SLOWDOWN_MAX, .preset = 1,
        .description = "Slowdown of a copy by index relative to a copy of elements in order."),
    REAL("attention_call", "host_s", call_host_s, CALL_MAX_S, 0,
         "Host time of an attention kernel call in addition to the launch, seconds."),
    REAL("logits", "activation_bytes", logits_activation_bytes, BYTES_PER_MAX, 2,
         "Bytes of a logit as the head writes it."),
    REAL("logits", "fp32_bytes", logits_fp32_bytes, BYTES_PER_MAX, 4, "Bytes of its copy in fp32."),
    REAL("logits", "softmax_bytes", logits_softmax_bytes, BYTES_PER_MAX, 4,
         "Bytes per logit that the loss keeps for the backward pass."),
    REAL("logits", "gradient_bytes", logits_gradient_bytes, BYTES_PER_MAX, 0,
         "Bytes of a logit's gradients held in addition to the others."),
    CHOICE("logits", "loss", logits_loss, lh_loss_names, LH_LOSS_EAGER,
           "Default of --loss: how the loss is computed, and whether in chunks with the head."),
    CHOICE("logits", "chunk_products", logits_chunk_products, lh_state_type_names,
           LH_TYPE_ACTIVATION,
           "Type of the head's products in a chunked loss; fp32: without matrix units."),
    ROW("logits", "chunk_rows", logits_chunk_rows, LH_FIELD_UINT, .max = CHUNK_MAX_ROWS,
        .preset = 0,
        .description =
            "Rows of a chunk of a loss in chunks, at most; 0: by the rule of the kind of "
            "loss."),
    FLAG("tp", "overlap_gather_with_dgrad", tp_overlap_gather, 0,
         "Whether tensor parallelism's gather of inputs for wgrad overlaps dgrad."),
    FLAG("tp", "overlap_scatter_with_wgrad", tp_overlap_scatter, 0,
         "Whether tensor parallelism's reduce-scatter of input gradients overlaps wgrad."),
    ROW("host", "memory_other_bytes", memory_other_bytes, LH_FIELD_UNIT, .max = SIZE_MAX_BYTES,
        .preset = 0, .unit = LH_UNIT_BYTES,
        .description = "GPU memory that the framework holds in addition to tensors."),
    ROW("host", "attention_kernel", attention_kernel, LH_FIELD_STRING, .max = TEXT_MAX,
        .description = "Library of attention kernels that the framework runs, on devices that have "
                       "it (docs/reference/devices.md); default: the device's own."),
};

#define ROWS G_N_ELEMENTS(setting_rows)

/* Decoded form of a file. */
typedef struct {
    int schema;
    char *name, *description, *source;
    Fact facts[ROWS];
    GArray *remedies; /* of LhFrameworkRemedy; NULL: none */
} File;

/* --- the table of the file ---------------------------------------------------------------------
 */

static const LhField *
make_fact_fields(const Row *row)
{
    const LhField fields[] = {
        { .name = "value",
          .type = row->type,
          .offset = offsetof(Fact, value),
          .flags = LH_FIELD_REQUIRED,
          .unit = row->unit,
          .min = row->type == LH_FIELD_STRING ? 1 : row->min,
          .max = row->max,
          .choices = row->choices,
          .description = "The value." },
        { .name = "provenance",
          .type = LH_FIELD_CHOICE,
          .offset = offsetof(Fact, origin),
          .flags = LH_FIELD_REQUIRED,
          .choices = lh_origin_names,
          .description = "Provenance: measured, code, datasheet, fitted or assumed." },
        { .name = "source",
          .type = LH_FIELD_STRING,
          .offset = offsetof(Fact, source),
          .flags = LH_FIELD_REQUIRED,
          .min = 1,
          .max = TEXT_MAX,
          .description = "Source of the value." },
        { .name = NULL },
    };

    return g_memdup2(fields, sizeof(fields));
}

/* The fields of the group that begins at setting_rows[@first]; @after is the row after it. */
static const LhField *
make_group_fields(gsize first, gsize *after)
{
    g_autoptr(GArray) fields = g_array_new(TRUE, TRUE, sizeof(LhField));
    gsize i = first;

    for (; i < ROWS && g_str_equal(setting_rows[i].group, setting_rows[first].group); i++) {
        const LhField field = {
            .name = setting_rows[i].name,
            .type = LH_FIELD_OBJECT,
            .offset = offsetof(File, facts) + i * sizeof(Fact),
            .fields = make_fact_fields(&setting_rows[i]),
            .description = setting_rows[i].description,
        };

        g_array_append_val(fields, field);
    }
    *after = i;
    return (const LhField *)(void *)g_array_free(g_steal_pointer(&fields), FALSE);
}

static const LhField *
make_fields(void)
{
    static const LhField own[] = {
        { .name = "schema",
          .type = LH_FIELD_CHOICE,
          .offset = offsetof(File, schema),
          .flags = LH_FIELD_REQUIRED,
          .choices = framework_schemas,
          .description = "The format and its version." },
        { .name = "name",
          .type = LH_FIELD_STRING,
          .offset = offsetof(File, name),
          .flags = LH_FIELD_REQUIRED,
          .min = 1,
          .max = TEXT_MAX,
          .description = "The framework's name, equal to the file's." },
        { .name = "description",
          .type = LH_FIELD_STRING,
          .offset = offsetof(File, description),
          .min = 1,
          .max = TEXT_MAX,
          .description = "Description of the framework, one sentence." },
        { .name = "source",
          .type = LH_FIELD_STRING,
          .offset = offsetof(File, source),
          .flags = LH_FIELD_REQUIRED,
          .min = 1,
          .max = TEXT_MAX,
          .description = "Code and version that the file describes." },
    };
    static const LhField remedies = {
        .name = "remedies",
        .type = LH_FIELD_ARRAY,
        .offset = offsetof(File, remedies),
        .fields = lh_framework_remedy_fields,
        .element_size = sizeof(LhFrameworkRemedy),
        .description = "Options of the framework, off by default, with which a step needs less "
                       "memory; plans search them.",
    };
    static const char *const texts[][2] = {
        { "fsdp", "FSDP: sharded weights." },
        { "ddp", "DDP: replicated weights." },
        { "zero", "ZeRO-1 and ZeRO-2." },
        { "states", "Weights, gradients and optimizer states of a parameter." },
        { "kernels", "Memory traffic of small kernels." },
        { "attention_call", "Work around attention kernel calls." },
        { "logits", "Memory of a logit." },
        { "tp", "Tensor parallelism." },
        { "host", "Other settings." },
    };
    g_autoptr(GArray) fields = g_array_new(TRUE, TRUE, sizeof(LhField));
    gsize row = 0;

    g_array_append_vals(fields, own, G_N_ELEMENTS(own));
    for (gsize i = 0; row < ROWS; i++) {
        const LhField field = {
            .name = setting_rows[row].group,
            .type = LH_FIELD_OBJECT,
            .fields = make_group_fields(row, &row),
            .description = texts[i][1],
        };

        g_assert(g_str_equal(field.name, texts[i][0]));
        g_array_append_val(fields, field);
    }
    g_array_append_val(fields, remedies);
    return (const LhField *)(void *)g_array_free(g_steal_pointer(&fields), FALSE);
}

const LhField *
lh_framework_fields(void)
{
    static const LhField *fields = NULL;

    if (g_once_init_enter(&fields))
        g_once_init_leave(&fields, make_fields());
    return fields;
}

/* --- from the file to the struct ---------------------------------------------------------------
 */

static void
preset(Fact *fact, const Row *row)
{
    fact->origin = LH_ORIGIN_ASSUMED;
    switch (row->type) {
    case LH_FIELD_BOOL:
        fact->value.flag = row->preset != 0;
        return;
    case LH_FIELD_CHOICE:
        fact->value.choice = (int)row->preset;
        return;
    case LH_FIELD_UINT:
    case LH_FIELD_UNIT:
        fact->value.count = (uint64_t)row->preset;
        return;
    case LH_FIELD_DOUBLE:
        fact->value.real = row->preset;
        return;
    default:
        return; /* strings have no default */
    }
}

/* Stores a fact in LhFramework, which takes over its text. */
static void
place(LhFramework *f, const Row *row, Fact *fact)
{
    void *at = (char *)f + row->offset;

    switch (row->type) {
    case LH_FIELD_BOOL:
        *(bool *)at = fact->value.flag;
        return;
    case LH_FIELD_CHOICE:
        *(int *)at = fact->value.choice;
        return;
    case LH_FIELD_UINT:
    case LH_FIELD_UNIT:
        *(uint64_t *)at = fact->value.count;
        return;
    case LH_FIELD_DOUBLE:
        *(double *)at = fact->value.real;
        return;
    case LH_FIELD_STRING:
        *(char **)at = g_steal_pointer(&fact->value.text);
        return;
    default:
        g_assert_not_reached();
    }
}

/* The value as text. Caller frees. */
static char *
text_of(const Row *row, const Fact *fact)
{
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    switch (row->type) {
    case LH_FIELD_BOOL:
        return g_strdup(fact->value.flag ? "yes" : "no");
    case LH_FIELD_CHOICE:
        return g_strdup(row->choices[fact->value.choice]);
    case LH_FIELD_UINT:
        return g_strdup_printf("%" G_GUINT64_FORMAT, fact->value.count);
    case LH_FIELD_UNIT:
        return lh_format_bytes(fact->value.count);
    case LH_FIELD_DOUBLE:
        return g_strdup(lh_double_to_text(fact->value.real, digits));
    default:
        return g_strdup(fact->value.text != NULL ? fact->value.text : "");
    }
}

static void
clear_fact(gpointer data)
{
    LhFrameworkFact *fact = data;

    g_free(fact->text);
    g_free(fact->source);
}

/* Takes over what @file owns. */
static LhFramework *
flatten(File *file)
{
    LhFramework *f = g_new0(LhFramework, 1);

    f->schema = file->schema;
    f->name = g_steal_pointer(&file->name);
    f->description = g_steal_pointer(&file->description);
    f->source = g_steal_pointer(&file->source);
    f->remedies = g_steal_pointer(&file->remedies);
    f->facts = g_array_sized_new(FALSE, TRUE, sizeof(LhFrameworkFact), ROWS);
    g_array_set_clear_func(f->facts, clear_fact);
    for (gsize i = 0; i < ROWS; i++) {
        Fact *fact = &file->facts[i];
        const LhFrameworkFact known = {
            .group = setting_rows[i].group,
            .name = setting_rows[i].name,
            .description = setting_rows[i].description,
            .text = text_of(&setting_rows[i], fact),
            .origin = (LhOrigin)fact->origin,
            .source = g_steal_pointer(&fact->source),
        };

        g_array_append_val(f->facts, known);
        place(f, &setting_rows[i], fact);
    }
    f->kernels_optimizer_touched = lh_framework_touched_bytes(f);
    return f;
}

static void
preset_all(File *file)
{
    for (gsize i = 0; i < ROWS; i++)
        preset(&file->facts[i], &setting_rows[i]);
}

LhFramework *
lh_framework_new(void)
{
    File file = { 0 };

    preset_all(&file);
    file.name = g_strdup("none");
    file.source = g_strdup("no framework");
    return flatten(&file);
}

/* ---- one value ---- */

/* The row of "group.name", or ROWS if there is none. */
static gsize
find_row(const char *key)
{
    gsize i = 0;

    for (; i < ROWS; i++) {
        const gsize length = strlen(setting_rows[i].group);

        if (strncmp(key, setting_rows[i].group, length) == 0 && key[length] == '.' &&
            strcmp(key + length + 1, setting_rows[i].name) == 0)
            break;
    }
    return i;
}

const char *
lh_framework_text(const LhFramework *f, const char *key)
{
    const gsize i = find_row(key);

    return i < ROWS ? g_array_index(f->facts, LhFrameworkFact, i).text : NULL;
}

static bool
read_fact(const Row *row, const char *text, Fact *fact)
{
    char *end = NULL;

    switch (row->type) {
    case LH_FIELD_BOOL:
        fact->value.flag = strcmp(text, "yes") == 0;
        return fact->value.flag || strcmp(text, "no") == 0;
    case LH_FIELD_CHOICE:
        fact->value.choice = 0;
        while (row->choices[fact->value.choice] != NULL &&
               strcmp(row->choices[fact->value.choice], text) != 0)
            fact->value.choice++;
        return row->choices[fact->value.choice] != NULL;
    case LH_FIELD_UINT:
    case LH_FIELD_UNIT:
        return g_ascii_string_to_unsigned(text, 10, 0, (guint64)row->max, &fact->value.count, NULL);
    case LH_FIELD_DOUBLE:
        fact->value.real = g_ascii_strtod(text, &end);
        return end != text && *end == '\0' && fact->value.real >= row->min &&
               fact->value.real <= row->max;
    default:
        return false;
    }
}

bool
lh_framework_set(LhFramework *f, const char *key, const char *text, const char *source)
{
    const gsize i = find_row(key);
    Fact fact = { .origin = LH_ORIGIN_CODE };
    LhFrameworkFact *known;

    if (i == ROWS || !read_fact(&setting_rows[i], text, &fact))
        return false;
    known = &g_array_index(f->facts, LhFrameworkFact, i);
    g_free(known->text);
    g_free(known->source);
    known->text = text_of(&setting_rows[i], &fact);
    known->source = g_strdup(source);
    known->origin = LH_ORIGIN_CODE;
    place(f, &setting_rows[i], &fact);
    if (setting_rows[i].offset == offsetof(LhFramework, kernels_optimizer))
        f->kernels_optimizer_touched = lh_framework_touched_bytes(f);
    return true;
}

static LhFramework *
read_framework(const LhJson *json, GError **error)
{
    File file = { 0 };
    LhFramework *framework;

    preset_all(&file);
    if (!lh_json_decode(json, lh_framework_fields(), &file, false, error))
        return NULL;
    framework = flatten(&file);
    framework->sha256 = g_strdup(lh_json_sha256(json));
    return framework;
}

LhFramework *
lh_framework_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : read_framework(json, error);
}

LhFramework *
lh_framework_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("frameworks", name, error);
    g_autoptr(LhJson) json = path == NULL ? NULL : lh_json_load(path, error);

    return json == NULL ? NULL : read_framework(json, error);
}

void
lh_framework_free(LhFramework *framework)
{
    if (framework == NULL)
        return;
    g_free(framework->name);
    g_free(framework->description);
    g_free(framework->source);
    g_free(framework->attention_kernel);
    g_free(framework->sha256);
    g_array_unref(framework->facts);
    lh_framework_remedies_free(framework->remedies);
    g_free(framework);
}

/* --- sums ---------------------------------------------------------------------------------------
 */

double
lh_framework_logit_bytes(const LhFramework *f)
{
    return f->logits_activation_bytes + f->logits_fp32_bytes + f->logits_softmax_bytes +
           f->logits_gradient_bytes;
}
