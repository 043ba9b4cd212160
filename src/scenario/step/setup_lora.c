/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_lora.h"

#include "step/lora.h"

bool
lh_setup_lora(const LhScenario *s, LhStepParams *p, GError **error)
{
    g_autofree char *wrong = NULL;

    p->lora_rank = (uint32_t)s->lora_rank;
    if (p->lora_rank == 0)
        return s->lora_targets == NULL ||
               lh_scenario_error(s, "lora_targets", error, "needs a lora_rank above 0");
    wrong = lh_step_lora_parse(s->lora_targets, &p->lora_targets);
    return wrong == NULL || lh_scenario_error(s, "lora_targets", error, "%s", wrong);
}
