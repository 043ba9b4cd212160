/* Names and results of the simulator; the work is in engine.c. */
#include "sim/sim.h"

const char *const lh_cost_mode_names[] = { "device", "flops", "unit", NULL };

const char *const lh_idle_names[] = {
    "imbalance", "nvlink", "pcie", "nic", "fabric", "host", NULL,
};

G_STATIC_ASSERT(G_N_ELEMENTS(lh_idle_names) == LH_IDLE_PARTS + 1);

void
lh_sim_result_free(LhSimResult *result)
{
    if (result == NULL)
        return;
    g_free(result->ranks);
    g_free(result->out_of_memory);
    g_clear_pointer(&result->path, g_array_unref);
    lh_precedence_free(result->precedence);
    g_free(result);
}

void
lh_extrapolation_join(LhExtrapolation *all, const LhExtrapolation *other)
{
    if (other->shortest > 0 && (all->shortest <= 0 || other->shortest < all->shortest)) {
        all->shortest = other->shortest;
        all->fitted_from = other->fitted_from;
    }
    if (other->longest > all->longest) {
        all->longest = other->longest;
        all->fitted_to = other->fitted_to;
    }
}

double
lh_sim_bubble_fraction(const LhSimResult *result)
{
    LhWide idle_ps = 0;

    if (result->makespan_ps == 0)
        return 0;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        idle_ps += result->makespan_ps - result->ranks[r].busy_ps;
    return (double)idle_ps / (double)((LhWide)result->ranks_count * result->makespan_ps);
}
