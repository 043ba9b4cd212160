/* SPDX-License-Identifier: Apache-2.0 */
#include "step/packs.h"

#include "step/step_private.h"

#include <inttypes.h>
#include <string.h>

LhDocumentPack
lh_step_pack_of(const LhStepParams *p, uint32_t data, uint32_t micro_batch)
{
    if (p->packs == NULL)
        return (LhDocumentPack){ p->module.mask.document_ends, p->module.mask.documents_count };
    return p->packs[(size_t)data * p->micro_batches + micro_batch];
}

static bool
are_equal(const LhDocumentPack *a, const LhDocumentPack *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->ends, b->ends, a->count * sizeof(uint64_t)) == 0);
}

static guint
pack_hash(gconstpointer data)
{
    const LhDocumentPack *pack = data;
    uint64_t hash = pack->count;

    for (uint32_t i = 0; i < pack->count; i++)
        hash = (hash ^ pack->ends[i]) * UINT64_C(1099511628211);
    return (guint)(hash ^ hash >> 32);
}

static gboolean
pack_equal(gconstpointer a, gconstpointer b)
{
    return are_equal(a, b);
}

bool
lh_step_check_packs(const LhStepParams *p, GError **error)
{
    const uint64_t needed = (uint64_t)p->data_parallel * p->micro_batches;
    g_autoptr(GHashTable) different = g_hash_table_new(pack_hash, pack_equal);

    if (p->packs == NULL)
        return true;
    if (p->packs_count != needed)
        return lh_program_refuse(
            error,
            "found %u packs of documents; allowed: 1, or one for each micro-batch of each "
            "data-parallel rank, %u x %u = %" PRIu64,
            p->packs_count, p->micro_batches, p->data_parallel, needed);
    for (uint32_t i = 0; i < p->packs_count; i++)
        g_hash_table_add(different, (gpointer)&p->packs[i]);
    if (g_hash_table_size(different) <= LH_STEP_PACKS_MAX)
        return true;
    return lh_program_refuse(error, "a step has at most %u different packs of documents, not %u",
                             LH_STEP_PACKS_MAX, g_hash_table_size(different));
}

/* Copies @pack and returns its number. */
static uint32_t
number_pack(LhStepPlan *plan, GHashTable *numbers, const LhDocumentPack *pack)
{
    LhDocumentPack *copy;
    gpointer found;

    if (g_hash_table_lookup_extended(numbers, pack, NULL, &found))
        return GPOINTER_TO_UINT(found);
    copy = &plan->packs[plan->packs_count];
    copy->count = pack->count;
    copy->ends = g_memdup2(pack->ends, pack->count * sizeof(uint64_t));
    g_hash_table_insert(numbers, copy, GUINT_TO_POINTER(plan->packs_count));
    return plan->packs_count++;
}

void
lh_step_take_packs(LhStepPlan *plan)
{
    LhStepParams *p = &plan->params;
    /* Programs that are given are those of one pack. */
    const uint32_t count = p->packs == NULL || p->attention != NULL ? 1 : p->packs_count;
    g_autoptr(GHashTable) numbers = g_hash_table_new(pack_hash, pack_equal);
    LhDocumentPack *of_all = g_new(LhDocumentPack, count);

    plan->packs = g_new0(LhDocumentPack, count);
    plan->pack_numbers = g_new0(uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        const LhDocumentPack pack =
            count == 1 ? lh_step_pack_of(p, 0, 0)
                       : lh_step_pack_of(p, i / p->micro_batches, i % p->micro_batches);

        plan->pack_numbers[i] = number_pack(plan, numbers, &pack);
        of_all[i] = plan->packs[plan->pack_numbers[i]];
    }
    p->module.mask = lh_step_pack_mask(p->module.mask, plan->packs[0]);
    plan->packs_of_all = of_all;
    p->packs = plan->packs_count > 1 ? of_all : NULL;
    p->packs_count = plan->packs_count > 1 ? count : 0;
}

void
lh_step_clear_packs(LhStepPlan *plan)
{
    for (uint32_t i = 0; i < plan->packs_count; i++)
        g_free((void *)plan->packs[i].ends);
    g_free(plan->packs);
    g_free(plan->pack_numbers);
    g_free(plan->packs_of_all);
}

uint32_t
lh_step_pack_number(const LhStepPlan *plan, uint32_t data, uint32_t micro_batch)
{
    return plan->packs_count == 1
               ? 0
               : plan->pack_numbers[(size_t)data * plan->params.micro_batches + micro_batch];
}

bool
lh_step_packs_alike(const LhStepPlan *plan)
{
    const uint32_t m = plan->params.micro_batches;

    for (uint32_t i = m; plan->packs_count > 1 && i < m * plan->params.data_parallel; i++) {
        if (plan->pack_numbers[i] != plan->pack_numbers[i % m])
            return false;
    }
    return true;
}

/* ---- imbalance ---- */

/* Pairs of a micro-batch, over all layers with softmax attention. */
static double
micro_batch_pairs(const LhStepParams *p, uint32_t data, uint32_t micro_batch)
{
    const LhSegment all = { .stride = 1, .count = p->module.attention.seq_length };
    LhMaskRule mask = lh_step_pack_mask(p->module.mask, lh_step_pack_of(p, data, micro_batch));
    uint64_t whole = 0, windowed = 0;
    double pairs;

    for (uint64_t i = 0; i < p->model->num_layers; i++) {
        const LhLayerRun *run = lh_model_layer(p->model, i);

        if (run->kind != LH_LAYER_SOFTMAX)
            continue;
        if (p->window > 0 && !run->whole)
            windowed++;
        else
            whole++;
    }
    pairs = (double)whole * (double)lh_mask_pairs(&mask, all, all);
    if (windowed == 0)
        return pairs;
    mask.window = p->window;
    return pairs + (double)windowed * (double)lh_mask_pairs(&mask, all, all);
}

LhStepPackImbalance
lh_step_pack_imbalance(const LhStepParams *p)
{
    double all = 0, most = 0, most_of_rank = 0;

    for (uint32_t data = 0; data < p->data_parallel; data++) {
        double of_rank = 0;

        for (uint32_t i = 0; i < p->micro_batches; i++) {
            const double pairs = micro_batch_pairs(p, data, i);

            of_rank += pairs;
            most = MAX(most, pairs);
        }
        all += of_rank;
        most_of_rank = MAX(most_of_rank, of_rank);
    }
    if (all <= 0)
        return (LhStepPackImbalance){ 1, 1 };
    return (LhStepPackImbalance){
        .micro_batches = most * p->data_parallel * p->micro_batches / all,
        .ranks = most_of_rank * p->data_parallel / all,
    };
}
