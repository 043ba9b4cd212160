/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sweep_points.h"

#include "base/json/json.h"

LhSweepPoint *
lh_sweep_point(const LhSweep *sweep, guint index)
{
    return g_ptr_array_index(sweep->points, index);
}

guint
lh_sweep_mine_at(const LhSweepRun *run, guint place)
{
    return g_array_index(run->mine, guint, place);
}

void
lh_sweep_point_free(gpointer data)
{
    LhSweepPoint *point = data;

    g_strfreev(point->values);
    g_clear_pointer(&point->rows, g_ptr_array_unref);
    g_free(point);
}

/* Index of the value of axis @axis at point @index. */
static guint
value_index(const LhSweep *sweep, guint index, guint axis)
{
    for (guint i = sweep->axes->len; i-- > axis + 1;)
        index /= ((const LhScenarioAxis *)g_ptr_array_index(sweep->axes, i))->values->len;
    return index % ((const LhScenarioAxis *)g_ptr_array_index(sweep->axes, axis))->values->len;
}

static void
add_point(LhSweep *sweep)
{
    LhSweepPoint *point = g_new0(LhSweepPoint, 1);
    g_autoptr(GStrvBuilder) values = g_strv_builder_new();

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        g_strv_builder_add(
            values, g_ptr_array_index(axis->values, value_index(sweep, sweep->points->len, i)));
    }
    point->values = g_strv_builder_end(values);
    g_ptr_array_add(sweep->points, point);
}

bool
lh_sweep_add_points(LhSweep *sweep, const LhScenario *scenario, GError **error)
{
    g_autoptr(GString) product = g_string_new(NULL);
    double count = 1;

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        count *= axis->values->len;
        g_string_append_printf(product, "%s%u of %s", i > 0 ? " x " : "", axis->values->len,
                               axis->field->name);
    }
    if (count > LH_SWEEP_POINTS_MAX)
        return lh_json_error(scenario->json, "sweep", error,
                             "there are %.0f combinations (%s); allowed: at most %d; remove "
                             "values, or set a field to one value by its option",
                             count, product->str, LH_SWEEP_POINTS_MAX);
    for (guint i = 0; i < (guint)count; i++)
        add_point(sweep);
    return true;
}

LhScenario *
lh_sweep_point_scenario(const LhSweep *sweep, const LhScenario *base, guint index)
{
    LhScenario *scenario = lh_scenario_copy(base);

    for (guint i = 0; i < sweep->axes->len; i++)
        lh_scenario_choose(scenario, g_ptr_array_index(sweep->axes, i),
                           value_index(sweep, index, i));
    return scenario;
}

/* ---- points file ---- */

GPtrArray *
lh_sweep_new_rows(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
}
