/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_packs.h"

#include "step/packs.h"

#include <inttypes.h>

/* Draws a pack for each micro-batch of each data-parallel rank. */
static bool
draw_packs(LhSetup *setup, uint32_t packs, GError **error)
{
    const LhScenario *s = setup->scenario;
    LhStepParams *p = &setup->step->params;
    g_autoptr(GError) wrong = NULL;
    LhDocumentDistribution distribution;

    if (!lh_document_distribution_parse(s->document_distribution, &distribution, &wrong))
        return lh_scenario_error(s, "document_distribution", error, "%s", wrong->message);
    if (distribution.kind == LH_DOCUMENTS_EMPIRICAL && setup->documents == NULL)
        return lh_scenario_error(s, "document_distribution", error,
                                 "this draws from the lengths of a file: give --document-lengths");
    if (distribution.kind != LH_DOCUMENTS_EMPIRICAL && setup->documents != NULL)
        return lh_scenario_error(s, "document_distribution", error,
                                 "--document-lengths gives the documents; allowed with it: "
                                 "empirical");
    setup->step->drawn = lh_documents_draw(&distribution, setup->documents,
                                           p->module.attention.seq_length, packs, s->seed, &wrong);
    if (setup->step->drawn == NULL)
        return lh_scenario_error(s, "document_distribution", error, "%s", wrong->message);
    p->module.mask = lh_step_pack_mask(p->module.mask, setup->step->drawn->packs[0]);
    setup->params.mask = lh_step_pack_mask(setup->params.mask, setup->step->drawn->packs[0]);
    return true;
}

bool
lh_setup_packs(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    LhStepParams *p = &setup->step->params;
    const LhDocuments *documents = setup->documents;
    const uint64_t needed = (uint64_t)p->data_parallel * p->micro_batches;

    if (s->document_distribution != NULL) {
        if (!draw_packs(setup, (uint32_t)MIN(needed, UINT32_MAX), error))
            return false;
        documents = setup->step->drawn;
    }
    if (documents == NULL || documents->packs_count == 1)
        return true;
    if (documents->packs_count != needed)
        return lh_scenario_error(s, "document_lengths", error,
                                 "found %u packs in %s; allowed: 1, or one for each micro-batch of "
                                 "each data-parallel rank, %u x %u = %" PRIu64,
                                 documents->packs_count, s->document_lengths, p->micro_batches,
                                 p->data_parallel, needed);
    p->packs = documents->packs;
    p->packs_count = documents->packs_count;
    return true;
}
