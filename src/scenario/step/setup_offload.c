/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_offload.h"

#include <string.h>

/* "all" or a number. */
static bool
set_layers(const LhScenario *s, LhStepParams *p, GError **error)
{
    const char *text = s->cpu_offloading_num_layers;
    guint64 number = LH_STEP_OFFLOAD_ALL;

    if (text == NULL)
        return true;
    if (strcmp(text, "all") != 0 &&
        !g_ascii_string_to_unsigned(text, 10, 0, UINT16_MAX, &number, NULL))
        return lh_scenario_error(s, "cpu_offloading_num_layers", error,
                                 "found \"%.20s\"; allowed: all, or 0 to %u", text, UINT16_MAX);
    p->offload_layers = (uint32_t)number;
    return true;
}

static bool
set_optimizer(const LhScenario *s, LhStepParams *p, GError **error)
{
    static const char *const of_offload[] = { "optimizer_offload_fraction",
                                              "overlap_cpu_optimizer_d2h_h2d" };

    for (gsize i = 0; i < G_N_ELEMENTS(of_offload) && !s->optimizer_cpu_offload; i++) {
        if (lh_scenario_has(s, of_offload[i]))
            return lh_scenario_error(s, of_offload[i], error,
                                     "no optimizer is offloaded: give --optimizer-cpu-offload, "
                                     "too");
    }
    p->offload_param = s->offload_param;
    p->overlap_optimizer_copies = s->overlap_cpu_optimizer_d2h_h2d;
    if (s->optimizer_cpu_offload)
        p->optimizer_offload =
            lh_scenario_has(s, "optimizer_offload_fraction") ? s->optimizer_offload_fraction : 1;
    if (s->offload_param && s->optimizer_cpu_offload && p->optimizer_offload < 1)
        return lh_scenario_error(s, "optimizer_offload_fraction", error,
                                 "--offload-param takes all of the optimizer: leave it out");
    if (s->offload_param)
        p->optimizer_offload = 1;
    return true;
}

/* Refuses a cluster without what copies, or the CPU, are timed by. */
static bool
check_cluster(const LhSetup *setup, const LhStepParams *p, GError **error)
{
    const LhScenario *s = setup->scenario;
    const LhTopology *t = setup->topology;
    const bool optimizer = p->optimizer_offload > 0;
    const char *field = p->offload_layers > 0 ? "cpu_offloading_num_layers"
                        : p->offload_param    ? "offload_param"
                                              : "optimizer_cpu_offload";

    if ((p->offload_layers == 0 && !optimizer) || t == NULL || MAX(s->cost, 0) != LH_COST_DEVICE)
        return true;
    if (t->host_link.bandwidth <= 0)
        return lh_scenario_error(
            s, field, error,
            "topology %s has no host_link, the link between a GPU and its host, that copies would "
            "take; add one to the file (longhaul help schema topology), or give --cost flops",
            t->name);
    if (optimizer && t->host_cpu.bandwidth <= 0)
        return lh_scenario_error(
            s, p->offload_param ? "offload_param" : "optimizer_cpu_offload", error,
            "topology %s has no host_cpu, the CPUs of a node, which would update; add it to the "
            "file (longhaul help schema topology), or give --cost flops",
            t->name);
    return true;
}

bool
lh_setup_offload(const LhSetup *setup, LhStepParams *p, GError **error)
{
    return set_layers(setup->scenario, p, error) && set_optimizer(setup->scenario, p, error) &&
           check_cluster(setup, p, error);
}
