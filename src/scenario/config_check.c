/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/config_check.h"

/* --- faults -------------------------------------------------------------------------------------
 */

static bool
check_straggler(const LhScenario *s, guint index, uint64_t ranks, GError **error)
{
    const LhStraggler *straggler = &g_array_index(s->straggler, LhStraggler, index);

    if (straggler->rank >= ranks)
        return lh_scenario_error(s, "straggler", error,
                                 "there is no rank %" G_GUINT64_FORMAT
                                 "; ranks are 0 to %" G_GUINT64_FORMAT,
                                 straggler->rank, ranks - 1);
    for (guint i = 0; i < index; i++) {
        const LhStraggler *other = &g_array_index(s->straggler, LhStraggler, i);

        if (other->rank == straggler->rank)
            return lh_scenario_error(s, "straggler", error,
                                     "rank %" G_GUINT64_FORMAT
                                     " is named twice, with the factors %g and %g; leave one out",
                                     straggler->rank, other->slowdown, straggler->slowdown);
    }
    return true;
}

static bool
check_link_fault(const LhScenario *s, guint index, uint64_t nodes, GError **error)
{
    const LhLinkFault *fault = &g_array_index(s->link_fault, LhLinkFault, index);

    if (fault->node >= nodes)
        return lh_scenario_error(s, "link_fault", error,
                                 "there is no node %" G_GUINT64_FORMAT
                                 "; nodes are 0 to %" G_GUINT64_FORMAT,
                                 fault->node, nodes - 1);
    for (guint i = 0; i < index; i++) {
        const LhLinkFault *other = &g_array_index(s->link_fault, LhLinkFault, i);

        if (other->tier == fault->tier && other->node == fault->node && other->part == fault->part)
            return lh_scenario_error(s, "link_fault", error,
                                     "%s of node %" G_GUINT64_FORMAT
                                     " is named twice, with the factors %g and %g; leave one out",
                                     lh_tier_names[fault->tier], fault->node, other->factor,
                                     fault->factor);
    }
    return true;
}

bool
lh_check_faults(const LhScenario *s, uint64_t nodes, uint64_t ranks, GError **error)
{
    for (guint i = 0; s->straggler != NULL && i < s->straggler->len; i++) {
        if (!check_straggler(s, i, ranks, error))
            return false;
    }
    for (guint i = 0; s->link_fault != NULL && i < s->link_fault->len; i++) {
        if (!check_link_fault(s, i, nodes, error))
            return false;
    }
    return true;
}

/* --- cost models --------------------------------------------------------------------------------
 */

/* Whether field @name comes from the file while an option has replaced @with, which it belonged
 * to. */
static bool
is_overruled(const LhScenario *s, const char *name, const char *with)
{
    return !lh_scenario_has_option(s, name) && lh_scenario_has_option(s, with);
}

bool
lh_check_cost(const LhScenario *s, GError **error)
{
    static const char *const fields[] = { "network", "collectives", "profile" };

    if (s->cost < 0 || s->cost == LH_COST_DEVICE)
        return true;
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (lh_scenario_has(s, fields[i]) && !is_overruled(s, fields[i], "cost"))
            return lh_scenario_error(s, fields[i], error,
                                     "the cost model \"%s\" has free communication and no device, "
                                     "so this has no effect; leave one out",
                                     lh_cost_mode_names[s->cost]);
    }
    return true;
}

/* --- options of schedules -----------------------------------------------------------------------
 */

static bool
is_read(const GPtrArray *schedules, const LhOption *option)
{
    for (guint i = 0; i < schedules->len; i++) {
        if (lh_schedule_reads(g_ptr_array_index(schedules, i), option))
            return true;
    }
    return false;
}

static const char *
name_at(const GPtrArray *schedules, guint index)
{
    return ((const LhSchedule *)g_ptr_array_index(schedules, index))->name;
}

/* "a, b": the schedules that read @option. Caller frees. */
static char *
readers_of(const LhOption *option)
{
    GString *names = g_string_new(NULL);

    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        if (lh_schedule_reads(lh_schedules[i], option))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                   lh_schedules[i]->name);
    }
    return g_string_free(names, FALSE);
}

static bool
check_option(const LhScenario *s, const LhOption *option, const GPtrArray *schedules, bool linear,
             GError **error)
{
    g_autofree char *readers = NULL;

    if (is_overruled(s, option->name, "schedule") || !lh_scenario_has(s, option->name))
        return true;
    if (option->linear_only && !linear)
        return lh_scenario_error(s, option->name, error,
                                 "only linear attention reads this option; see --attention");
    if (is_read(schedules, option))
        return true;
    readers = readers_of(option);
    if (schedules->len == 1)
        return lh_scenario_error(s, option->name, error,
                                 "%s does not read this option; these schedules do: %s",
                                 name_at(schedules, 0), readers);
    return lh_scenario_error(
        s, option->name, error,
        "none of the %u schedules considered reads this option; these schedules do: %s",
        schedules->len, readers);
}

bool
lh_check_read(const LhScenario *s, const GPtrArray *schedules, bool linear, GError **error)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint i = 0; schedules->len > 0 && options[i] != NULL; i++) {
        if (!check_option(s, options[i], schedules, linear, error))
            return false;
    }
    return true;
}
