/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/labels.h"

#include "report/data/describe_options.h"

const char *
lh_step_word(const LhSetup *setup)
{
    return setup->step->params.forward_only ? "prefill" : "training step";
}

char *
lh_describe_program(const LhSetup *setup, const char *name, const LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const bool step = setup->step != NULL;
    g_autofree char *tokens =
        lh_format_count(step ? setup->params.attention.seq_length : p->attention.seq_length);
    g_autofree char *groups = lh_describe_groups(p);

    return g_strdup_printf("%s: %s%s%s, %s tokens on %s", name,
                           step ? lh_step_word(setup) : "attention",
                           setup->model != NULL ? " of " : "",
                           setup->model != NULL ? setup->model->name : "", tokens, groups);
}

char *
lh_describe_memory_op(const LhMemoryOp *op)
{
    if (op->op == LH_OP_NONE)
        return g_strdup("before the first op");
    return g_strdup_printf("op %u (%s, layer %u, micro-batch %u)", op->op,
                           lh_phase_names[op->phase], op->layer, op->micro_batch);
}

char *
lh_describe_all_ranks(const LhSetup *setup)
{
    const LhProgramParams all = {
        .ranks = setup->step != NULL ? (uint32_t)lh_step_ranks(&setup->step->params) : 0,
    };

    return lh_describe_groups(setup->step != NULL ? &all : &setup->params);
}
