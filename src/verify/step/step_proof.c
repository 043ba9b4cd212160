/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic execution of a training step. Ops are applied in one topological order of the whole
 * program. That suffices: the earlier stages have shown that every other legal order has the same
 * effect on every cell. At the end every weight must have been updated once, by the complete
 * gradient of all tokens. step_values.h defines the values.
 */
#include "verify/step/step_proof.h"
#include "step/layer_info.h"
#include "step/tensor_sizes.h"
#include "verify/alloc_times.h"
#include "verify/step/step_copies.h"
#include "verify/step/step_modules.h"
#include "verify/step/step_moves.h"
#include "verify/step/step_muon.h"
#include "verify/step/step_optimizer.h"
#include "verify/step/step_rows.h"
#include "verify/step/step_values.h"

static void
apply(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];

    if (v->op_instance[g] != LH_NONE)
        lh_step_modules_apply(v, g);
    else if (op->kind == LH_OP_COMPUTE && lh_step_copies_has(op))
        lh_step_copies_apply(v, g);
    else if (op->kind == LH_OP_COMPUTE && lh_step_muon_has(op))
        lh_step_muon_apply(v, g);
    else if (op->kind == LH_OP_COMPUTE && lh_step_optimizer_has(op))
        lh_step_optimizer_apply(v, g);
    else if (op->kind == LH_OP_COMPUTE)
        lh_step_rows_apply(v, g);
    else if (op->kind == LH_OP_EXCHANGE)
        lh_step_moves_receive(v, g);
}

static void
execute_step(LhStepValues *v)
{
    const LhProof *proof = v->proof;

    for (uint32_t i = 0; i < proof->nodes_count; i++) {
        const uint32_t node = proof->order[i];

        if (node >= 2 * proof->ops_count + proof->meetings_count)
            continue; /* issue by the host */
        if (node >= 2 * proof->ops_count)
            lh_step_moves_meet(v, &proof->meetings[node - 2 * proof->ops_count]);
        else if (node % 2 == 1)
            apply(v, node / 2);
        else if (proof->ops[node / 2].kind == LH_OP_EXCHANGE && v->op_instance[node / 2] == LH_NONE)
            lh_step_moves_send(v, node / 2);
    }
}

static LhStepValues
values_of(LhProof *proof)
{
    const LhProgram *program = proof->program;
    const LhStepParams *params = lh_step_params(program);
    LhStepValues v = {
        .proof = proof,
        .plan = program->step,
        .params = params,
        .tensor = params->tensor_parallel,
        .context = params->module.ranks,
        .data = params->data_parallel,
        .stages = lh_step_stages(params),
        .micro_batches = params->micro_batches,
        .layers = lh_step_layers(program->step),
        .segments = lh_step_segments(program->step),
        .cuts = lh_step_cuts(program->step),
        .pieces = lh_step_pieces(program->step),
        .data_ranks = params->module.ranks * params->data_parallel,
    };

    for (uint32_t i = 0; i < program->modules_count && v.placement == NULL; i++)
        v.placement = program->modules[i] != NULL ? &program->modules[i]->placement : NULL;
    return v;
}

void
lh_proof_check_step(LhProof *proof)
{
    LhStepValues v = values_of(proof);

    if (v.placement == NULL || proof->ranks != lh_step_ranks(v.params)) {
        lh_proof_find(proof, LH_FINDING_MALFORMED,
                      (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE },
                      "has no attention, or its ranks differ from those of the step");
        return;
    }
    lh_sets_init(&v.sets);
    lh_proof_list_allocs(proof);
    lh_step_values_begin(&v);
    if (lh_step_modules_check(&v)) {
        execute_step(&v);
        lh_step_values_check_end(&v);
    }
    lh_step_modules_clear(&v);
    lh_step_moves_clear(&v);
    lh_sets_clear(&v.sets);
    g_free(v.cells);
    g_free(v.weights);
    g_free(v.made);
}
