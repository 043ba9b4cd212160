/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs: the documents that share the sequences of a micro-batch. Each micro-batch of each
 * data-parallel rank may have its own, and then its own attention programs.
 */
#pragma once

#include "step/graph.h"

/* Different packs in a step, at most: each has its own programs of attention. */
#define LH_STEP_PACKS_MAX 4096

/* The pack of a micro-batch of a data-parallel rank. It borrows its documents. */
LhDocumentPack lh_step_pack_of(const LhStepParams *params, uint32_t data, uint32_t micro_batch);

/* @mask with the documents of @pack. */
static inline LhMaskRule
lh_step_pack_mask(LhMaskRule mask, LhDocumentPack pack)
{
    mask.document_ends = pack.ends;
    mask.documents_count = pack.count;
    return mask;
}

/* Checks that there is one pack for each micro-batch of each data-parallel rank, or one for all. */
bool lh_step_check_packs(const LhStepParams *params, GError **error);

/* Copies the documents that plan->params refers to, and numbers packs that differ. */
void lh_step_take_packs(LhStepPlan *plan);
void lh_step_clear_packs(LhStepPlan *plan);

/* Number of the pack of a micro-batch among those that differ. */
uint32_t lh_step_pack_number(const LhStepPlan *plan, uint32_t data, uint32_t micro_batch);

/* Whether all data-parallel ranks have the same packs in the same order. */
bool lh_step_packs_alike(const LhStepPlan *plan);

/*
 * Imbalance of packs: most query-key pairs over their mean, of micro-batches and of data-parallel
 * ranks, summed over the layers with softmax attention. 1: balanced.
 */
typedef struct {
    double micro_batches, ranks;
} LhStepPackImbalance;
LhStepPackImbalance lh_step_pack_imbalance(const LhStepParams *params);
