/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows are those of the room step, which builds steps from them. The proof uses how many rows
 * there are, never which ones the builder has emitted.
 */
#include "verify/step/step_table.h"
#include "step/lora.h"
#include "step/tensor_sizes.h"

const LhStepNode *const lh_step_tables[LH_TABLES] = {
    [LH_TABLE_EMBED] = lh_step_embed,         [LH_TABLE_FORWARD] = lh_step_forward,
    [LH_TABLE_HEAD] = lh_step_head,           [LH_TABLE_POST_BWD] = lh_step_post_bwd,
    [LH_TABLE_PRE_BWD] = lh_step_pre_bwd,     [LH_TABLE_EMBED_BWD] = lh_step_embed_bwd,
    [LH_TABLE_LAST_HEAD] = lh_step_last_head,
};

/* Whether steps of this kind have the table: the forward pass alone, or both passes. */
static bool
is_of_step(const LhStepValues *v, LhTable table)
{
    if (table == LH_TABLE_EMBED || table == LH_TABLE_FORWARD)
        return true;
    return (table == LH_TABLE_LAST_HEAD) == v->params->forward_only;
}

bool
lh_table_has_layer(const LhStepValues *v, LhTable table, uint32_t layer)
{
    if (!is_of_step(v, table))
        return false;
    if (table == LH_TABLE_EMBED || table == LH_TABLE_EMBED_BWD)
        return layer == 0;
    return table == LH_TABLE_HEAD || table == LH_TABLE_LAST_HEAD ? layer == v->layers
                                                                 : layer < v->layers;
}

bool
lh_table_has_row(const LhStepValues *v, const LhStepNode *node, uint32_t layer)
{
    return node->does == LH_STEP_KERNEL && lh_step_takes(v->plan, node, layer);
}

uint32_t
lh_table_turns(const LhStepValues *v, LhStepTiling tiling)
{
    return MAX(lh_step_tiles(v->plan, tiling), 1);
}

/* Whether a row has an operand of @kind and @what, compared by roles without tensor parallelism. */
static bool
names(const LhStepNode *node, LhStepOperandKind kind, LhStepRole what)
{
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];

        if (o->kind == kind && lh_step_rows((LhStepRole)o->what).alone == what)
            return true;
    }
    return false;
}

static bool
adds_to(const LhStepValues *v, const LhStepNode *node, LhStepWeight weight)
{
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];

        if (o->kind == LH_STEP_GRADIENT &&
            lh_step_held_weight(v->plan, (LhStepWeight)o->what) == weight)
            return true;
    }
    return false;
}

uint32_t
lh_table_gradient_rows_before(const LhStepValues *v, LhStepWeight weight, uint32_t layer,
                              const LhStepNode *end)
{
    uint32_t count = 0;

    for (unsigned table = 0; table < LH_TABLES; table++) {
        for (const LhStepNode *node = lh_step_tables[table]; node->does != LH_STEP_END; node++) {
            if (end != NULL && node == end)
                return count;
            if (is_of_step(v, (LhTable)table) && lh_table_has_row(v, node, layer) &&
                adds_to(v, node, weight))
                count += lh_table_turns(v, (LhStepTiling)node->tiling);
        }
    }
    return count;
}

uint32_t
lh_table_gradient_rows(const LhStepValues *v, LhStepWeight weight, uint32_t layer)
{
    return lh_table_gradient_rows_before(v, weight, layer, NULL);
}

bool
lh_table_is_sum(LhStepRole role)
{
    for (unsigned table = 0; table < LH_TABLES; table++) {
        for (const LhStepNode *node = lh_step_tables[table]; node->does != LH_STEP_END; node++) {
            if (node->does == LH_STEP_SCATTER && node->operands[0].what == role)
                return true;
        }
    }
    return false;
}

uint32_t
lh_table_makers_before(const LhStepValues *v, LhStepRole alone, uint32_t layer,
                       const LhStepNode *end)
{
    uint32_t count = 0;

    for (unsigned table = 0; table < LH_TABLES; table++) {
        if (!lh_table_has_layer(v, (LhTable)table, layer))
            continue;
        for (const LhStepNode *node = lh_step_tables[table]; node->does != LH_STEP_END; node++) {
            if (end != NULL && node == end)
                return count;
            count += lh_table_has_row(v, node, layer) &&
                     (names(node, LH_STEP_OUT, alone) || names(node, LH_STEP_UPDATE, alone));
        }
    }
    return count;
}

/* Whether a row makes a term of a sum over tensor-parallel ranks. */
static bool
makes_term(const LhStepNode *node, LhStepRole alone)
{
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];

        if ((o->kind == LH_STEP_OUT || o->kind == LH_STEP_UPDATE) &&
            lh_step_rows((LhStepRole)o->what).alone == alone &&
            lh_table_is_sum((LhStepRole)o->what))
            return true;
    }
    return false;
}

uint32_t
lh_table_role_terms(const LhStepValues *v, LhStepRole alone, uint32_t layer)
{
    uint32_t makers = 0;
    bool sum = false;

    for (unsigned table = 0; table < LH_TABLES; table++) {
        if (alone == LH_STEP_DX || !lh_table_has_layer(v, (LhTable)table, layer))
            continue;
        for (const LhStepNode *node = lh_step_tables[table]; node->does != LH_STEP_END; node++) {
            if (!lh_table_has_row(v, node, layer) ||
                (!names(node, LH_STEP_OUT, alone) && !names(node, LH_STEP_UPDATE, alone)))
                continue;
            makers++;
            sum |= makes_term(node, alone);
        }
    }
    return MAX(makers, 1) * (sum ? v->tensor : 1);
}

uint32_t
lh_table_sublayers_ahead(const LhStepValues *v, const LhTableRow *row)
{
    static const LhStepRole dx = LH_STEP_DX;
    uint32_t ahead = row->table == LH_TABLE_HEAD       ? 2 * v->layers + 1
                     : row->table == LH_TABLE_POST_BWD ? 2 * (row->layer + 1)
                     : row->table == LH_TABLE_PRE_BWD  ? 2 * row->layer + 1
                                                       : 0;

    for (const LhStepNode *node = lh_step_tables[row->table]; node != row->node; node++) {
        if (lh_table_has_row(v, node, row->layer) && names(node, LH_STEP_UPDATE, dx))
            ahead--;
    }
    return ahead;
}
