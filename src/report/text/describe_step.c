/* SPDX-License-Identifier: Apache-2.0 */
/* Closed forms and ops of a step. */
#include "report/text/describe_step.h"

#include "base/units.h"
#include "program/cursor.h"
#include "program/op_names.h"
#include "step/formulas.h"

/* ---- closed forms ---- */

static void
add_total(LhTable *table, const char *name, LhWide value)
{
    g_autofree char *text = lh_format_count(value);

    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, text, NULL);
}

static void
print_totals(const LhProgram *program, GString *out)
{
    const LhStepParameters p = lh_step_parameters(program);
    const LhStepFlops flops = lh_step_flops(program);
    g_autoptr(LhTable) table = lh_table_new();

    lh_table_column(table, "of_step", "closed form, of the step", NULL, false);
    lh_table_column(table, "value", "", NULL, true);
    add_total(table, "tokens", lh_step_tokens(lh_step_params(program)));
    add_total(table, "parameters", (LhWide)p.matrices + p.norms + p.embedding);
    if (p.active != p.matrices)
        add_total(table, "of these, active for a token", (LhWide)p.active + p.norms + p.embedding);
    if (p.adapters > 0)
        add_total(table, "trained parameters, of LoRA's adapters", p.adapters);
    add_total(table, "model flops (for MFU)", flops.model);
    add_total(table, "flops of products", flops.dense);
    add_total(table, "flops of attention", flops.attention);
    lh_table_print(table, LH_FORMAT_TABLE, out);
}

/* A number of one rank; false if there is no closed form. */
typedef bool (*OfRank)(const LhProgram *program, uint32_t rank, uint64_t *value);

static bool
sent_tensor(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    return lh_step_bytes_sent(program, LH_DIMENSION_TENSOR, rank, value);
}

static bool
sent_context(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    return lh_step_bytes_sent(program, LH_DIMENSION_CONTEXT, rank, value);
}

static bool
sent_data(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    return lh_step_bytes_sent(program, LH_DIMENSION_DATA, rank, value);
}

static bool
sent_pipeline(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    return lh_step_stages(lh_step_params(program)) > 1 &&
           lh_step_bytes_sent(program, LH_DIMENSION_PIPELINE, rank, value);
}

static bool
products(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    *value = lh_step_dense_flops(program, rank);
    return true;
}

static bool
weights(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    *value = lh_step_state_bytes(program, rank).weights;
    return true;
}

static bool
gradients(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    *value = lh_step_state_bytes(program, rank).gradients;
    return !lh_step_params(program)->forward_only;
}

static bool
optimizer(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    *value = lh_step_state_bytes(program, rank).optimizer;
    return !lh_step_params(program)->forward_only;
}

static bool
host_states(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    *value = lh_step_state_bytes(program, rank).host;
    return lh_step_params(program)->optimizer_offload > 0;
}

static bool
cache(const LhProgram *program, uint32_t rank, uint64_t *value)
{
    *value = lh_step_state_bytes(program, rank).cache;
    return lh_step_params(program)->forward_only;
}

static const struct {
    const char *name;
    OfRank of_rank;
} forms[] = {
    { "bytes sent, tensor parallel", sent_tensor },
    { "bytes sent, context parallel", sent_context },
    { "bytes sent, data parallel", sent_data },
    { "bytes sent, pipeline parallel", sent_pipeline },
    { "flops of products", products },
    { "flops of attention", lh_step_attention_flops },
    { "weights, bytes", weights },
    { "gradients, bytes", gradients },
    { "optimizer states, bytes", optimizer },
    { "host memory of states, bytes", host_states },
    { "KV cache, bytes", cache },
};

static void
add_form(LhTable *table, const LhProgram *program, const char *name, OfRank of_rank)
{
    const uint32_t ranks = lh_program_ranks(program);
    uint64_t least = UINT64_MAX, most = 0;
    LhWide sum = 0;
    g_autofree char *low = NULL;
    g_autofree char *mean = NULL;
    g_autofree char *high = NULL;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t value;

        if (!of_rank(program, rank, &value))
            return;
        least = MIN(least, value);
        most = MAX(most, value);
        sum += value;
    }
    low = lh_format_count(least);
    mean = lh_format_count((sum + ranks / 2) / MAX(ranks, 1));
    high = lh_format_count(most);
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, low, NULL);
    lh_table_cell(table, mean, NULL);
    lh_table_cell(table, high, NULL);
}

void
lh_describe_step_forms(const LhProgram *program, GString *out)
{
    g_autoptr(LhTable) table = lh_table_new();

    print_totals(program, out);
    g_string_append_c(out, '\n');
    lh_table_column(table, "form", "closed form, of a rank", NULL, false);
    lh_table_column(table, "min", "min", NULL, true);
    lh_table_column(table, "mean", "mean", NULL, true);
    lh_table_column(table, "max", "max", NULL, true);
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++)
        add_form(table, program, forms[i].name, forms[i].of_rank);
    lh_table_print(table, LH_FORMAT_TABLE, out);
}

/* ---- ops ---- */

static void
append_region(GString *text, const LhProgram *program, const LhRegion *region)
{
    g_autofree char *name = lh_region_text(program, region);

    g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", name);
}

static void
append_messages(GString *text, const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];

        g_string_append_printf(text, "%s%c%u:", text->len > 0 ? " " : "", part->send ? '>' : '<',
                               part->peer);
        for (uint32_t k = 0; k < part->regions_count; k++)
            append_region(text, program, &part->regions[k]);
    }
}

/* Tensors that an op reads and writes, in the op's order. Caller frees. */
static char *
tensors_of(const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer)
{
    GString *text = g_string_new(NULL);

    switch (op->kind) {
    case LH_OP_COMPUTE:
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            append_region(text, program, &op->compute.regions[i]);
        break;
    case LH_OP_EXCHANGE:
        append_messages(text, program, op, buffer);
        break;
    case LH_OP_COLLECTIVE:
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            append_region(text, program, &op->collective.send[i]);
            g_string_append(text, " ->");
            append_region(text, program, &op->collective.receive[i]);
        }
        break;
    default:
        break;
    }
    return g_string_free(text, FALSE);
}

static void
add_op(LhTable *table, const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer)
{
    g_autofree char *tensors = tensors_of(program, op, buffer);

    lh_table_row(table);
    lh_table_cell_printf(table, "%u", op->id);
    lh_table_cell(table, lh_phase_names[op->phase], NULL);
    lh_table_cell_printf(table, "%u", op->micro_batch);
    lh_table_cell_printf(table, "%u", op->layer);
    lh_table_cell(table, lh_op_on_stream(op) ? program->streams[op->stream].name : "host", NULL);
    lh_table_cell(table, lh_op_name(op), NULL);
    lh_table_cell(table, tensors, NULL);
}

LhTable *
lh_step_ops_table(const LhProgram *program, uint32_t rank)
{
    LhTable *table = lh_table_new();
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_table_column(table, "op", "op", NULL, true);
    lh_table_column(table, "phase", "phase", NULL, false);
    lh_table_column(table, "micro_batch", "micro-batch", NULL, true);
    lh_table_column(table, "layer", "layer", NULL, true);
    lh_table_column(table, "stream", "stream", NULL, false);
    lh_table_column(table, "does", "does", NULL, false);
    lh_table_column(table, "tensors", "tensors", NULL, false);
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->kind != LH_OP_ALLOC && op->kind != LH_OP_FREE)
                add_op(table, program, op, &buffer);
        }
    }
    lh_op_buffer_clear(&buffer);
    return table;
}
